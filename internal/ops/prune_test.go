package ops_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// evidenceOf keeps the evidence of a document that failed.
func (w *world) evidenceOf(line int64) {
	w.t.Helper()
	folder := commit.EvidenceFolder(invoice.Document{ID: id(line), Main: line, Hash: strings.Repeat("a", 64)}, 0)
	for _, name := range []string{"original.json", "error.json", commit.EvidenceMetadata} {
		require.NoError(w.t, w.evidence.Keep(w.t.Context(), folder+"/"+name, []byte(`{}`)))
	}
}

// kept are the lines that have evidence.
func (w *world) kept() []string {
	lines := map[string]bool{}
	for name := range w.evidence.Files() {
		lines[strings.Split(name, "/")[1]] = true
	}
	return slices.Sorted(maps.Keys(lines))
}

func TestOnlyOldEvidenceWithoutADocumentIsPruned(t *testing.T) {
	w := newWorld(t)
	w.evidenceOf(1) // gone
	w.evidenceOf(2) // exists
	w.evidenceOf(3) // exists in another environment
	w.put(result(2, "x", failed(1, fault.Document, "2628")), documentOf(id(3), "dev", 3, "x", failed(1, fault.Document, "2628")))
	w.clock = w.clock.Add(91 * 24 * time.Hour)
	w.evidenceOf(4) // gone, and young
	w.evidenceOf(1) // stored once: it is as old as it was
	request := ops.PruneRequest{Before: w.clock.Add(-90 * 24 * time.Hour), Why: "yearly clean-up"}

	dry := request
	dry.DryRun, dry.Why = true, ""
	before := w.snapshot()
	found, err := w.ops.PruneEvidence(by(t, "kim"), dry)
	require.NoError(t, err)
	require.Equal(t, []any{true, 1, 1, 0, false}, []any{found.DryRun, found.Folders, found.Documents, found.Files, found.More})
	require.Equal(t, id(1), found.First[0].Document)
	require.Equal(t, before, w.snapshot(), "a dry run changes nothing")

	done, err := w.ops.PruneEvidence(by(t, "kim"), request)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 3}, []int{done.Folders, done.Documents, done.Files})
	require.Equal(t, []string{"2", "3", "4"}, w.kept())
	audits := w.audits()
	require.Len(t, audits, 1)
	require.Equal(t, []string{"EVIDENCE_PRUNE", "kim", "yearly clean-up"}, []string{audits[0].Action, audits[0].By, audits[0].Why})
	require.Contains(t, string(audits[0].Detail), `"folders":1`)

	done, err = w.ops.PruneEvidence(by(t, "kim"), request)
	require.NoError(t, err)
	require.Zero(t, done.Folders)
	require.Len(t, w.audits(), 1, "nothing was done")
}

func TestEvidenceIsNotPrunedWithoutAuditReasonOrAge(t *testing.T) {
	w := newWorld(t)
	w.evidenceOf(1)
	w.clock = w.clock.Add(91 * 24 * time.Hour)
	for says, r := range map[string]ops.PruneRequest{
		"before: expected the time before which": {Why: "x"},
		"before: expected a time at least a day": {Before: w.clock.Add(-23 * time.Hour), Why: "x"},
		"why: expected the reason":               {Before: w.clock.Add(-24 * time.Hour)},
	} {
		_, err := w.ops.PruneEvidence(by(t, "kim"), r)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says)
	}
	w.audit.fails = down()
	_, err := w.ops.PruneEvidence(by(t, "kim"), ops.PruneRequest{Before: w.clock.Add(-24 * time.Hour), Why: "x"})
	require.ErrorContains(t, err, "nothing was done, because no audit row can be written")
	require.Equal(t, []string{"1"}, w.kept())
	r := newRuns(t)
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	_, err = r.ops.PruneEvidence(by(t, "kim"), ops.PruneRequest{Before: r.clock.Add(-24 * time.Hour), Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
}

// A wrong COSMOS_CONTAINER has none of the documents, so all evidence would seem to be of deleted ones.
func TestEvidenceIsNotPrunedInAContainerWithoutItsDocuments(t *testing.T) {
	w := newWorld(t)
	for line := range int64(19) {
		w.evidenceOf(line + 1)
		w.keep(id(line+1), line+1, 1, "2628") // the same documents
	}
	w.clock = w.clock.Add(91 * 24 * time.Hour)
	r := ops.PruneRequest{Before: w.clock.Add(-90 * 24 * time.Hour), DryRun: true}
	found, err := w.ops.PruneEvidence(by(t, "kim"), r)
	require.NoError(t, err, "19 may be gone by chance")
	require.Equal(t, []int{38, 19, 20}, []int{found.Folders, found.Documents, len(found.First)})

	w.evidenceOf(20) // young
	before := w.snapshot()
	for _, dry := range []bool{true, false} {
		r.DryRun, r.Why = dry, "x"
		_, err = w.ops.PruneEvidence(by(t, "kim"), r)
		require.Equal(t, ops.Conflict, refusal(err))
		require.ErrorContains(t, err, "at least 20 documents have evidence, and none of them exists: is COSMOS_CONTAINER the container")
	}
	require.Equal(t, before, w.snapshot())

	w.put(result(20, "x", failed(1, fault.Document, "2628")))
	r.DryRun = true
	found, err = w.ops.PruneEvidence(by(t, "kim"), r)
	require.NoError(t, err, "one that exists proves the container, also by young evidence")
	require.Equal(t, 38, found.Folders)
	w.docs.Delete(id(20))
	r.AllGone, r.DryRun = true, false
	found, err = w.ops.PruneEvidence(by(t, "kim"), r)
	require.NoError(t, err, "the request says so")
	require.Equal(t, 38, found.Folders)
	require.Equal(t, []string{"20"}, w.kept())
	for line := range int64(19) {
		w.evidenceOf(line + 1) // young, too
	}
	r.AllGone = false
	found, err = w.ops.PruneEvidence(by(t, "kim"), r)
	require.NoError(t, err, "there is nothing to delete")
	require.Zero(t, found.Folders)
}
