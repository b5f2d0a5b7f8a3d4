package opsapi

import (
	"context"
	_ "embed"
	"encoding/json"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Requests that only name what they are about.
type (
	// None has no parameters.
	None struct{}
	// Document names a document.
	Document struct {
		// ID is the document's id.
		ID string `json:"id"`
	}
	// Run names a run.
	Run struct {
		// Run is the run's id.
		Run string `json:"run"`
	}
	// Report names a report.
	Report struct {
		// Name is one of the names that the call gives without it.
		Name string `json:"name,omitempty"`
	}
)

// The calls. No parameter is named "code": the host takes it for the key.
//
//nolint:gochecknoglobals // the table; constant
var (
	StatusGet = reads("status.get", "status",
		"Show the state of the flow, and how many documents wait or have failed.", (*ops.Ops).Status)

	DocumentList = reads("document.list", "documents",
		"List documents, the latest change first.", (*ops.Ops).Documents)
	DocumentWhy = reads("document.why", "documents/why",
		"Explain a document's status, by its id or by a line, and what happens next.", (*ops.Ops).Why)
	DocumentDiff = readsContent("document.diff", "documents/diff",
		"Show what a write of documents would change now, by line and column.", (*ops.Ops).Diff)
	DocumentRetry = acts("document.retry", "documents/retry",
		"Try failed and waiting documents again, now, or count and list them.", (*ops.Ops).RetryDocuments)
	DocumentMarkCommitted = acts("document.mark-committed", "documents/mark-committed",
		"Mark a document as committed after its lines were repaired by hand.", (*ops.Ops).MarkCommitted)

	FlowPause = acts("flow.pause", "flow/pause",
		"Stop the flow: nothing is sent to SQL, and documents wait.", (*ops.Ops).Pause)
	FlowResume = acts("flow.resume", "flow/resume",
		"Start the flow again, after a pause or an outage.", (*ops.Ops).Resume)

	RunList  = reads("run.list", "runs", "List the latest runs, newest first.", (*ops.Ops).RunList)
	RunStart = acts("run.start", "runs", "Start a run, or count and list its documents.", (*ops.Ops).StartRun)
	RunShow  = reads("run.show", "runs/progress", "Show a run with its progress.",
		func(o *ops.Ops, ctx context.Context, q Run) (ops.RunProgress, error) { return o.RunShow(ctx, q.Run) })
	RunItems  = reads("run.items", "runs/items", "List the outcome of each document of a run.", (*ops.Ops).RunItems)
	RunCancel = acts("run.cancel", "runs/cancel",
		"Cancel a run: running batches finish, the others do not start.", (*ops.Ops).RunCancel)
	RunResume = acts("run.resume", "runs/resume",
		"Continue a run that was cancelled or has failed.", (*ops.Ops).RunResume)

	BatchList = reads("batch.list", "batches",
		"List the batches of a run, failed ones first, or the latest of all runs; or one with the errors of its documents.",
		(*ops.Ops).BatchList)
	BatchRequeue = acts("batch.requeue", "batches/requeue",
		"Send a failed batch again, or all failed batches of a run.", (*ops.Ops).BatchRequeue)

	FindingList = reads("finding.list", "findings",
		"List what comparisons found or one finding.", (*ops.Ops).FindingList)
	FindingCompare = acts("finding.compare", "findings/compare",
		"Begin a comparison of documents, ledger and rows.", (*ops.Ops).Compare)

	LineRelease = acts("line.release", "lines/release",
		"Give a line to the newest document that names it, or show what that would change.", (*ops.Ops).ReleaseLine)

	EvidenceShow = reads("evidence.show", "evidence/detail",
		"Show where a document's evidence is, and what it says of each failure.", (*ops.Ops).EvidenceShow)
	EvidenceGet = readsContent("evidence.get", "evidence/content",
		"Give a file of a document's evidence, in base64.", (*ops.Ops).EvidenceGet)

	EvidenceRestore = acts("evidence.restore", "evidence/restore",
		"Put a deleted document back from its evidence, as it failed.", (*ops.Ops).EvidenceRestore)

	AuditList = reads("audit.list", "audits",
		"List the actions of operators, warnings and errors, newest first.", (*ops.Ops).Audits)

	Doctor = acts("doctor.run", "doctor",
		"Look at what only the app sees of its deployment: SQL, Cosmos DB, leases, Service Bus, blobs, sign-in, timer.",
		(*ops.Ops).Doctor)

	ReportShow = reads("report.show", "reports", "Run a monitoring query, or list them.",
		func(o *ops.Ops, ctx context.Context, q Report) (run.Table, error) { return o.Report(ctx, q.Name) })

	OpenAPI = reads("api.show", "openapi.json", "Describe all calls (OpenAPI 3.1).",
		func(*ops.Ops, context.Context, None) (json.RawMessage, error) { return openAPI, nil })
)

//go:embed openapi.json
var openAPI []byte //nolint:gochecknoglobals // a file; openapi_test.go makes it of the table

// Table returns all rows, in the order of the documentation.
func Table() []Row {
	return []Row{
		StatusGet.row(),
		DocumentList.row(), DocumentWhy.row(), DocumentDiff.row(), DocumentRetry.row(), DocumentMarkCommitted.row(),
		FlowPause.row(), FlowResume.row(),
		RunList.row(), RunStart.row(), RunShow.row(), RunItems.row(), RunCancel.row(), RunResume.row(),
		BatchList.row(), BatchRequeue.row(),
		FindingList.row(), FindingCompare.row(),
		LineRelease.row(),
		EvidenceShow.row(), EvidenceGet.row(), EvidenceRestore.row(),
		AuditList.row(),
		Doctor.row(),
		ReportShow.row(),
		OpenAPI.row(),
	}
}
