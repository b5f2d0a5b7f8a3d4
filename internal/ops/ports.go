package ops

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// AuditQuery selects entries of the audit log. By default these are the notable ones (run.Audit.Notable).
type AuditQuery struct {
	// Run and Batch are the ids that it concerns; both may be empty.
	Run string `json:"run,omitempty"`
	// Action bounds them to those of one action, spelled as it is, notable or not; empty means any.
	Action string `json:"action,omitempty"`
	// All adds those that are not notable.
	All bool `json:"all,omitempty"`
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
	// Before bounds them to entries with a lower ID; 0 means none. Audits sets it from Page.
	Before int64 `json:"-"`
}

// AuditPage is a page of entries.
type AuditPage struct {
	Audits []run.Audit `json:"audits"`
	// Next is the AuditQuery.Page of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// AuditLog stores an environment's audit log. Environments may share the table. Entries are stored as
// run.Audit.Normalize returns them. Errors by kind, for all calls: infrastructure, throttled, quota, contention.
type AuditLog interface {
	// Write adds an entry.
	Write(ctx context.Context, a run.Audit) error
	// Audits returns the latest matching entries, newest first, at most q.Limit, also those of a run.Store.
	Audits(ctx context.Context, q AuditQuery) ([]run.Audit, error)
	// Marks is that of reconcile.Findings.
	Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error)
}

// FindingStore is the part of reconcile.Findings that operators need, with the same contracts.
type FindingStore interface {
	List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) ([]reconcile.Finding, error)
	Counts(ctx context.Context) ([]reconcile.Count, error)
	Begin(ctx context.Context, c reconcile.Comparison) (began bool, err error)
	Next(ctx context.Context) (c reconcile.Comparison, there bool, err error)
	Last(ctx context.Context) (c reconcile.Comparison, there bool, err error)
	AdoptedAt(ctx context.Context) (time.Time, error)
}

// EvidenceStore is the store of evidence for operators. Errors by kind, for all calls: infrastructure, throttled;
// internal for an invalid name.
type EvidenceStore interface {
	// FilesBelow returns the next files below a folder of the environment, with their names in the environment and in
	// the order of their names, and the position after them; "" begins, and ends. It returns also files that are no
	// evidence.
	FilesBelow(ctx context.Context, folder, at string) (page []EvidenceFile, next string, err error)
	// Read gives a file by its name within the environment. Errors also: condition fault.Gone when it does not exist.
	Read(ctx context.Context, name string) ([]byte, error)
	// Place says where the files are.
	Place() EvidencePlace
}

// EvidenceFile is a file of evidence.
type EvidenceFile struct {
	// Name is the file's name in its folder. ETag is the service's, without quotes: it changes when the content does.
	Name string    `json:"name"`
	Size int64     `json:"size"`
	ETag string    `json:"etag"`
	At   time.Time `json:"at"`
}

// EvidencePlace is where evidence is stored; without a key or a signature.
type EvidencePlace struct {
	// Account is the address of the blob service, Container the container's name, Prefix the environment's folder in
	// it.
	Account   string `json:"account"`
	Container string `json:"container"`
	Prefix    string `json:"prefix"`
}

// DocumentCreator writes whole documents: *cosmos.Container.
type DocumentCreator interface {
	// Submit creates a document, or with replace writes it over one with its id. Errors by kind: document, code "409"
	// when it exists and is not to be replaced, another code when it is refused; infrastructure (it may have been
	// written), throttled, contention.
	Submit(ctx context.Context, doc json.RawMessage, replace bool) error
}

// RunStore is the part of run.Store that operators need, with the same contract.
type RunStore interface {
	StartRun(ctx context.Context, r run.Run, a run.Audit) error
	Run(ctx context.Context, id string) (run.Run, bool, error)
	ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error)
	OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error)
	Stats(ctx context.Context, id string) (run.Stats, error)
	BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error)
	CancelRun(ctx context.Context, id string, a run.Audit) (bool, error)
	ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error)
	Batch(ctx context.Context, id string) (run.Batch, []run.ErrorDetail, bool, error)
	ListBatches(ctx context.Context, runID string, status run.BatchStatus, after string, limit int) ([]run.Batch, error)
	Items(ctx context.Context, runID string, outcomes []invoice.Outcome, afterKey string,
		limit int) ([]run.ItemOutcome, error)
	RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error)
}
