package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// recorder keeps what the app's doctor is asked.
type recorder struct {
	http.RoundTripper
	bodies []string
}

func (k *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/doctor") {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		k.bodies = append(k.bodies, string(text))
		if err != nil {
			return nil, err
		}
	}
	return k.RoundTripper.RoundTrip(r)
}

// The feed is looked at when it is asked for, and then alone. It needs the leases.
func TestDoctorSendsWhenAsked(t *testing.T) {
	p := newPatient(t)
	p.rows = append(p.rows, ops.DoctorRow{Name: ops.RowFeed, State: ops.RowOK, Found: "seen after 8 ms"})
	asked := &recorder{RoundTripper: p.http.Transport}
	p.http.Transport = asked
	_, rows := p.diagnosed(t, exitOK)
	require.NotContains(t, rows, ops.RowFeed)
	found, rows := p.diagnosed(t, exitOK, "--app", "func-x", "--send")
	require.Equal(t, p.rows[len(p.rows)-1], rows[ops.RowFeed])
	require.Equal(t, ops.RowFeed, found.Rows[len(found.Rows)-1].Name)
	require.Equal(t, []string{"{}", `{"send":true}`}, asked.bodies)
	p.rows[2].State, p.rows[len(p.rows)-1].State = ops.RowWrong, ops.RowWrong
	found, _ = p.diagnosed(t, exitFailed, "--app", "func-x", "--send")
	require.Equal(t, ops.RowLeases, found.Cause)
}
