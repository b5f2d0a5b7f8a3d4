package ops_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// pill keeps the evidence of a document's failure as a commit does, and returns its folder. original is the document before it was marked.
func (w *world) pill(original string, resets int, code string) (folder string) {
	w.t.Helper()
	doc, err := invoice.Read(json.RawMessage(original), w.clock)
	require.NoError(w.t, err)
	folder = commit.EvidenceFolder(doc, resets)
	failed, err := json.Marshal(commit.PillError{
		DocumentID: doc.ID, FailedAt: "2025-12-18 09:30:00.000000-06:00", RetryCount: 6, Kind: "document", Code: code, LastError: "set by the test",
		Attempts: []invoice.Attempt{{At: "2025-12-18 09:30:00.000000-06:00", Kind: "document", Code: code, Error: "set by the test"}},
	})
	require.NoError(w.t, err)
	for name, content := range map[string]string{commit.EvidenceOriginal: original, commit.EvidenceError: string(failed), commit.EvidenceMetadata: `{"document_id":"` + doc.ID + `"}`} {
		require.NoError(w.t, w.evidence.Keep(w.t.Context(), folder+"/"+name, []byte(content)))
	}
	return folder
}

// waiting is sql_writer before a document is marked as failed.
func waiting() string {
	return `{"status":"retry_scheduled","retry_count":6,"retry_after":1,"last_error_kind":"document","last_error_code":"2628","attempts":[]}`
}

// poisoned adds a failed document that can be written now, with its evidence, and returns the folder.
func (w *world) poisoned(line int64) (folder string) {
	w.t.Helper()
	w.sink.AddLines(line)
	w.put(result(line, "good", failed(int(line)%60, fault.Document, "2628")))
	return w.pill(result(line, "good", waiting()), 0, "2628")
}

// fromEvidence asks to replay poison messages.
func fromEvidence(ids ...string) ops.StartRequest {
	return ops.StartRequest{Kind: run.Replay, FromEvidence: true, Here: true, All: len(ids) == 0, Filter: run.Filter{IDs: ids}, Why: "column widened"}
}

// replayed reads replayed.json of a folder; nil without one.
func (w *world) replayed(folder string) map[string]string {
	w.t.Helper()
	content, there := w.evidence.Files()[folder+"/replayed.json"]
	if !there {
		return nil
	}
	var members map[string]string
	require.NoError(w.t, json.Unmarshal(content, &members))
	return members
}

// A thousand poison messages: dry run, rate, a process that is stopped in the middle, another one that goes on.
func TestAThousandPoisonMessagesAreReplayedFromEvidence(t *testing.T) {
	const all, superseded, refused, left, gone = 1000, 50, 5, 30, 10
	r := newRuns(t)
	folders := map[int64]string{}
	for line := range int64(all) {
		folders[1+line] = r.poisoned(1 + line)
	}
	for line := range int64(superseded) { // a newer result of the line came meanwhile
		newer := fmt.Sprintf("2025-12-17 11:00:00.000000-06:00-0002-%d", 1+line)
		r.put(documentOf(newer, "web", 1+line, "newer", ""))
		r.run(newer)
	}
	for line := int64(101); line <= 100+refused; line++ {
		r.put(result(line, tooLong(), failed(1, fault.Document, "2628")))
	}
	for line := int64(201); line <= 200+left; line++ {
		r.put(result(line, "good", `{"status":"committed","outcome":"applied"}`))
	}
	for line := int64(301); line <= 300+gone; line++ {
		r.docs.Delete(id(line))
	}
	counts := &run.EvidenceCounts{Matched: all, ToReplay: all - left - gone, Gone: gone, NotFailed: left}

	dry := fromEvidence()
	dry.DryRun, dry.Here, dry.Why = true, false, ""
	before := r.snapshot()
	res := r.start(dry)
	require.Equal(t, counts, res.Evidence)
	require.Equal(t, []any{all - left, "", 20}, []any{res.Matched, res.Run, len(res.First)})
	require.Equal(t, []ops.Failures{{Status: invoice.Failed, Kind: "document", Code: "2628", Documents: counts.ToReplay}}, res.Failures)
	require.Equal(t, before, r.snapshot(), "a dry run changes nothing")

	ctx, stop := context.WithCancel(by(t, "pat"))
	batches := 0
	r.sink.applied = func() {
		if batches++; batches == 4 {
			stop()
		}
	}
	request := fromEvidence()
	request.Rate = 6000
	began := r.clock
	res, err := r.ops.StartRun(ctx, request)
	require.NoError(t, err)
	require.Equal(t, counts, res.Evidence)
	require.Equal(t, run.RunRunning, res.Progress.Status)
	require.Greater(t, res.Progress.Done, 0)
	require.Less(t, res.Progress.Done, all/2)
	r.sink.applied = nil
	r.queue.Always(inmem.QueueDown())
	p, err := r.ops.RunResume(by(t, "kim"), ops.RunRequest{Run: res.Run, Why: "it was stopped"})
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.clock.Sub(began), 9*time.Second, "its rate")
	require.Equal(t, map[run.Outcome]int{
		run.DocCommitted: all - left - gone - superseded - refused, run.DocSuperseded: superseded, run.DocDeferred: refused, run.DocGone: gone,
	}, p.Stats.Outcomes)
	require.Equal(t, counts, run.EvidenceOf(p.Filter))
	sum := counts.NotFailed
	for _, n := range p.Stats.Outcomes {
		sum += n
	}
	require.Equal(t, counts.Matched, sum, "the receipt adds up")
	require.Equal(t, "newer", r.makerOf(1), "the newest wins")

	for line, folder := range folders {
		told := r.replayed(folder)
		if (line > 200 && line <= 200+left) || (line > 300 && line <= 300+gone) {
			require.Nil(t, told, "line %d", line)
			continue
		}
		sum := sha256.Sum256([]byte("sqlwriter\nweb/" + folder + "/original.json\n" + r.etag(folder)))
		require.Equal(t, map[string]string{"job_id": hex.EncodeToString(sum[:]), "run": res.Run, "at": "2025-12-18T10:00:00-06:00", "by": "pat"}, told)
	}
	audit := r.audited(run.CodeRunStart)[0]
	require.JSONEq(t, `{"kind":"replay","matched":970,"at_least":false,"pattern":"two_phase","here":true,"evidence":{"matched":1000,"to_replay":960,"gone":10,"not_failed":30}}`, string(audit.Detail))

	before = r.snapshot()
	for line := int64(101); line <= 100+refused; line++ { // they wait for their retry
		require.Equal(t, invoice.RetryScheduled, r.state(line).Status)
	}
	again := r.start(fromEvidence())
	require.Equal(t, &run.EvidenceCounts{Matched: all, Gone: gone, NotFailed: all - gone}, again.Evidence)
	require.Equal(t, []any{"", 0, "there is nothing to replay"}, []any{again.Run, again.Matched, again.Note})
	require.Equal(t, before, r.snapshot(), "a second replay changes nothing")
}

// etag is that of a folder's original.json.
func (w *world) etag(folder string) string {
	w.t.Helper()
	files, err := w.evidence.List(w.t.Context(), folder)
	require.NoError(w.t, err)
	return files[slices.IndexFunc(files, func(f ops.EvidenceFile) bool { return f.Name == commit.EvidenceOriginal })].ETag
}

// The newest evidence of a document is what a filter asks for: an older failure says nothing about the document now.
func TestPoisonMessagesAreFilteredByTheirNewestEvidence(t *testing.T) {
	r := newRuns(t)
	r.poisoned(1)
	r.poisoned(2)
	r.clock = r.clock.Add(time.Hour)
	middle := r.clock
	r.pill(result(2, "good", waiting()), 1, "547")
	r.poisoned(3)
	r.sink.AddLines(4)
	r.put(result(4, "good", failed(1, fault.Document, "2628")))
	for file, content := range map[string]string{commit.EvidenceError: "no JSON", commit.EvidenceMetadata: `{}`} {
		require.NoError(t, r.evidence.Keep(t.Context(), "failed/4/"+strings.ReplaceAll(strings.ReplaceAll(id(4), " ", "%20"), ":", "%3A")+"/0-a/"+file, []byte(content)))
	}
	for name, c := range map[string]struct {
		filter run.Filter
		want   []string
	}{
		"a code":         {run.Filter{Code: "2628"}, []string{id(1), id(3)}},
		"a newer code":   {run.Filter{Code: "547"}, []string{id(2)}},
		"a kind":         {run.Filter{ErrorKind: "document"}, []string{id(1), id(2), id(3)}},
		"another kind":   {run.Filter{ErrorKind: "internal"}, nil},
		"since":          {run.Filter{From: middle}, []string{id(2), id(3), id(4)}},
		"until":          {run.Filter{To: middle}, []string{id(1)}},
		"a code and ...": {run.Filter{Code: "2628", From: middle}, []string{id(3)}},
		"ids":            {run.Filter{IDs: []string{id(3), id(1), id(3)}}, []string{id(1), id(3)}},
	} {
		res := r.start(ops.StartRequest{Kind: run.Replay, FromEvidence: true, DryRun: true, Filter: c.filter})
		var found []string
		for _, m := range res.First {
			found = append(found, m.ID)
		}
		require.Equal(t, c.want, found, name)
		require.Equal(t, &run.EvidenceCounts{Matched: len(c.want), ToReplay: len(c.want)}, res.Evidence, name)
	}
}

func TestNamedPoisonMessagesThatAreNotReplayedAreNamed(t *testing.T) {
	r := newRuns(t)
	r.poisoned(1)
	r.poisoned(2)
	r.poisoned(3)
	r.put(result(2, "good", `{"status":"Committed"}`), documentOf(id(3), "dev", 3, "x", failed(1, fault.Document, "2628")))
	res := r.start(fromEvidence(id(1), id(2), id(3), id(9)))
	require.Equal(t, []ops.NotTaken{
		{ID: id(9), Why: "no evidence of it is stored"}, {ID: id(2), Why: "it is Committed"}, {ID: id(3), Why: `it belongs to the environment "dev"`},
	}, res.NotTaken)
	require.Equal(t, &run.EvidenceCounts{Matched: 3, ToReplay: 1, NotFailed: 2}, res.Evidence)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 1}, res.Progress.Stats.Outcomes)
}

// digits is a document with numbers that no double holds.
func digits(line int64, manufacturer, state string) string {
	return strings.Replace(result(line, manufacturer, state), `"sql_writer":`,
		`"exact":{"id":9007199254740993,"price":0.123456789012345678901234567890,"list":[1e400,-0.0,1.50]},"html":"<b>&amp;</b>","_rid":"r","_self":"s","_etag":"e","_attachments":"a","_ts":7,"_lsn":8,"sql_writer":`, 1)
}

// Two of ten deleted documents are wanted back. Each is restored from its newest evidence, and takes the one way to SQL.
func TestDeletedDocumentsArePutBackFromTheirNewestEvidence(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 10; line++ {
		r.poisoned(line)
		r.docs.Delete(id(line))
	}
	r.clock = r.clock.Add(time.Hour)
	r.pill(digits(1, "newest", `{"status":"retry_scheduled","retry_count":6,"retry_after":1,"reprocess_count":3,"mine":12345678901234567890}`), 3, "547")
	newest := r.pill(digits(2, "newest", waiting()), 1, "547")
	request := fromEvidence(id(1), id(2), id(3))
	request.IDs, request.DeletedToo = request.IDs[:2], true

	dry := request
	dry.DryRun, dry.Why = true, ""
	before := r.snapshot()
	res := r.start(dry)
	counts := &run.EvidenceCounts{Matched: 2, ToReplay: 2, Restored: 2}
	require.Equal(t, counts, res.Evidence)
	require.Equal(t, ops.Match{ID: id(1), Status: invoice.Failed, Kind: "document", Code: "547", FailedAt: r.in("2025-12-18T09:30:00-06:00")}, res.First[0])
	require.Equal(t, before, r.snapshot())
	_, err := r.docs.Read(t.Context(), id(1))
	require.True(t, fault.Has(err, fault.Gone), "a dry run creates nothing")

	var created []string
	r.docs.creates = func(doc json.RawMessage) error {
		require.Len(t, r.audits(), 1, "audited first")
		created = append(created, string(doc))
		return nil
	}
	res = r.start(request)
	require.Equal(t, counts, res.Evidence)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 2}, res.Progress.Stats.Outcomes)
	require.Equal(t, []string{"newest", "newest"}, []string{r.makerOf(1), r.makerOf(2)})
	require.Empty(t, r.makerOf(3))
	require.Equal(t, res.Run, r.replayed(newest)["run"])
	for _, doc := range created {
		require.Contains(t, doc, `"exact":{"id":9007199254740993,"price":0.123456789012345678901234567890,"list":[1e400,-0.0,1.50]}`)
		require.Contains(t, doc, `"html":"<b>&amp;</b>"`)
		for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
			require.NotContains(t, doc, `"`+name+`"`)
		}
		require.Contains(t, doc, `"status":"failed","retry_count":6`, "no trigger takes it before the run")
	}
	require.Contains(t, created[0], `"reprocess_count":3`, "its next evidence has a folder of its own")
	require.Contains(t, created[0], `"mine":12345678901234567890`)
	require.Equal(t, 4, r.state(1).ReprocessCount)

	entries := r.audits()
	restored := entries[slices.IndexFunc(entries, func(a ops.Audit) bool { return a.Action == ops.DocumentRestore })]
	require.JSONEq(t, fmt.Sprintf(`{"documents":[%q,%q]}`, id(1), id(2)), string(restored.Detail))
	require.Equal(t, []string{"pat", "column widened"}, []string{restored.By, restored.Why})
	require.True(t, restored.Notable())
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	for _, content := range []string{"newest", "9007199254740993", "39131711", "set by the test"} {
		require.NotContains(t, string(text), content, "no content in the audit log")
	}
	require.Equal(t, &run.EvidenceCounts{Matched: 2, NotFailed: 2}, r.start(request).Evidence, "twice changes nothing")
}

// in reads a time and shows it in the environment's zone.
func (w *world) in(text string) time.Time {
	w.t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(w.t, err)
	zone, err := time.LoadLocation("America/Chicago")
	require.NoError(w.t, err)
	return at.In(zone)
}

// Documents come while they are put back. What is in the container wins.
func TestADocumentThatCameBackMeanwhileWins(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 3; line++ {
		r.poisoned(line)
		r.docs.Delete(id(line))
	}
	r.docs.creates = func(json.RawMessage) error {
		if _, err := r.docs.Read(t.Context(), id(1)); fault.Has(err, fault.Gone) {
			r.put(result(1, "came failed", failed(1, fault.Document, "547")), result(2, "came", ""))
		}
		return nil
	}
	request := fromEvidence(id(1), id(2), id(3))
	request.DeletedToo = true
	res := r.start(request)
	require.Equal(t, &run.EvidenceCounts{Matched: 3, ToReplay: 2, Restored: 1, NotFailed: 1}, res.Evidence)
	require.Equal(t, []ops.NotTaken{{ID: id(2), Why: "it is pending"}}, res.NotTaken)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 2}, res.Progress.Stats.Outcomes)
	require.Equal(t, []string{"came failed", "", "good"}, []string{r.makerOf(1), r.makerOf(2), r.makerOf(3)})
}

// After a failure amid the work the documents that were put back are failed, and the same command goes on.
func TestPuttingBackGoesOnAfterAFailure(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 3; line++ {
		r.poisoned(line)
		r.docs.Delete(id(line))
	}
	request := fromEvidence(id(1), id(2), id(3))
	request.DeletedToo = true
	r.docs.creates = func(doc json.RawMessage) error {
		if strings.Contains(string(doc), id(2)) {
			return fault.New(fault.Infrastructure, "test: submit", "503", "set by the test")
		}
		return nil
	}
	_, err := r.ops.StartRun(by(t, "pat"), request)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.ErrorContains(t, err, "1 deleted documents were put back with status failed, and no run was started: repeat the command: set by the test")
	require.Equal(t, invoice.Failed, r.state(1).Status)
	r.docs.creates = func(json.RawMessage) error {
		return fault.New(fault.Document, "test: submit", "413", "it is too large")
	}
	_, err = r.ops.StartRun(by(t, "pat"), request)
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, fmt.Sprintf("id %q: it cannot be put back: test: submit: document 413: it is too large", id(2)))
	r.docs.creates = nil
	r.runStore.fails = down()
	_, err = r.ops.StartRun(by(t, "pat"), request)
	require.ErrorContains(t, err, "2 deleted documents were put back")
	require.NotContains(t, err.Error(), "nothing was done")
	r.runStore.fails = nil
	res := r.start(request)
	require.Equal(t, &run.EvidenceCounts{Matched: 3, ToReplay: 3}, res.Evidence)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 3}, res.Progress.Stats.Outcomes)
}

func TestEvidenceThatCannotBeUsedIsRefused(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 2; line++ {
		r.poisoned(line)
		r.docs.Delete(id(line))
	}
	folder := strings.TrimSuffix(slices.Sorted(maps.Keys(r.evidence.Files()))[0], "/"+commit.EvidenceError)
	request := fromEvidence(id(1), id(2))
	request.DeletedToo = true
	for says, original := range map[string]string{
		fmt.Sprintf("id %q: expected a document with this id in %s/original.json, found %q", id(1), folder, id(7)):   result(7, "x", waiting()),
		fmt.Sprintf("id %q: expected a document with this id in %s/original.json, found \"\"", id(1), folder):        "[]",
		fmt.Sprintf("id %q: expected an object sql_writer in %s/original.json, found something else", id(1), folder): result(1, "x", "7"),
	} {
		require.NoError(t, r.evidence.Put(t.Context(), folder+"/original.json", []byte(original)))
		before := r.snapshot()
		_, err := r.ops.StartRun(by(t, "pat"), request)
		require.Equal(t, ops.Conflict, refusal(err))
		require.EqualError(t, err, says)
		require.Equal(t, before, r.snapshot())
		_, err = r.docs.Read(t.Context(), id(2))
		require.True(t, fault.Has(err, fault.Gone), "all evidence is read before a document is created")
	}
}

func TestBadRequestsForEvidenceAreRefused(t *testing.T) {
	r := newRuns(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = id(int64(i))
	}
	change := func(change func(*ops.StartRequest)) ops.StartRequest {
		request := fromEvidence(id(1))
		change(&request)
		return request
	}
	for says, request := range map[string]ops.StartRequest{
		`from_evidence: expected the kind replay, found "drain"`:                     change(func(s *ops.StartRequest) { s.Kind = run.Drain }),
		`from_evidence: expected the kind replay, found "reindex"`:                   change(func(s *ops.StartRequest) { s.Kind = run.Reindex }),
		`from_evidence: expected the kind replay, found "reapply"`:                   change(func(s *ops.StartRequest) { s.Kind = run.Reapply }),
		`kind: expected drain, replay, reindex, reapply or reconcile, found "other"`: change(func(s *ops.StartRequest) { s.Kind = "other" }),
		"from_evidence: expected ids, or a time and an error, found a run, statuses or findings": change(func(s *ops.StartRequest) {
			s.IDs, s.Run = nil, "replay-1"
		}),
		"from_evidence: expected ids, or a time and an error, found a run": change(func(s *ops.StartRequest) {
			s.IDs, s.Statuses = nil, []invoice.Status{invoice.Failed}
		}),
		"from_evidence: expected ids, or a time and an error": change(func(s *ops.StartRequest) {
			s.Findings = []reconcile.Class{reconcile.Edited}
		}),
		"ids: go with no other filter":                change(func(s *ops.StartRequest) { s.Code = "2628" }),
		"all: expected a filter, or that all":         change(func(s *ops.StartRequest) { s.IDs = nil }),
		"all: goes with no filter":                    change(func(s *ops.StartRequest) { s.All = true }),
		"deleted_too: expected from_evidence with it": change(func(s *ops.StartRequest) { s.FromEvidence, s.DeletedToo = false, true }),
		"deleted_too: expected 1 to 100 ids with it, found 0": change(func(s *ops.StartRequest) {
			s.IDs, s.All, s.DeletedToo = nil, true, true
		}),
		"deleted_too: expected 1 to 100 ids with it, found 101": change(func(s *ops.StartRequest) { s.IDs, s.DeletedToo = many, true }),
		"limit: goes not with deleted_too":                      change(func(s *ops.StartRequest) { s.DeletedToo, s.Limit = true, 1 }),
		"why: expected the reason":                              change(func(s *ops.StartRequest) { s.Why = " " }),
	} {
		_, err := r.ops.StartRun(by(t, "pat"), request)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says)
	}
	request := fromEvidence(many...)
	request.IDs = append(request.IDs[:99], id(5), id(7))
	request.DeletedToo = true
	require.Len(t, r.start(request).NotTaken, 99, "an id twice counts once")
}

func TestAShadowAndAnAuditLogThatIsAwayPutNothingBack(t *testing.T) {
	r := newRuns(t)
	r.poisoned(1)
	r.docs.Delete(id(1))
	request := fromEvidence(id(1))
	request.DeletedToo = true
	r.audit.fails = down()
	_, err := r.ops.StartRun(by(t, "pat"), request)
	require.ErrorContains(t, err, "nothing was done, because no audit row can be written")
	r.audit.fails, r.readOnly = nil, "MODE=shadow: nothing is written"
	r.renew()
	_, err = r.ops.StartRun(by(t, "pat"), request)
	require.Equal(t, ops.Conflict, refusal(err))
	require.EqualError(t, err, r.readOnly)
	_, err = r.docs.Read(t.Context(), id(1))
	require.True(t, fault.Has(err, fault.Gone))
	require.Empty(t, r.audits())
}

// A run that began is not undone because nothing can be written beside the evidence.
func TestARunFromEvidenceGoesOnWithoutItsFile(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 3; line++ {
		r.poisoned(line)
	}
	r.stored = &awkwardEvidence{Evidence: r.evidence, puts: func(name string) error {
		if strings.Contains(name, "/2/") {
			return down()
		}
		return nil
	}}
	r.renew()
	res := r.start(fromEvidence())
	require.Equal(t, "replayed.json could not be written beside the evidence of 1 of 3 documents: test: audit log: infrastructure refused: set by the test", res.Note)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 3}, res.Progress.Stats.Outcomes)

	r.sink.AddLines(4)
	r.put(result(4, "good", failed(1, fault.Document, "2628")))
	folder := commit.EvidenceFolder(invoice.Document{ID: id(4), Main: 4, Hash: "a"}, 0)
	require.NoError(t, r.evidence.Keep(t.Context(), folder+"/"+commit.EvidenceMetadata, []byte("{}")))
	res = r.start(fromEvidence(id(4)))
	require.Equal(t, "replayed.json could not be written beside the evidence of 1 of 1 documents: "+folder+" has no original.json", res.Note)
}

// Only evidence of documents that a limited run takes names it.
func TestALimitedRunFromEvidenceNamesItselfBesideItsDocuments(t *testing.T) {
	r := newRuns(t)
	for line := int64(1); line <= 3; line++ {
		r.poisoned(line)
	}
	request := fromEvidence()
	request.Limit = 2
	res := r.start(request)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 2}, res.Progress.Stats.Outcomes)
	page, err := r.ops.EvidenceList(t.Context(), ops.EvidenceQuery{})
	require.NoError(t, err)
	var replayed []string
	for _, e := range page.Evidence {
		if e.Replayed != nil {
			replayed = append(replayed, e.Replayed.Run)
		}
	}
	require.Equal(t, []string{res.Run, res.Run}, replayed)
}

func TestEvidenceThatCannotBeReadStopsTheStart(t *testing.T) {
	r := newRuns(t)
	r.poisoned(1)
	r.stored = &awkwardEvidence{Evidence: r.evidence, reads: func(string) error { return down() }}
	r.renew()
	_, err := r.ops.StartRun(by(t, "pat"), ops.StartRequest{Kind: run.Replay, FromEvidence: true, Filter: run.Filter{Code: "2628"}, Why: "x"})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Empty(t, r.audited(run.CodeRunStart))
}

// A run names at most 10,000 documents, failed ones first. A second request finds the rest.
func TestMorePoisonMessagesThanARunTakes(t *testing.T) {
	for _, c := range []struct {
		name         string
		failed, gone int
		want         run.EvidenceCounts
		more         bool
	}{
		{"all fit", 9_990, 10, run.EvidenceCounts{Matched: 10_000, ToReplay: 9_990, Gone: 10}, false},
		{"deleted ones come last", 9_995, 50, run.EvidenceCounts{Matched: 10_000, ToReplay: 9_995, Gone: 5}, true},
		{"more failed ones", 10_300, 0, run.EvidenceCounts{Matched: 10_000, ToReplay: 10_000}, true},
		{"more than are looked at", 12_500, 0, run.EvidenceCounts{Matched: 10_000, ToReplay: 10_000}, true},
	} {
		r := newRuns(t)
		heads := &inventedHeads{failed: map[string]bool{}}
		stored := &awkwardEvidence{Evidence: r.evidence}
		for n := range c.failed + c.gone {
			name := fmt.Sprintf("d%06d", n)
			stored.invented = append(stored.invented, reconcile.Episode{DocumentID: name, Folder: "failed/1/" + name + "/0-a", At: r.clock})
			heads.failed[name] = n < c.failed
		}
		r.stored, r.heads = stored, heads
		r.renew()
		request := fromEvidence()
		request.DryRun = true
		res := r.start(request)
		require.Equal(t, &c.want, res.Evidence, c.name)
		require.Equal(t, []any{10_000, c.more}, []any{res.Matched, res.AtLeast}, c.name)
		require.LessOrEqual(t, heads.asked, 11_000, "%s: it looks no further", c.name)
		request.Limit = 7
		res = r.start(request)
		require.Equal(t, []any{7, false, c.want.ToReplay}, []any{res.Matched, res.AtLeast, res.Evidence.ToReplay}, c.name)
	}
}

// awkwardEvidence invents episodes, or fails.
type awkwardEvidence struct {
	*inmem.Evidence
	invented    []reconcile.Episode
	puts, reads func(name string) error
}

func (e *awkwardEvidence) Episodes(ctx context.Context, at string) ([]reconcile.Episode, string, error) {
	if e.invented != nil {
		return e.invented, "", nil
	}
	return e.Evidence.Episodes(ctx, at)
}

func (e *awkwardEvidence) Read(ctx context.Context, name string) ([]byte, error) {
	if e.reads != nil {
		if err := e.reads(name); err != nil {
			return nil, err
		}
	}
	return e.Evidence.Read(ctx, name)
}

func (e *awkwardEvidence) Put(ctx context.Context, name string, content []byte) error {
	if e.puts != nil {
		if err := e.puts(name); err != nil {
			return err
		}
	}
	return e.Evidence.Put(ctx, name, content)
}

// inventedHeads has documents that are failed, and counts those that it is asked for.
type inventedHeads struct {
	failed map[string]bool
	asked  int
}

func (h *inventedHeads) Heads(_ context.Context, ids []string) (docs []invoice.Projection, charge float64, err error) {
	h.asked += len(ids)
	for _, id := range ids {
		if h.failed[id] {
			docs = append(docs, invoice.Projection(`{"id":"`+id+`","request_details":{"sys_name":"web"},"sql_writer":{"status":"failed"}}`))
		}
	}
	return docs, 0, nil
}
