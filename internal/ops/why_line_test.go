package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

func TestWhyByLine(t *testing.T) {
	w := newWorld(t, 1, 2)
	line := ops.WhyQuery{Line: 1}
	_, err := w.ops.Why(t.Context(), line)
	require.Equal(t, ops.NotFound, refusal(err))
	require.ErrorContains(t, err, "no document names line 1; the ledger does not know it")

	w.put(result(1, "a", ""))
	e := must(w.ops.Why(t.Context(), line))(t)
	require.Equal(t, id(1), e.ID)
	require.Equal(t,
		&ops.AboutLine{
			Line: 1, Says: "the ledger does not know it: no document was written to it", Others: []ops.DocumentRow{},
		}, e.Line)

	w.run(id(1))
	const older, newer, theirs = "2025-12-17 09:00:00.000000-06:00-0001-1", "2025-12-17 11:00:00.000000-06:00-0001-2",
		"2025-12-17 12:00:00.000000-06:00-0001-1"
	w.put(documentOf(older, "web", 1, "old", ""), documentOf(theirs, "wbe", 1, "wrong environment", ""),
		`{"id":"`+newer+
			`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":2},"post-processing":{"duplicate_detail_uids":["1"]},"sql_writer":{"status":"pending"}}`)
	e = must(w.ops.Why(t.Context(), line))(t)
	require.Equal(t, newer, e.ID, "the newest result of this environment")
	require.Equal(t,
		&ops.LedgerLine{
			Line: 1, Document: id(1), SysName: "web", Outcome: "applied", SourceTS: start().Unix(),
		}, e.Line.Ledger)
	require.Equal(t, `the ledger says: applied by document "`+id(1)+`"`, e.Line.Says)
	var others []string
	for _, row := range e.Line.Others {
		others = append(others, row.ID+" "+row.SysName+" "+row.Status)
	}
	require.Equal(t, []string{id(1) + " web committed", older + " web pending", theirs + " wbe pending"}, others)
	require.True(t, e.Line.Others[2].Foreign)
	require.False(t, e.Line.Others[0].Foreign)
	require.Regexp(t,
		`^a newer result names this line but belongs to the environment "wbe", and this app is "web", so it never takes it: `+theirs+
			` \(pending\)\. The newest of this environment: pending; waiting`, e.Summary)
	require.Contains(t, e.Next, "who wrote the document corrects it. This one: the change feed brings it")

	w.sink.fails = fault.New(fault.Infrastructure, "test: ledger", "refused", "set by the test")
	e, err = w.ops.Why(t.Context(), line)
	require.NoError(t, err, "it goes on without SQL")
	require.Nil(t, e.Line.Ledger)
	require.Contains(t, e.Line.Says, "the ledger cannot be asked: test: ledger: infrastructure refused")
}

// What another environment has of a line is no news when this one has a newer result.
func TestWhyByALineWithAnOlderResultOfAnotherEnvironment(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, "a", ""), documentOf("2025-12-17 09:00:00.000000-06:00-0001-9", "wbe", 1, "old", ""))
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{Line: 1}))(t)
	require.Equal(t, id(1), e.ID)
	require.Regexp(t, "^pending", e.Summary)
	require.NotContains(t, e.Next, "sys_name")
}

// A wrong sys_name is one reason why nothing is written.
func TestWhyByALineOfAnotherEnvironment(t *testing.T) {
	w := newWorld(t)
	w.put(documentOf("theirs", "wbe", 1, "a", ""))
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{Line: 1}))(t)
	require.Equal(t, []string{"theirs", "wbe"}, []string{e.ID, e.SysName})
	require.Contains(t, e.Summary, `it belongs to the environment "wbe", this app is "web"`)
}

func TestWhyRefusesNeitherAndBoth(t *testing.T) {
	w := newWorld(t)
	for _, q := range []ops.WhyQuery{{}, {ID: "a", Line: 1}, {Line: -1}} {
		_, err := w.ops.Why(t.Context(), q)
		require.Equal(t, ops.Usage, refusal(err))
	}
}
