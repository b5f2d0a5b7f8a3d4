package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/standin/cosmosdb"
)

var update = flag.Bool("update", false, "rewrite what is produced from the table of settings")

// good are settings that Load accepts: those of the sample file.
func good(t *testing.T) map[string]string {
	t.Helper()
	var sample struct{ Values map[string]string }
	require.NoError(t, json.Unmarshal(Sample(), &sample))
	return sample.Values
}

func load(values map[string]string) (Config, error) {
	return Load(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
}

func TestTheSampleIsAGoodSetOfSettings(t *testing.T) {
	c, err := load(good(t))
	require.NoError(t, err)
	require.Equal(t, "web", c.SysName)
	require.Equal(t, ModeLive, c.Mode)
	require.Equal(t, "America/Chicago", c.Location.String())
	require.Equal(t, SQL{
		Engine: SQLite, Connection: "sqlite:../.local/sqlwriter.db", Schema: "dbo", MaxOpen: 10, MaxRows: 1000,
	}, c.SQL)
	require.Equal(t, "AI_PROCESS_LOGS", c.Cosmos.Container)
	require.Equal(t, "AccountEndpoint=http://127.0.0.1:8081/;AccountKey="+cosmosdb.DefaultKey+";", c.Cosmos.Connection.Reveal())
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	c, err := load(map[string]string{TimeZone: "Mars/Olympus", SQLMaxRows: "0"})
	var problems Problems
	require.True(t, errors.As(err, &problems))
	var names []string
	for _, p := range problems {
		names = append(names, p.Setting)
	}
	require.Equal(t, []string{
		LeasePrefix, TimeZone, CosmosConnection, CosmosDatabase, CosmosContainer, LeaseContainer, SQLConnection, SQLMaxRows,
	}, names)
	require.Equal(t, "info", c.LogLevel)
	require.NotNil(t, c.Location)
}

func TestEachSettingIsChecked(t *testing.T) {
	const pass = "pa55word"
	for _, c := range []struct {
		name, value, expected, found string
	}{
		{SysName, "we b", "letters, digits, - and _", "the character ' '"},
		{LeasePrefix, "dev-", `a text that begins with "web-"`, `"dev-"`},
		{LeasePrefix, "webs-", `a text that begins with "web-"`, `"webs-"`},
		{TimeZone, "CST6", "an IANA time zone", `"CST6"`},
		{TimeZone, "Local", "an IANA time zone", `"Local"`},
		{LogLevel, "loud", "one of debug, info, warn, error", `"loud"`},
		{CosmosConnection, "", "a value: the host reads it too", "nothing"},
		{Mode, "Shadow", "one of live, shadow", `"Shadow"`},
		{CosmosConnection, pass, "AccountEndpoint=...;AccountKey=...;", "a text of 8 characters without AccountEndpoint"},
		{CosmosConnection, "AccountEndpoint=https://" + pass + "/;AccountKey=", "AccountKey", "without AccountKey"},
		{CosmosEndpoint, "http://" + pass, "https://NAME.documents.azure.com:443/", "a text of 15 characters"},
		{CosmosClientID, "0000", CosmosEndpoint + " beside it", "alone"},
		{LeaseContainer, "AI_PROCESS_LOGS", "another container than " + CosmosContainer, "the same name"},
		{SQLConnection, "sqlserver:sa:" + pass + "@db:1433", "sqlserver://... or sqlite:PATH", "sqlserver: without // behind it"},
		{SQLConnection, "postgres://u:" + pass + "@db", "sqlite:PATH", `the scheme "postgres"`},
		{SQLConnection, "server=db;password=" + pass, "sqlite:PATH", "a text of 27 characters without a scheme"},
		{SQLConnection, "server=db;password=" + pass + ":1", "sqlite:PATH", "a text of 29 characters without a scheme"},
		{SQLConnection, "sqlite:", "sqlite:PATH", "no path"},
		{SQLSchema, " dbo", "the name of a schema", `blanks around " dbo"`},
		{SQLSchema, strings.Repeat("s", 129), "the name of a schema", "a text of 129 characters"},
		{SQLSchema, "d\x00bo", "the name of a schema", "a text of 4 characters that cannot be one"},
		{SQLMaxOpen, "0", "a whole number from 1 to 100", `"0"`},
		{SQLMaxOpen, "101", "a whole number from 1 to 100", `"101"`},
		{SQLMaxRows, "many", "a whole number from 1 to 10000", `"many"`},
		{SQLMaxRows, "10001", "a whole number from 1 to 10000", `"10001"`},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			values := good(t)
			values[c.name] = c.value
			_, err := load(values)
			var problems Problems
			require.True(t, errors.As(err, &problems), "%v", err)
			var lines []string
			for _, p := range problems {
				if p.Setting == c.name {
					lines = append(lines, p.String())
				}
			}
			require.Len(t, lines, 1, "%v", problems)
			require.Contains(t, lines[0], c.expected)
			require.Contains(t, lines[0], c.found)
			require.NotContains(t, err.Error(), pass)
		})
	}
}

func TestTheSchemeSaysWhichEngine(t *testing.T) {
	for connection, want := range map[string]Engine{
		"sqlserver://sa:p@db?database=d": SQLServer, "sqlite:x.db": SQLite, "sqlserver:x": "", "": "", "server=db": "",
	} {
		require.Equal(t, want, EngineOf(connection), connection)
	}
	values := good(t)
	values[SQLConnection], values[SQLSchema], values[SQLMaxOpen], values[ColumnNames] = "sqlserver://sa:p@db?database=d", "inv", "20", "column-names.json"
	values["WEBSITE_SITE_NAME"] = "app"
	c, err := load(values)
	require.NoError(t, err)
	require.Equal(t, SQL{
		Engine: SQLServer, Connection: "sqlserver://sa:p@db?database=d", Schema: "inv", ColumnNames: "column-names.json", MaxOpen: 20, MaxRows: 1000,
	}, c.SQL)
}

func TestSQLiteIsRefusedInAzure(t *testing.T) {
	values := good(t)
	values["WEBSITE_SITE_NAME"] = "app"
	_, err := load(values)
	require.ErrorContains(t, err, "sqlite: its file would be lost with the instance")
}

func TestAnIdentityTakesTheConnectionStringsPlace(t *testing.T) {
	values := good(t)
	delete(values, CosmosConnection)
	values[CosmosEndpoint], values[CosmosClientID] = "https://a.documents.azure.com:443/", "0000"
	_, err := load(values)
	require.ErrorContains(t, err, "COSMOS_CONNECTION__credential=managedidentity", "the host's trigger wants it beside the client id")
	values[CosmosCredential] = "managedidentity"
	c, err := load(values)
	require.NoError(t, err)
	require.Equal(t, "https://a.documents.azure.com:443/", c.Cosmos.Endpoint)
	require.Equal(t, "0000", c.Cosmos.ClientID)

	values[CosmosConnection] = good(t)[CosmosConnection]
	_, err = load(values)
	require.ErrorContains(t, err, "not both")
}

func TestASecretDoesNotPrint(t *testing.T) {
	c := Cosmos{Connection: "key-marker"}
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.Connection.String(), string(encoded)} {
		require.NotContains(t, text, "key-marker")
		require.Contains(t, text, "(secret)")
	}
	require.Equal(t, "key-marker", c.Connection.Reveal())
}

func TestEverySecretSettingHidesItsValue(t *testing.T) {
	for _, s := range Settings() {
		if !s.Secret {
			continue
		}
		for _, value := range []string{"marker", "marker:", "x:marker", "sqlite:marker", "sqlserver://marker", "AccountKey=marker", "marker=1"} {
			values := good(t)
			values["WEBSITE_SITE_NAME"], values[s.Name] = "app", value
			_, err := load(values)
			if s.Name == SQLConnection && value == "sqlserver://marker" {
				require.NoError(t, err, "of the right form; the adapter reads the rest")
				continue
			}
			require.Error(t, err)
			require.NotContains(t, err.Error(), "marker", s.Name)
		}
	}
}

func TestProducedSampleFile(t *testing.T) {
	const path = "../../local.settings.sample.json"
	if *update {
		require.NoError(t, os.WriteFile(path, Sample(), 0o600))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(Sample()), string(got), "make update rewrites it")
}

func TestProducedTableInReadme(t *testing.T) {
	const path = "../../README.md"
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), TableBegin+"\n")
	require.True(t, found, "%s in README.md", TableBegin)
	table, after, found := strings.Cut(rest, TableEnd)
	require.True(t, found, "%s in README.md", TableEnd)
	if *update && table != Table() {
		require.NoError(t, os.WriteFile(path, []byte(before+TableBegin+"\n"+Table()+TableEnd+after), 0o600))
		table = Table()
	}
	require.Equal(t, Table(), table, "make update rewrites it")
}
