package reconcile

import (
	"slices"
	"strings"
)

// Meaning says what a class means for people.
type Meaning struct {
	Class Class
	// Finding: it is kept as a finding. The others are counted only.
	Finding bool
	// Means says what is so, Do what a person does about it. Mends says what the night does by itself; empty if
	// nothing.
	Means, Do, Mends string
}

// Meanings has every class, the findings first.
func Meanings() []Meaning {
	const leave = "nothing"
	return []Meaning{
		{
			Class: RowMissing, Finding: true,
			Means: "the ledger names a line that IVCE_DTL does not have: somebody deleted the row, or the table went back",
			Do:    "find out who deleted it. Only the program that makes lines can make it again; then `sqlwriterctl run start reindex --findings row_missing --why TEXT` fills it",
		},
		{
			Class: TrackingMissing, Finding: true,
			Means: "the line has no row in IVCE_TRKG_MSTR; its row in IVCE_DTL is as written",
			Do:    "nothing if it is gone after the next night; else `sqlwriterctl run start reindex --findings tracking_missing --why TEXT`",
			Mends: "writes the line again, if the document that the ledger names is committed",
		},
		{
			Class: Edited, Finding: true,
			Means: "a value other than the status is not what was written: a person or a program changed the row",
			Do: "nothing: people may correct rows. Many new ones: ask who. If they are wrong: `sqlwriterctl run start reindex --findings edited --dry-run` shows the columns before and " +
				"after, and with --why TEXT instead of --dry-run it writes the document's values again",
		},
		{
			Class: Stale, Finding: true,
			Means: "the line has older content than a committed document, or that document's failure mark: the document was changed after its commit, or the database went back",
			Do: "if it stays for two nights, a person may have edited the line: `sqlwriterctl run start reindex --findings stale --dry-run`, and the same with --why TEXT instead of --dry-run. " +
				"Many at once: docs/runbook.md, \"restored from a backup\"",
			Mends: "writes the document again, if the rows are as the ledger says",
		},
		{
			Class: NotInLedger, Finding: true,
			Means: "a committed document names a line that the ledger does not have: the database went back, or another program made the document committed",
			Do: "if it stays for two nights: `sqlwriterctl run start reindex --findings not_in_ledger --dry-run`, and the same with --why TEXT instead of --dry-run. " +
				"Many at once: docs/runbook.md, \"restored from a backup\"",
			Mends: "writes the document again, if it was committed after the adoption and IVCE_DTL has the line",
		},
		{
			Class: NotNamed, Finding: true,
			Means: "the line has content of a document that dropped it or is gone; an older committed one names it",
			Do: "nothing if it is gone after the next night; else `sqlwriterctl line release LINE --dry-run`, and the same with --why TEXT instead of --dry-run. " +
				"--overwrite-edits, too, where a person edited the line or nobody can tell",
			Mends: "writes the older document to the line, if the newer one is committed and the rows are as it wrote them",
		},
		{
			Class: NoDocument, Finding: true,
			Means: "as `not_named`, and no committed document names the line",
			Do:    leave,
		},
		{
			Class: MarkWithoutAudit, Finding: true,
			Means: "a document has outcome `manual`, and the audit log has no entry of this mark: another program wrote that, or the database went back",
			Do: "if the lines are right: `sqlwriterctl document mark-committed ID --why TEXT`. Else find out who wrote it, and set `sql_writer.status` to pending: " +
				"it is committed like a new one",
		},
		{Class: Consistent, Means: "ledger, rows and document fit, or the document promises nothing", Do: leave},
		{
			Class: Reviewed,
			Means: "only the status of the line differs, and no document gives such a one: a steward's work", Do: leave,
		},
		{
			Class: NotComparable,
			Means: "the ledger does not say what was written: an adopted line, or one of a mapping whose columns are not all in the one in use; `sqlwriterctl status` names both",
			Do:    "nothing. It becomes comparable when it is written again (docs/adr/0031-rewrites-respect-people.md has the price)",
		},
		{
			Class: Archived,
			Means: "its row in IVCE_DTL is gone, and it was written before `LINES_KEPT_DAYS`",
			Do:    "nothing. More than were archived: the setting hides losses",
		},
		{
			Class: Changing, Means: "it changed between the two looks",
			Do: "nothing: the next comparison looks again",
		},
		{
			Class: Impossible,
			Means: "its states exclude each other: a mistake of this program; event comparison_impossible has them",
			Do:    "report it with the event's line; the other lines and documents were compared",
		},
		{
			Class: Unlisted,
			Means: "a finding that is not listed, because its class has 10,000; it is counted in its class, too",
			Do:    "mend what is listed, then `sqlwriterctl finding compare --all --why TEXT`",
		},
		{
			Class: NewEdits, Means: "an edited line that no earlier comparison found; it is counted as `edited`, too",
			Do: "ask who, if there are many",
		},
	}
}

// MeaningOf finds the meaning of a class in any case; false if there is no such class.
func MeaningOf(class string) (Meaning, bool) {
	all := Meanings()
	i := slices.IndexFunc(all, func(m Meaning) bool { return strings.EqualFold(string(m.Class), class) })
	if i < 0 {
		return Meaning{}, false
	}
	return all[i], true
}
