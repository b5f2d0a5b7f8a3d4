package cosmos

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// TestEveryAnswerHasItsKind sends each status through the real SDK to a read, a patch and a query.
func TestEveryAnswerHasItsKind(t *testing.T) {
	const (
		infra = fault.Infrastructure
		doc   = fault.Document
	)
	for _, c := range []struct {
		status    int
		substatus string
		code      string
		// one is the meaning for one document, many for a query.
		one, many fault.Kind
		condition fault.Condition
	}{
		{400, "", "400", doc, infra, ""},
		{400, "1001", "400/1001", doc, infra, ""},
		{400, "1004", "400/1004", doc, infra, ""},
		{401, "", "401", infra, infra, ""},
		{403, "", "403", infra, infra, ""},
		{403, "5300", "403/5300", infra, infra, ""},
		{403, "5301", "403/5301", infra, infra, ""},
		{404, "", "404", doc, infra, fault.Gone},
		{404, "0", "404", doc, infra, fault.Gone},
		{404, "1002", "404/1002", infra, infra, ""},
		{404, "1003", "404/1003", infra, infra, ""},
		{404, "1013", "404/1013", infra, infra, ""},
		{408, "", "408", infra, infra, ""},
		{409, "", "409", doc, infra, ""},
		{410, "1002", "410/1002", infra, infra, ""},
		{412, "", "412", fault.Contention, infra, fault.Changed},
		{413, "", "413", doc, infra, fault.TooLarge},
		{418, "", "418", doc, infra, ""},
		{429, "3200", "429/3200", fault.Throttled, fault.Throttled, ""},
		{449, "", "449", fault.Contention, fault.Contention, ""},
		{500, "", "500", infra, infra, ""},
		{502, "", "502", infra, infra, ""},
		{503, "", "503", infra, infra, ""},
		{504, "", "504", infra, infra, ""},
		{299 + 7, "", "306", infra, infra, ""},
	} {
		t.Run(fmt.Sprintf("%d_%s", c.status, c.substatus), func(t *testing.T) {
			t.Parallel()
			_, container := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.substatus != "" {
					w.Header().Set("x-ms-substatus", c.substatus)
				}
				w.Header().Set("x-ms-retry-after-ms", "1")
				w.Header().Set("x-ms-activity-id", "act-1")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"code":"x","message":"the payload is {\"secret\":\"PAYLOAD\"}"}`)
			})
			_, readErr := container.Read(t.Context(), "a")
			_, recordErr := container.Record(t.Context(), at("a", `"1"`), invoice.State{})
			_, manyErr := container.ReadMany(t.Context(), []string{"a"})
			queryErr := container.Query(t.Context(), "SELECT c.id FROM c", nil, nil)
			for name, err := range map[string]error{
				"read": readErr, "record": recordErr, "read many": manyErr, "query": queryErr,
			} {
				e := fault.As(err)
				require.NotNil(t, e, name)
				kind, condition := c.one, c.condition
				if name == "read many" || name == "query" {
					kind, condition = c.many, fault.NoCondition
				}
				if c.status == http.StatusInternalServerError {
					condition = fault.NoCondition
				}
				require.Equal(t, kind, e.Kind, name)
				require.Equal(t, condition, e.Condition, name)
				require.Equal(t, c.code, e.Code, name)
				require.Equal(t, "cosmos: "+name, e.Op)
				require.NotEmpty(t, e.Reason)
				require.Contains(t, err.Error(), "act-1", "the service's own id of the call helps its support")
				require.NotContains(t, err.Error(), "PAYLOAD")
				require.NotContains(t, err.Error(), "\n")
				var answer *azcore.ResponseError
				require.ErrorAs(t, err, &answer, "the cause stays reachable")
			}
		})
	}
}

// The words are the service's (azure-cosmos-dotnet-v3 issue 3110): of them the action and the resource are told.
func TestAMissingRoleNamesTheResource(t *testing.T) {
	t.Parallel()
	_, container := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-substatus", "5301")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"Forbidden","message":"Request blocked by Auth ACCOUNT : Request is blocked because `+
			`principal [PRINCIPAL] does not have required RBAC permissions to perform action `+
			`[Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [dbs/invoices]. Learn more: https://aka.ms/cosmos-native-rbac."}`)
	})
	_, err := container.Read(t.Context(), "a")
	require.Equal(t, "the identity has no role for documents in the database: it may not "+
		"Microsoft.DocumentDB/databaseAccounts/readMetadata on dbs/invoices", fault.As(err).Reason)
	require.NotContains(t, err.Error(), "PRINCIPAL")
}

// TestErrorsKeepKeysAndDocumentsToThemselves checks the text that an operator reads. DO name the host and the system's
// error. DON'T show the key, the document or the state.
func TestErrorsKeepKeysAndDocumentsToThemselves(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	c := open(t, "http://"+address, "")
	state := invoice.State{LastError: "STATE-SECRET"}
	_, err = c.Record(t.Context(), at("PRIVATE-ID", `"1"`), state)
	require.Equal(t, "refused", fault.CodeOf(err))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Contains(t, err.Error(), address)
	for _, private := range []string{"STATE-SECRET", "PRIVATE-ID", strings.TrimRight(secret, "=")[:12]} {
		require.NotContains(t, err.Error(), private)
	}
	require.NotContains(t,
		fmt.Sprintf("%v %+v", err, c.Submit(t.Context(), json.RawMessage(`{"id":1,"x":"STATE-SECRET"}`), false)),
		"STATE-SECRET")
}

func TestRetryAfterIsHandedOn(t *testing.T) {
	for header, value := range map[string]string{
		"x-ms-retry-after-ms": "2750", "retry-after-ms": "2750", "Retry-After": "3",
	} {
		f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := c.Read(t.Context(), "a")
		n, convErr := strconv.Atoi(value)
		require.NoError(t, convErr)
		want := time.Duration(n) * time.Millisecond
		if header == "Retry-After" {
			want = time.Duration(n) * time.Second
		}
		e := fault.As(err)
		require.NotNil(t, e)
		require.Equal(t, fault.Throttled, e.Kind)
		require.Equal(t, want, e.RetryAfter)
		require.EqualValues(t, 1, f.hits.Load(), "a wait above 2 s is not waited for")
	}
}
