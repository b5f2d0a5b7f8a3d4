package sqlserver_test

import (
	"cmp"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
)

// mutant is a write without one of its rules.
type mutant struct {
	name string
	// cut maps texts of the rule to their replacements. procedure has those texts; empty means apply.
	cut       map[string]string
	procedure string
	// noticed is the case of the suite that fails without the rule.
	noticed string
	// covered explains why an engine other than SQL Server passes the case without the rule.
	covered string
}

func mutants() []mutant {
	const (
		refused        = "a refused value in the only document"
		releaseOfOther = "a release of another row than the ledger's is superseded"
		editedBetween  = "an edit between the read and the write of a rewrite is contention, and is found then"
	)
	try := map[string]string{
		"BEGIN TRY BEGIN TRANSACTION": "BEGIN TRANSACTION",
		"END TRY BEGIN CATCH IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; THROW; END CATCH;": "",
	}
	none := maps.Clone(try)
	none["SET XACT_ABORT ON;"] = ""
	return []mutant{
		{
			name:    "without the guard",
			cut:     map[string]string{"l.version_us < s.version_us OR (l.version_us": "1 = 1 OR (l.version_us"},
			noticed: "the newer result wins: newer first, and names itself",
		},
		{
			name: "without the source_ts rule", cut: map[string]string{"AND l.source_ts <= s.source_ts": ""},
			noticed: "equal version, earlier snapshot, other content: superseded by itself",
		},
		{
			name: "without the evidence rule", cut: map[string]string{"ELSE 'none'": "ELSE 'superseded'"},
			noticed: "newer's UPDATE, the older one whole, newer's INSERT: contention, and then the newer",
		},
		{
			name: "without the row count of IVCE_TRKG_MSTR",
			cut: map[string]string{
				"IF @written <> @content BEGIN SET @note = CONCAT(N'sqlwriter: IVCE_TRKG_MSTR": "IF 1 = 0 BEGIN SET @note = CONCAT(N'sqlwriter: IVCE_TRKG_MSTR",
			},
			noticed: "a tracking row that somebody else makes in between is contention, and then updated",
		},
		{
			name: "without the row count of IVCE_DTL",
			cut: map[string]string{
				"IF @written <> @content BEGIN SET @note = CONCAT(N'sqlwriter: IVCE_DTL": "IF 1 = 0 BEGIN SET @note = CONCAT(N'sqlwriter: IVCE_DTL",
			},
			noticed: "a detail row that somebody else deletes in between is contention, and nothing is written",
		},
		{
			name: "without the row count of a mark", cut: map[string]string{"IF @written <> @marks": "IF 1 = 0"},
			noticed: "a detail row that somebody else deletes before a mark is contention, and nothing is marked",
		},
		{
			name: "without pruning", cut: map[string]string{"IF @missing > 0 OR @twice = 1": "IF 1 = 0"},
			noticed: "a missing duplicate leaves the whole document out",
		},
		{
			name:    "without the raise of source_ts",
			cut:     map[string]string{"AND l.source_ts < s.source_ts OPTION": "AND 1 = 0 OPTION"},
			noticed: "unchanged raises source_ts alone, and then an older correction stays out",
		},
		{
			name: "without the number of the heartbeat", cut: map[string]string{"IF @there < @number": "IF 1 = 0"},
			noticed: "a write to a database that went back is refused, whatever is written, and a preview is not",
		},
		{
			name:    "without the id of the heartbeat",
			cut:     map[string]string{"IF @there_id IS NULL OR @there_id <> COALESCE(@database_id, '')": "IF 1 = 0"},
			noticed: "a write to a database that went back is refused, whatever is written, and a preview is not",
		},
		{
			name: "a heartbeat that raises whatever it finds", procedure: "heartbeat",
			cut:     map[string]string{"@number = 0 OR @take_over = 1 OR (": "1 = 1 OR ("},
			noticed: "a heartbeat refuses a database that went back, and leaves it as it is",
		},
		{
			name: "a heartbeat by a counter", procedure: "heartbeat",
			cut:     map[string]string{"CASE WHEN @number >= @clock THEN @number + 1 ELSE @clock END": "@number + 1"},
			noticed: "a heartbeat's number is the time, and one more than a number that is ahead of it",
		},
		{
			name: "a takeover that keeps the id", procedure: "heartbeat",
			cut:     map[string]string{"CASE WHEN @take_over = 1 THEN NEWID() ELSE h.database_id END": "h.database_id"},
			noticed: "a takeover gives the row a new id and a number above all that is known",
		},
		{
			name: "a rewrite that does not repeat what it read of IVCE_DTL", procedure: "rewrite",
			cut:     map[string]string{"= s.detail_seen": "IS NOT NULL"},
			noticed: editedBetween,
		},
		{
			name: "a rewrite that does not repeat what it read of IVCE_TRKG_MSTR", procedure: "rewrite",
			cut:     map[string]string{"= s.tracking_seen": "IS NOT NULL"},
			noticed: editedBetween,
		},
		{
			name: "a rewrite that writes the status", procedure: "rewrite",
			cut: map[string]string{
				"CASE WHEN s.keep_status = 1 THEN t.[IVCE_LNE_STAT]": "CASE WHEN 1 = 0 THEN t.[IVCE_LNE_STAT]",
			},
			noticed: "a rewrite keeps a status that a steward set, on each line and in both tables",
		},
		{
			name: "a rewrite that keeps any status", procedure: "rewrite_read",
			cut:     map[string]string{"THEN 0 ELSE 1 END AS keep_status": "THEN 1 ELSE 1 END AS keep_status"},
			noticed: "a rewrite with newer content writes its status",
		},
		{
			name: "a release of any write", procedure: "rewrite",
			cut:     map[string]string{"AND p.write_id = LOWER(CAST(l.write_id AS varchar(36)))": ""},
			noticed: releaseOfOther,
		},
		{
			name: "a release of any document", procedure: "rewrite",
			cut: map[string]string{
				"AND CAST(SUBSTRING(@hashes, 32 * p.document_key + 1, 32) AS binary(32)) = l.document_key": "",
			},
			noticed: releaseOfOther,
		},
		{
			name: "a release of what was written again", procedure: "rewrite",
			cut:     map[string]string{"AND p.source_ts = l.source_ts": ""},
			noticed: "a release is superseded when the newer document was written with the same content again",
		},
		{
			name: "a line that is left alone keeps others from it", procedure: "rewrite",
			cut:     map[string]string{"c.left_out, c.verdict ORDER": "c.left_out ORDER"},
			noticed: "two documents on an edited line are both left alone",
		},
		{
			name: "a line that is left alone wins", procedure: "rewrite",
			cut:     map[string]string{"AND s.verdict = 'applied' THEN 1 ELSE 0 END": "THEN 1 ELSE 0 END"},
			noticed: "a rewrite writes lines that nobody edited, and no others",
		},
		{name: "without XACT_ABORT, TRY and CATCH", cut: none, noticed: refused},
		{
			name: "without TRY and CATCH", cut: try, noticed: "the user's trigger on IVCE_DTL refuses a row",
			covered: "RAISERROR ends the batch there as THROW does",
		},
	}
}

// Without a rule of the write its case must fail on the rows, not only the golden.
func TestEveryRuleOfTheWriteIsHeldByACase(t *testing.T) {
	d := newDatabase(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			require.Empty(t, conformance.CaseFailure(t, d.harness(t), m.noticed), "the case passes with the rule")
			failure := conformance.CaseFailure(t,
				d.without(t, cmp.Or(m.procedure, "apply"), m.cut).harness(t), m.noticed)
			if m.covered != "" && !sqlservertest.IsReal(d.version) {
				require.Empty(t, failure, "the case fails here too, so this is no longer true: %s", m.covered)
				t.Logf("the case passes on this engine: %s", m.covered)
				return
			}
			require.NotEmpty(t, failure, "the case passes without the rule")
		})
	}
}

// A failed request must leave no open transaction on its connection, because the pool would keep its locks.
// XACT_ABORT rolls back where TRY catches nothing, such as after a missing table.
func TestAFailedRequestLeavesNothingLocked(t *testing.T) {
	d := newDatabase(t)
	require.NoError(t, leftover(t, d))
	left := leftover(t, d.without(t, "apply", map[string]string{"SET XACT_ABORT ON;": ""}))
	if !sqlservertest.IsReal(d.version) {
		require.NoError(t, left, "this engine undoes every failed batch by itself")
		return
	}
	require.Error(t, left, "the case passes without XACT_ABORT")
}

// without is the database with some texts of a procedure removed.
func (d *database) without(t testing.TB, procedure string, cut map[string]string) *database {
	t.Helper()
	other := *d
	var err error
	other.store, err = d.store.Without(t.Context(), procedure, cut)
	require.NoError(t, err)
	return &other
}
