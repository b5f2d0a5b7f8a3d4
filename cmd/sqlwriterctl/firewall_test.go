package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// firewallSays is the vendor's text: learn.microsoft.com, "Database Engine events and errors", 40615.
const firewallSays = "Cannot open server 'sql-1' requested by the login. Client with IP address '203.0.113.7' is not " +
	"allowed to access the server. To enable access, use the Azure Management Portal or run sp_set_firewall_rule on the " +
	"master database to create a firewall rule for this IP address or address range. It may take up to five minutes for " +
	"this change to take effect."

func refusedByFirewall() error {
	return fault.Wrap(fault.Infrastructure, "sqlserver: open", "40615", "the firewall",
		mssql.Error{Number: 40615, Message: firewallSays})
}

// fakeAz is an az on PATH that answers with a script and writes down its arguments.
func fakeAz(t *testing.T, script string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "az"), []byte("#!/bin/sh\necho \"$*\" >> '"+log+"'\n"+script+"\n"), 0o700)) //nolint:gosec // a program
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return string(text)
	}
}

const (
	lookedUp = "sql server list --query [?name=='sql-1'].resourceGroup -o tsv\n"
	created  = "sql server firewall-rule create -g rg -s sql-1 -n sqlwriterctl-203-0-113-7 " +
		"--start-ip-address 203.0.113.7 --end-ip-address 203.0.113.7 -o tsv --query name"
)

// connectPast connects: the first n tries are refused.
func connectPast(t *testing.T, asks bool, answer string, n int) (told string, tries int, err error) {
	t.Helper()
	var out strings.Builder
	a := &app{environment: environment{
		asks: asks, stdin: strings.NewReader(answer), stderr: &out, stdout: &out,
		wait: func(context.Context, time.Duration) error { return nil },
	}}
	err = a.pastFirewall(t.Context(), func() error {
		if tries++; tries <= n {
			return refusedByFirewall()
		}
		return nil
	})
	if err != nil {
		_, advice := a.describe(err)
		out.WriteString(advice)
	}
	return out.String(), tries, err
}

func TestTheFirewallLetsThisMachineInAfterAQuestion(t *testing.T) {
	calls := fakeAz(t, `echo rg`)
	told, tries, err := connectPast(t, true, "y\n", 4)
	require.NoError(t, err)
	require.Equal(t, 5, tries, "a rule takes a while")
	require.Equal(t, lookedUp+created+"\n", calls(), "once")
	require.Contains(t, told, "The firewall of sql-1 refuses this machine. Add its address 203.0.113.7? Continue? [y/N]")
	require.Contains(t, told, "az sql server firewall-rule delete -g rg -s sql-1 -n sqlwriterctl-203-0-113-7\n")
}

func TestTheFirewallStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		script, answer string
		asks           bool
		calls, told    string
	}{
		"nobody to ask":  {`echo rg`, "", false, lookedUp, "`az " + created + "` lets this machine in"},
		"no":             {`echo rg`, "n\n", true, lookedUp, "Continue? [y/N] `az " + created + "` lets this machine in"},
		"not signed in":  {`echo "Please run az login" >&2; exit 1`, "y\n", true, lookedUp, "create -g GROUP -s sql-1"},
		"another tenant": {`true`, "y\n", true, lookedUp, "create -g GROUP -s sql-1"},
		"no right":       {`[ "$3" = list ] && echo rg && exit; echo AuthorizationFailed >&2; exit 1`, "y\n", true, lookedUp + created + "\n", "`az " + created + "` does it"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeAz(t, c.script)
			told, tries, err := connectPast(t, c.asks, c.answer, 1)
			require.Equal(t, "40615", fault.CodeOf(err))
			require.Equal(t, 1, tries)
			require.Equal(t, c.calls, calls())
			require.Contains(t, told, c.told)
			require.NotContains(t, told, "delete")
		})
	}
	_, tries, _ := connectPast(t, true, "y\n", 0)
	require.Equal(t, 1, tries)
	t.Setenv("PATH", t.TempDir())
	told, _, err := connectPast(t, true, "y\n", 1)
	require.Equal(t, "40615", fault.CodeOf(err), "without an az it says what to do")
	require.Contains(t, told, "create -g GROUP -s sql-1")
}

// firewalled is the address of a server whose firewall answers each login with the vendor's text, as TDS carries it.
func firewalled(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	said := utf16.Encode([]rune(firewallSays))
	text := binary.LittleEndian.AppendUint16(nil, uint16(len(said))) //nolint:gosec // short
	for _, unit := range said {
		text = binary.LittleEndian.AppendUint16(text, unit)
	}
	token := append([]byte{0xA7, 0x9E, 0, 0, 1, 14}, text...) // number, state, class, text
	token = append(token, 0, 0, 1, 0, 0, 0)                   // server, procedure, line
	refusal := binary.LittleEndian.AppendUint16([]byte{0xAA}, uint16(len(token)))
	refusal = append(append(refusal, token...), 0xFD, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) // done, with an error
	answers := [][]byte{{1, 0, 6, 0, 1, 0xFF, 2}, refusal}                                // pre-login, login
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for _, answer := range answers {
				header := make([]byte, 8)
				if _, err := io.ReadFull(conn, header); err != nil {
					break
				}
				if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint16(header[2:]))-8); err != nil {
					break
				}
				packet := binary.BigEndian.AppendUint16([]byte{4, 1}, uint16(8+len(answer))) //nolint:gosec // short
				_, _ = conn.Write(append(append(packet, 0, 0, 1, 0), answer...))
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// Each command that connects says how the firewall lets this machine in: its words arrive.
func TestEachCommandMeetsTheFirewall(t *testing.T) {
	fakeAz(t, `echo rg`)
	b := newBench(t)
	b.env["SQL_CONNECTION"] = "sqlserver://u:p@" + firewalled(t) + "?database=d&encrypt=disable"
	b.env["COSMOS_CONNECTION"] = "AccountEndpoint=http://127.0.0.1:9/;AccountKey=a2V5;"
	b.env["COSMOS_DATABASE"] = "invoices"
	for _, command := range []string{
		"migrate up", "migrate status", "ledger adopt --empty", "ledger status", "column check",
	} {
		require.Equal(t, exitFailed, b.run(t, strings.Fields(command)...), command)
		require.Contains(t, b.errors, "`az "+created+"` lets this machine in", command)
	}
}
