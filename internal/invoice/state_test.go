package invoice_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/invoice"
)

func ExampleState_MarshalJSON() {
	b, err := json.Marshal(invoice.State{
		Status: invoice.Committed, Outcome: "applied", CommittedAt: "2025-12-17 10:30:15.123456-06:00",
		Extra: map[string]json.RawMessage{"ticket": json.RawMessage("17.0")},
	})
	fmt.Println(string(b), err)
	// Output: {"status":"committed","retry_count":0,"outcome":"applied","committed_at":"2025-12-17 10:30:15.123456-06:00","ticket":17.0} <nil>
}

func states() *rapid.Generator[invoice.State] {
	attempt := rapid.Custom(func(t *rapid.T) invoice.Attempt {
		return invoice.Attempt{
			At: rapid.String().Draw(t, "at"), Kind: rapid.String().Draw(t, "kind"),
			Error: rapid.String().Draw(t, "error"), NextTry: rapid.String().Draw(t, "next try"),
		}
	})
	extra := rapid.SampledFrom(
		[]string{`1`, `1.0`, `"a b"`, `{"b": [ 1 ]}`, `null`, `true`, `"<&>"`, `1e400`, `"\u00e9"`})
	return rapid.Custom(func(t *rapid.T) invoice.State {
		status := rapid.SampledFrom([]invoice.Status{
			invoice.Pending, invoice.RetryScheduled, invoice.Committed, invoice.Failed, invoice.Processing, "paused",
		}).Draw(t, "status")
		text := func(name string) string { return rapid.String().Draw(t, name) }
		s := invoice.State{
			Present: true, Status: status, StatusFound: string(status), Outcome: invoice.Outcome(text("outcome")),
			SupersededBy: text("superseded by"), RetryCount: rapid.IntRange(0, 9).Draw(t, "retry count"),
			RetryAfter: rapid.Int64Range(0, 1<<60).Draw(t, "retry after"), Postponed: rapid.Bool().Draw(t, "postponed"),
			LastError:   text("last error"),
			LastErrorAt: text("at"), LastErrorKind: text("kind"), CommittedAt: text("committed"),
			FailedAt: text("failed"),
			Error:    text("error"), FinalError: text("final"),
			ReprocessCount: rapid.IntRange(0, 9).Draw(t, "reprocess"),
			Version:        rapid.Int64Range(0, 1<<62).Draw(t, "version"),
			Attempts:       rapid.SliceOfN(attempt, 1, 10).Draw(t, "attempts"),
		}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`x[a-z"<\\]{0,3}`), 0, 3).Draw(t, "names") {
			if s.Extra == nil {
				s.Extra = map[string]json.RawMessage{}
			}
			s.Extra[name] = json.RawMessage(extra.Draw(t, "extra"))
		}
		return s
	})
}

func TestAStateSurvivesWritingAndReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := states().Draw(t, "state")
		b, err := want.MarshalJSON()
		require.NoError(t, err)
		var got invoice.State
		require.NoError(t, got.UnmarshalJSON(b))
		require.Equal(t, want, got, "members that we do not know must not change by a byte")
		d, err := invoice.Reader{}.Read([]byte(`{"id":"doc1","sql_writer":`+string(b)+`}`), rulesNow())
		require.NoError(t, err)
		require.Equal(t, want, d.State)
	})
}

func TestReadersAlwaysFindStatusAndRetryCount(t *testing.T) {
	b, err := json.Marshal(invoice.State{Status: invoice.Pending})
	require.NoError(t, err)
	require.Equal(t, `{"status":"pending","retry_count":0}`, string(b))
}

func TestAStateWithoutAStatusIsNeverWrittenAsPending(t *testing.T) {
	b, err := json.Marshal(invoice.State{RetryCount: 1})
	require.NoError(t, err)
	require.Equal(t, `{"retry_count":1}`, string(b), "else to write it would offer the document")
}

func TestPostponedIsWrittenOnlyWhenTrue(t *testing.T) {
	b, err := json.Marshal(invoice.State{Status: invoice.RetryScheduled, Postponed: true})
	require.NoError(t, err)
	require.Equal(t, `{"status":"retry_scheduled","retry_count":0,"postponed":true}`, string(b))
}

func TestAStateStaysSmallWhateverWentWrong(t *testing.T) {
	long := strings.Repeat("🔩", 5000)
	s := invoice.State{Status: invoice.Failed, LastError: long, Error: long, FinalError: long}
	for i := range 25 {
		s.Attempts = append(s.Attempts, invoice.Attempt{At: fmt.Sprint(i), Kind: "document", Error: long})
	}
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Less(t, len(b), 15*1024)
	var got invoice.State
	require.NoError(t, json.Unmarshal(b, &got))
	require.Len(t, got.Attempts, invoice.MaxAttempts)
	require.Equal(t, "15", got.Attempts[0].At, "the oldest go first")
	require.Equal(t, "24", got.Attempts[9].At)
	for _, text := range []string{got.LastError, got.Error, got.FinalError, got.Attempts[0].Error} {
		require.LessOrEqual(t, len(text), invoice.MaxErrorBytes)
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\uFFFD")
	}
	require.Len(t, s.Attempts, 25, "writing a state does not change it")
}

func TestExtraNeverReplacesOurOwnMembers(t *testing.T) {
	b, err := json.Marshal(invoice.State{Status: invoice.Committed, Extra: map[string]json.RawMessage{
		"status": json.RawMessage(`"pending"`), "error": json.RawMessage(`"x"`), "empty": nil,
		"kept": json.RawMessage(`1`),
	}})
	require.NoError(t, err)
	require.Equal(t, `{"status":"committed","retry_count":0,"kept":1}`, string(b))
}

func TestMistypedMembersOfOursNeverFail(t *testing.T) {
	for _, value := range []string{
		`null`, `true`, `-1`, `1.5`, `1e999`, `"x"`, `""`, `[]`, `[1,{"at":[]}]`, `{}`, `{"a":1}`,
	} {
		members := []string{
			"status", "retry_count", "outcome", "superseded_by", "retry_after", "postponed",
			"last_error", "last_error_at",
			"last_error_kind", "committed_at", "failed_at", "error", "final_error",
			"reprocess_count", "version", "attempts",
		}
		var parts []string
		for _, m := range members {
			parts = append(parts, fmt.Sprintf("%q:%s", m, value))
		}
		var s invoice.State
		require.NoError(t, json.Unmarshal([]byte("{"+strings.Join(parts, ",")+"}"), &s), value)
		require.True(t, s.Present)
		require.Empty(t, s.Extra, value)
		require.GreaterOrEqual(t, s.RetryCount, 0)
		require.GreaterOrEqual(t, s.Version, int64(0))
		_, err := json.Marshal(s)
		require.NoError(t, err)
	}
}

func TestAStateIsAnObjectOrNull(t *testing.T) {
	var s invoice.State
	require.NoError(t, s.UnmarshalJSON([]byte(" null ")))
	require.Equal(t, invoice.State{}, s)
	require.Error(t, s.UnmarshalJSON([]byte(`"pending"`)))
	require.Error(t, s.UnmarshalJSON([]byte(`{"status":`)))
	require.Error(t, s.UnmarshalJSON(nil))
}

func TestAfreshKeepsTheHistoryAndForgetsTheFailure(t *testing.T) {
	s := invoice.State{
		Status: invoice.Pending, RetryCount: 5, RetryAfter: 9, Postponed: true, FailedAt: "then",
		Error: "e", FinalError: "f",
		Attempts: []invoice.Attempt{{At: "then"}}, Version: 7, LastError: "e",
	}
	require.True(t, s.ResetByHand())
	fresh := s.Afresh()
	require.False(t, fresh.ResetByHand(), "the next patch must not count another reset")
	require.Equal(t, invoice.State{
		Status: invoice.Pending, ReprocessCount: 1, Attempts: s.Attempts, Version: 7, LastError: "e",
	}, fresh)
}
