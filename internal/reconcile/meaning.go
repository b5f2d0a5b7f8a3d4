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
	// Means says what is so, Do what a person does about it. Mends says what the timer does by itself; empty if nothing.
	Means, Do, Mends string
}

// Meanings has every class, the findings first.
func Meanings() []Meaning {
	const leave = "nothing"
	return []Meaning{
		{
			Class: RowMissing, Finding: true,
			Means: "the ledger names a line that IVCE_DTL does not have: somebody deleted the row, or the table went back",
			Do: "find out who deleted it. Only the program that makes lines can make it again; then `sqlwriterctl run start reindex --findings row_missing --why TEXT` fills it. " +
				"If it is to stay away: `sqlwriterctl finding accept NAME --why TEXT`",
		},
		{
			Class: TrackingMissing, Finding: true,
			Means: "the line has no row in IVCE_TRKG_MSTR; its row in IVCE_DTL is as written",
			Do:    "nothing if it is gone after the next night; else `sqlwriterctl run start reindex --findings tracking_missing --why TEXT`",
			Mends: "writes the line again and keeps its status (mode rewrite), if the document that the ledger names is committed",
		},
		{
			Class: Edited, Finding: true,
			Means: "a value other than the status is not what was written: a person or a program changed the row",
			Do: "ask who. If the change is right: `sqlwriterctl finding accept NAME --why TEXT`. If it is wrong: `sqlwriterctl run start reindex --findings edited --dry-run` shows the columns before and " +
				"after, and with --why TEXT instead of --dry-run it writes the document's values again",
		},
		{
			Class: Stale, Finding: true,
			Means: "the line has older content than a committed document, or that document's failure mark: the document was changed after its commit, or the database went back",
			Do: "if it stays for two nights, a person may have edited the line: `sqlwriterctl run start reindex --findings stale --dry-run`, and the same with --why TEXT instead of --dry-run. " +
				"Many at once: docs/runbook.md, \"restored from a backup\"",
			Mends: "writes all documents of the line again (mode write), if the rows are as the ledger says, those of the document's other lines too",
		},
		{
			Class: NotInLedger, Finding: true,
			Means: "a committed document names a line that the ledger does not have: the database went back, or another program made the document committed",
			Do: "if it stays for two nights: `sqlwriterctl run start reindex --findings not_in_ledger --dry-run`, and the same with --why TEXT instead of --dry-run. " +
				"Many at once: docs/runbook.md, \"restored from a backup\"",
			Mends: "writes all documents of the line again (mode write), if the document was committed after the adoption and IVCE_DTL has the line",
		},
		{
			Class: FailedUnmarked, Finding: true,
			Means: "a failed document's line has no failure mark, although IVCE_DTL has the line",
			Do: "`sqlwriterctl document why ID`: final_error says why the mark was refused. Mend the cause, then `sqlwriterctl document retry ID`, or set the status of the " +
				"line by hand and `sqlwriterctl document mark-committed ID --why TEXT`",
		},
		{
			Class: FailedButWritten, Finding: true,
			Means: "a failed document's content is in SQL: its write was not recorded in the document, or another program changed the status",
			Do:    "`sqlwriterctl document retry ID`: the write finds its content unchanged, and the document becomes committed",
		},
		{
			Class: FailedWithoutEvidence, Finding: true,
			Means: "a failed document has no evidence: somebody deleted it, or another program made the document failed",
			Do:    "`sqlwriterctl document retry ID --why TEXT`: if it fails again, its evidence is kept",
		},
		{
			Class: EvidenceWithoutFailed, Finding: true,
			Means: "there is evidence of a document that never failed, or whose record of it was removed",
			Do: "compare the evidence with the document. If it is right: `sqlwriterctl finding accept NAME --why TEXT`. The rule of the storage account deletes it " +
				"after 365 days",
		},
		{
			Class: PendingTooLong, Finding: true,
			Means: "a document waits and was due for an hour or more, while the flow ran",
			Do:    "`sqlwriterctl document why ID` says why; many at once are a backlog: `sqlwriterctl run start drain --why TEXT`",
		},
		{
			Class: LeftBehind, Finding: true,
			Means: "a lock of the host's trigger, under this environment's lease prefix, is older than ten minutes: a host died while it started",
			Do:    "if CommitResults runs, delete the lock's document from the lease container; if it does not start, this lock may be the reason",
		},
		{Class: Consistent, Means: "ledger, rows, document and evidence fit", Do: leave},
		{Class: Reviewed, Means: "only the status of the line differs, and no document gives such a one: a steward's work", Do: leave},
		{
			Class: NotComparable, Means: "the ledger does not say what was written: an adopted line, or one of another hash version",
			Do: "nothing. It becomes comparable when it is written again (docs/adr/0031-rewrites-respect-people.md has the price)",
		},
		{Class: DocumentGone, Means: "the document that the ledger or the evidence names does not exist any more; a container may expire its documents", Do: leave},
		{
			Class: Changing, Means: "it changed each time it was looked at, or was written in the last 15 minutes",
			Do: "nothing: the next run looks again",
		},
		{
			Class: Impossible, Means: "its states exclude each other: a mistake of this program; event comparison_impossible has them",
			Do: "report it with the event's line; the other lines and documents were compared",
		},
		{Class: GoneNow, Means: "a finding of an earlier run is no longer true", Do: leave},
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
