package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
)

// unadopt deletes the adoption state of the stack's database.
func (s *stack) unadopt() {
	s.t.Helper()
	s.withStore(func(store *sqlite.Store) {
		_, err := store.Writer().ExecContext(s.t.Context(), `DELETE FROM sqlwriter_adoption`)
		require.NoError(s.t, err)
	})
}

func (s *stack) withStore(f func(*sqlite.Store)) {
	s.t.Helper()
	store, err := sqlite.Open(s.t.Context(), s.path, sqlite.Options{})
	require.NoError(s.t, err)
	f(store)
	require.NoError(s.t, store.Close())
}

// Without an adopted ledger nothing is committed: the feed waits, and Health names the command. After the adoption the
// process continues by itself.
func TestNothingIsCommittedBeforeTheLedgerIsAdopted(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.unadopt()
	p := start(t, s.settings)
	problem := func() string { _, body := p.health(); return fmt.Sprint(body["problems"]) }
	require.Eventually(t, func() bool {
		return strings.Contains(problem(), "ledger_not_adopted")
	}, patience, 20*time.Millisecond)
	require.Contains(t, problem(), "sqlwriterctl ledger adopt")
	status, body := p.health()
	require.Equal(t, "503", status)
	require.Equal(t, "live", body["mode"])
	batch, answered := envelope(t, s.submit(1, 3, "")), make(chan string, 1)
	go func() { // the request waits for readiness
		text, err := p.post("/CommitResults", batch)
		if err != nil {
			text = "no answer: " + err.Error()
		}
		answered <- text
	}()
	var run adopt.State
	s.withStore(func(store *sqlite.Store) {
		var err error
		run, err = store.Begin(t.Context(), adopt.State{}, "me")
		require.NoError(t, err)
	})
	require.Contains(t, problem(), "ledger_not_adopted", "begun is not done")
	require.Zero(t, s.count(`SELECT count(*) FROM sqlwriter_ledger`))
	require.Empty(t, answered)
	s.withStore(func(store *sqlite.Store) {
		_, err := store.Finish(t.Context(), run.Run, 0)
		require.NoError(t, err)
	})
	require.Contains(t, <-answered, "2 applied")
	p.waitReady()
	require.Equal(t, "[]", problem())

	told := func() int { return strings.Count(p.stdout.String(), `"event":"second_writer"`) }
	for n, committedAt := range []string{
		"2025-12-17 10:30:15.123456-06:00", invoice.Stamp(time.Now().Add(time.Minute), time.UTC),
	} {
		doc := fmt.Sprintf(
			`{"id":"2025-12-17 10:30:00.000000-06:00-9%d","_ts":1765989015,"_etag":"x","request_details":{"sys_name":"web"},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":9},"process_output":{},"sql_writer":{"status":"committed","committed_at":%q}}`, n, committedAt)
		_, err := p.post("/CommitResults", envelope(t, []json.RawMessage{json.RawMessage(doc)}))
		require.NoError(t, err)
	}
	later := regexp.MustCompile(`"event":"second_writer"[^\n]*-06:00-91"`)
	require.Eventually(t, func() bool {
		return later.MatchString(p.stdout.String())
	}, patience, 20*time.Millisecond, "what ended after the adoption is told")
	require.Equal(t, 1, told(), "what ended before it is not")
}

// A shadow needs no adopted ledger, because it writes nothing.
func TestShadowWritesNothingAndNeedsNoAdoption(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.unadopt()
	s.settings["MODE"] = "shadow"
	p := start(t, s.settings)
	p.waitReady()
	_, body := p.health()
	require.Equal(t, "shadow", body["mode"])
	docs := s.submit(1, 4, "payload-marker")
	code, text := p.send(http.MethodPost, "/CommitResults", envelope(t, docs))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "3 documents: 3 would_be_applied")
	require.Equal(t, map[string]int{`"pending"`: 3}, s.statuses(), "no document was touched")
	require.Zero(t, s.count(`SELECT count(*) FROM sqlwriter_ledger`))
	require.Zero(t, s.count(`SELECT count(*) FROM IVCE_TRKG_MSTR`))
	require.Zero(t, s.count(`SELECT count(*) FROM IVCE_DTL WHERE CLN_MFR_PRT_NUM IS NOT NULL`))
	require.Eventually(t, func() bool {
		return strings.Contains(p.stdout.String(), `"outcomes":{"would_be_applied":3}`)
	}, patience, 5*time.Millisecond)
	require.Contains(t, p.stdout.String(), `"mode":"shadow"`)
	require.NotContains(t, p.stdout.String(), "payload-marker")
}
