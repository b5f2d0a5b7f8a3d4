package ops_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// keepEvidence keeps the evidence of a document's failure as a commit does, and returns its folder. original is the
// document before it was marked.
func (w *world) keepEvidence(original string, resets int) (folder string) {
	w.t.Helper()
	doc := must(invoice.Reader{}.Read(json.RawMessage(original), w.clock))(w.t)
	folder = commit.EvidenceFolder(doc, time.Unix(int64(resets), 0))
	w.keepPoison(folder, original,
		commit.PoisonMetadata{DocumentID: doc.ID, TS: w.clock.Unix(), HashVersion: invoice.DefaultMapping().Version()})
	return folder
}

func (w *world) keepPoison(folder, original string, m commit.PoisonMetadata) {
	w.t.Helper()
	failed, err := json.Marshal(commit.PoisonError{
		DocumentID: m.DocumentID, FailedAt: "2025-12-18 09:30:00.000000-06:00", RetryCount: 6, Kind: "document",
		Code: "2628", LastError: "set by the test",
		Attempts: []invoice.Attempt{
			{At: "2025-12-18 09:30:00.000000-06:00", Kind: "document", Code: "2628", Error: "set by the test"},
		},
	})
	require.NoError(w.t, err)
	metadata := must(json.Marshal(m))(w.t)
	for name, content := range map[string]string{
		commit.EvidenceOriginal: original, commit.EvidenceError: string(failed),
		commit.EvidenceMetadata: string(metadata),
	} {
		w.evidence.Put(folder+"/"+name, []byte(content))
	}
}

// waiting is sql_writer before a document is marked as failed.
func waiting() string {
	return `{"status":"retry_scheduled","retry_count":5,"postponed":true,"retry_after":1,"last_error_kind":"document","last_error_code":"2628","attempts":[]}`
}

// digits is a document with numbers and texts that a careless writer changes, and with the container's own members.
func digits(line int64, manufacturer, state string) string {
	return strings.Replace(result(line, manufacturer, state), `{"id"`,
		`{"exact":{"id":9007199254740993,"price":0.123456789012345678901234567890,"list":[1e400,-0.0,1.50]},"html":"<b>&amp;</b>",
		"_rid":"r","_self":"s","_etag":"\"e\"","_attachments":"a","_lsn":7,"_ts":1766073000,"id"`, 1)
}

func restore(line int64) ops.RestoreRequest {
	return ops.RestoreRequest{EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(line)}, Why: "deleted by mistake"}
}

// A deleted document comes back as it failed, from its newest evidence, and a retry writes it.
func TestADeletedDocumentIsPutBack(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.keepEvidence(result(1, "older", waiting()), 0)
	r.clock = r.clock.Add(time.Hour)
	newest := r.keepEvidence(
		digits(1, "newest",
			`{"status":"retry_scheduled","retry_count":5,"postponed":true,"retry_after":1,"reprocess_count":3,"mine":12345678901234567890}`), 3)
	stored := r.clock
	r.clock = r.clock.Add(time.Hour)

	dry := restore(1)
	dry.DryRun, dry.Why = true, ""
	before := r.snapshot()
	would := must(r.ops.EvidenceRestore(by(t, "pat"), dry))(t)
	require.True(t, would.At.Equal(stored))
	require.Equal(t,
		ops.Restored{
			DryRun: true, Document: id(1), Folder: newest, At: would.At, Status: invoice.Failed,
			Kind: "document", Code: "2628",
		}, would)
	require.Equal(t, before, r.snapshot())
	_, err := r.docs.Read(t.Context(), id(1))
	require.True(t, fault.Has(err, fault.Gone), "a dry run creates nothing")

	created := ""
	r.docs.creates = func(doc json.RawMessage) error {
		require.Len(t, r.audits(), 1, "audited first")
		created = string(doc)
		return nil
	}
	done := must(r.ops.EvidenceRestore(by(t, "pat"), restore(1)))(t)
	would.DryRun = false
	require.Equal(t, would, done)
	require.Contains(t, created,
		`"exact":{"id":9007199254740993,"price":0.123456789012345678901234567890,"list":[1e400,-0.0,1.50]}`)
	require.Contains(t, created, `"html":"<b>&amp;</b>"`)
	require.Contains(t, created, `"status":"failed","retry_count":6`, "no trigger takes it before a retry")
	require.Contains(t, created, `"reprocess_count":3`, "its next evidence has a folder of its own")
	require.Contains(t, created, `"mine":12345678901234567890`)
	for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
		require.NotContains(t, created, `"`+name+`"`)
	}
	entry := r.audits()[0]
	require.Equal(t, []string{ops.DocumentRestore, "pat", "deleted by mistake", id(1)},
		[]string{entry.Action, entry.By, entry.Why, entry.Subject})
	require.True(t, entry.Notable())
	text := must(json.Marshal(entry))(t)
	for _, content := range []string{"newest", "9007199254740993", "39131711", "set by the test"} {
		require.NotContains(t, string(text), content, "no content in the audit log")
	}

	_, err = r.ops.EvidenceRestore(by(t, "pat"), restore(1))
	require.ErrorContains(t, err, "exists: `document retry` tries it again", "twice changes nothing")
	retried := must(r.ops.RetryDocuments(by(t, "pat"), ops.RetryRequest{IDs: []string{id(1)}, Why: "mended"}))(t)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 1}, retried.Progress.Stats.Outcomes)
	require.Equal(t, "newest", r.makerOf(1))
}

// Whoever may write to the storage account plants a folder, or changes a file. Nothing of it becomes a document.
func TestForgedEvidenceIsNotPutBack(t *testing.T) {
	version := invoice.DefaultMapping().Version()
	for name, plant := range map[string]func(r *runs, folder string) (says string){
		"the file changed": func(r *runs, folder string) string {
			r.evidence.Put(folder+"/original.json", []byte(result(1, "EVIL CORP", waiting())))
			return "expected content with the hash"
		},
		"another folder, later": func(r *runs, folder string) string {
			r.clock = r.clock.Add(time.Hour)
			r.keepPoison(folder+"0", result(1, "EVIL CORP", waiting()),
				commit.PoisonMetadata{DocumentID: id(1), TS: r.clock.Unix(), HashVersion: version})
			return "expected content with the hash"
		},
		"another environment's document": func(r *runs, _ string) string { // its hash is right: it is of the values
			r.clock = r.clock.Add(time.Hour)
			r.keepEvidence(documentOf(id(1), "dev", 1, "EVIL CORP", waiting()), 1)
			return `its document belongs to the environment "dev", this app is "web"`
		},
		"another document": func(r *runs, folder string) string {
			r.evidence.Put(folder+"/original.json", []byte(result(7, "EVIL CORP", waiting())))
			return fmt.Sprintf("expected the document %q in original.json", id(1))
		},
		"no document": func(r *runs, folder string) string {
			r.evidence.Put(folder+"/original.json", []byte("[]"))
			return fmt.Sprintf("expected the document %q in original.json", id(1))
		},
		"another mapping": func(r *runs, folder string) string {
			r.keepPoison(folder, result(1, "EVIL CORP", waiting()),
				commit.PoisonMetadata{DocumentID: id(1), TS: r.clock.Unix(), HashVersion: version + 1})
			return "a build with another mapping stored it"
		},
		"a _ts after the blob": func(r *runs, folder string) string {
			r.keepPoison(folder, result(1, "good", waiting()),
				commit.PoisonMetadata{
					DocumentID: id(1), TS: r.clock.Add(time.Hour).Unix(), HashVersion: version,
				})
			return "expected the _ts of the document before"
		},
		"metadata of another document": func(r *runs, folder string) string {
			r.keepPoison(folder, result(1, "good", waiting()),
				commit.PoisonMetadata{DocumentID: id(7), TS: r.clock.Unix(), HashVersion: version})
			return "its evidence is not complete: metadata.json names another document"
		},
		"no error.json": func(r *runs, folder string) string {
			r.evidence.Put(folder+"/error.json", []byte("null"))
			return "its evidence is not complete: error.json: expected a JSON object"
		},
		"half of it": func(r *runs, folder string) string {
			r.evidence.Remove(folder)
			r.evidence.Put(folder+"/original.json", []byte(result(1, "EVIL CORP", waiting())))
			return "its evidence is not complete: error.json does not exist"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			r.sink.AddLines(1, 7)
			says := plant(r, r.keepEvidence(result(1, "good", waiting()), 0))
			for _, dry := range []bool{true, false} {
				request := restore(1)
				request.DryRun = dry
				before := r.snapshot()
				_, err := r.ops.EvidenceRestore(by(t, "pat"), request)
				require.Equal(t, ops.Conflict, refusal(err), "%v", err)
				require.ErrorContains(t, err, says)
				require.NotContains(t, err.Error(), "EVIL")
				require.Equal(t, before, r.snapshot())
				_, err = r.docs.Read(t.Context(), id(1))
				require.True(t, fault.Has(err, fault.Gone))
			}
		})
	}
}

// A document that was corrected and committed after it failed has newer content in SQL. Put back, its old content would
// be the latest.
func TestADocumentThatWasWrittenSinceIsNotPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		failed string
		line   int64 // of the corrected content
	}{
		"on the same line": {result(1, tooLong(), ""), 1},
		"on another line":  {documentOf(id(1), "web", 7, tooLong(), ""), 1},
		"the line of the evidence is unreadable": {
			strings.Replace(result(1, "x", ""), `"IVCE_DTL_UID":1`, `"IVCE_DTL_UID":"x"`, 1), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			r.sink.AddLines(1, 7)
			r.put(c.failed)
			r.poison(1)
			r.clock = r.clock.Add(time.Minute)
			r.put(result(1, "CORRECTED", ""))
			require.Equal(t, 1, r.run(id(1)).Outcomes["applied"])
			r.clock = r.clock.Add(time.Minute)
			r.docs.Delete(id(1))
			for _, dry := range []bool{true, false} {
				request := restore(1)
				request.DryRun = dry
				before := r.snapshot()
				_, err := r.ops.EvidenceRestore(by(t, "pat"), request)
				require.Equal(t, ops.Conflict, refusal(err), "%v", err)
				require.ErrorContains(t, err, "line 1 has content of it of ")
				require.Equal(t, before, r.snapshot())
			}
			require.Equal(t, "CORRECTED", r.makerOf(1))
		})
	}
}

// Two contents of one second have no order: what SQL has may be the later one.
func TestADocumentThatWasWrittenInTheSameSecondIsNotPutBack(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, tooLong(), ""))
	r.poison(1)
	shown := must(r.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	r.put(result(1, "CORRECTED", ""))
	require.Equal(t, 1, r.run(id(1)).Outcomes["applied"])
	entry, _ := r.sink.Entry(1)
	entry.SourceTS = shown.Episodes[0].Metadata.TS
	r.sink.SetEntry(1, entry)
	r.docs.Delete(id(1))
	_, err := r.ops.EvidenceRestore(by(t, "pat"), restore(1))
	require.Equal(t, ops.Conflict, refusal(err), "%v", err)
	require.ErrorContains(t, err, "line 1 has content of it of ")
}

// What SQL has of it is older, or only its mark: then the evidence is the latest.
func TestADocumentThatFailedLastIsPutBack(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, "first", ""))
	require.Equal(t, 1, r.run(id(1)).Outcomes["applied"])
	r.clock = r.clock.Add(time.Minute)
	r.put(result(1, tooLong(), ""))
	r.poison(1)
	require.Equal(t, "AI-ERROR", r.status(1))
	r.docs.Delete(id(1))
	done := must(r.ops.EvidenceRestore(by(t, "pat"), restore(1)))(t)
	require.Equal(t, "validation.too_long", done.Code)
	require.Equal(t, invoice.Failed, r.state(1).Status)
}

func TestARestoreThatCannotBeDoneChangesNothing(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.keepEvidence(result(1, "good", waiting()), 0)
	ask := func(request ops.RestoreRequest) error {
		before := r.snapshot()
		_, err := r.ops.EvidenceRestore(by(t, "pat"), request)
		require.Equal(t, before, r.snapshot())
		return err
	}
	for says, request := range map[string]ops.RestoreRequest{
		"usage: why: expected the reason":    {EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1)}},
		"usage: id: expected the id":         {Why: "x"},
		"not_found: no evidence of document": restore(2),
		"usage: line: expected the id of a line": {
			EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1), Line: -1}, Why: "x",
		},
		"not_found: no evidence of document \"2025": {
			EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1), Line: 9}, Why: "x",
		},
	} {
		err := ask(request)
		require.Contains(t, string(refusal(err))+": "+err.Error(), says)
	}
	r.audit.fails = down()
	require.ErrorContains(t, ask(restore(1)), "nothing was done, because no audit row can be written")
	r.audit.fails = nil
	r.sink.fails = down()
	require.Equal(t, fault.Infrastructure, fault.KindOf(ask(restore(1))), "what SQL has of it is not known")
	r.sink.fails = nil
	r.readOnly = "it is a shadow"
	r.renew()
	require.Equal(t, ops.Conflict, refusal(ask(restore(1))))
	r.readOnly = ""
	r.renew()

	r.docs.creates = func(json.RawMessage) error { r.put(result(1, "came", "")); return nil }
	_, err := r.ops.EvidenceRestore(by(t, "pat"), restore(1))
	require.ErrorContains(t, err, "came meanwhile: it stays as it is")
	require.Equal(t, invoice.Pending, r.state(1).Status)
	require.Len(t, slices.DeleteFunc(r.audits(), func(a run.Audit) bool { return a.Action != ops.DocumentRestore }), 1,
		"the entry says what was begun")
}
