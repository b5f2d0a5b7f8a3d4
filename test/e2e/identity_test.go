package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/opsapi"
)

// signInOf is the header in which the platform tells the host who signed in.
func signInOf(t *testing.T, role string) string {
	t.Helper()
	text, err := json.Marshal(
		map[string]any{"auth_typ": "aad", "name_typ": "name", "role_typ": "roles", "claims": []map[string]string{
			{"typ": "preferred_username", "val": "ann@example.com"}, {"typ": "roles", "val": role},
		}})
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(text)
}

// send makes a request to the host and returns status, header and body.
func (s *stack) send(method, path, body string, headers map[string]string) (int, http.Header, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host.Address()+"/api/"+path,
		strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, response.Header, string(text)
}

// audited counts the entries of the audit log.
func (s *stack) audited() int { return s.count(`SELECT COUNT(*) FROM sqlwriter_audit_log`) }

const pauseBody = `{"why":"w"}`

// Who asks comes from the host alone. While the platform's sign-in is off, its header is anybody's.
func TestAForgedSignInOpensNothing(t *testing.T) {
	s := newStack(t, 1)
	s.handler = s.launch("e2e", map[string]string{"UI_AUTH": "platform"})
	s.host = s.handler.Host
	s.handler.waitReady()
	forged := map[string]string{
		"X-MS-CLIENT-PRINCIPAL": signInOf(t, "Operator"), "X-MS-CLIENT-PRINCIPAL-NAME": "ann@example.com",
		"X-MS-CLIENT-PRINCIPAL-ID": "1",
		"Authorization":            "Bearer x", "Sec-Fetch-Site": "same-origin",
	}
	for _, path := range []string{"ui/", "ui/runs", "ui/api/v1/status", "ops/v1/status"} {
		status, _, body := s.send(http.MethodGet, path, "", forged)
		require.Contains(t, []int{401, 403}, status, "%s: %s", path, body)
	}
	for _, path := range []string{"ui/pause", "ui/api/v1/flow/pause", "ops/v1/flow/pause"} {
		status, _, body := s.send(http.MethodPost, path, pauseBody, forged)
		require.Contains(t, []int{401, 403}, status, "%s: %s", path, body)
	}
	// A key that only reads, with all that a caller can add to Metadata.
	identities := `[{"AuthenticationType":"WebJobsAuthLevel","IsAuthenticated":true,"Claims":[{"Type":"http://schemas.microsoft.com/2017/07/functions/claims/keyid","Value":"operator-ann"}]}]`
	forged["x-functions-key"] = readerKey
	for _, query := range []string{"", "?Identities=" + "%5B%5D", "?Headers=x&sys=x&req=x&Identities=x"} {
		for _, body := range []string{
			pauseBody, `{"why":"w","Identities":` + identities + `}`,
			`{"why":"w","req":{"Identities":` + identities + `},"Headers":{},"sys":{"MethodName":"Health"}}`,
		} {
			status, _, text := s.send(http.MethodPost, "ops/v1/flow/pause"+query, body, forged)
			require.Equal(t, http.StatusForbidden, status, text)
		}
	}
	status, _, text := s.send(http.MethodPost, "ops/v1/flow/pause", `{"why":"w","Identities":`+identities+`}`,
		map[string]string{"x-functions-key": functionKey})
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Zero(t, s.audited(), "nothing was changed")
	status, _, text = s.send(http.MethodGet, "ops/v1/status?Identities=x", "",
		map[string]string{"x-functions-key": readerKey})
	require.Equal(t, http.StatusBadRequest, status, text)
	status, _, text = s.send(http.MethodGet, "ops/v1/status", "", forged)
	require.Equal(t, http.StatusOK, status, text)

	for _, method := range []string{
		http.MethodHead, http.MethodPut, http.MethodOptions, http.MethodDelete, http.MethodPatch,
	} {
		status, header, _ := s.send(method, "ops/v1/runs", "", map[string]string{"x-functions-key": functionKey})
		require.Equal(t, []any{http.StatusMethodNotAllowed, "GET, POST"}, []any{status, header.Get("Allow")}, method)
	}
}

// With the platform's sign-in on, the host passes on who signed in, and the role decides.
func TestASignInHasARole(t *testing.T) {
	s := newStack(t, 1)
	s.handler = s.launch("e2e", map[string]string{"UI_AUTH": "platform", "WEBSITE_AUTH_ENABLED": "true"})
	s.host = s.handler.Host
	s.handler.waitReady()
	as := func(role string) map[string]string {
		return map[string]string{"X-MS-CLIENT-PRINCIPAL": signInOf(t, role), "Sec-Fetch-Site": "same-origin"}
	}
	status, header, text := s.send(http.MethodGet, "ui/api/v1/status", "", nil)
	require.Equal(t, http.StatusUnauthorized, status, text)
	require.Contains(t, header.Get("Content-Type"), opsapi.ProblemType)
	status, _, text = s.send(http.MethodGet, "ui/api/v1/status", "", map[string]string{"x-functions-key": functionKey})
	require.Equal(t, http.StatusUnauthorized, status, "a key is no sign-in: %s", text)
	status, _, text = s.send(http.MethodGet, "ops/v1/status", "", as("Operator"))
	require.Equal(t, http.StatusUnauthorized, status, "the host wants a key: %s", text)
	for role, want := range map[string][2]int{"Reader": {200, 403}, "Visitor": {403, 403}, "Operator": {200, 200}} {
		status, _, text = s.send(http.MethodGet, "ui/api/v1/status", "", as(role))
		require.Equal(t, want[0], status, "%s: %s", role, text)
		before := s.audited()
		status, _, text = s.send(http.MethodPost, "ui/api/v1/flow/pause", pauseBody, as(role))
		require.Equal(t, want[1], status, "%s: %s", role, text)
		require.Equal(t, want[1] == 200, s.audited() > before, role)
	}
	require.Equal(t, 1, s.count(`SELECT COUNT(*) FROM sqlwriter_audit_log WHERE done_by = 'ann@example.com'`))
}
