package run

import (
	"encoding/json"
	"sync"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// results collects the outcomes of a batch's documents.
type results struct {
	mu       sync.Mutex
	outcomes map[string]ItemOutcome
	details  []ErrorDetail
	// requests counts Commit's requests to SQL. sql and cosmos are the time spent there.
	requests    int
	sql, cosmos time.Duration
}

func (r *results) addCost(report commit.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.sql, r.cosmos = r.requests+report.SQLRequests, r.sql+report.SQL, r.cosmos+report.Cosmos
}

func (r *results) add(o ItemOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[o.Document] = o
}

// record adds Commit's result for a document.
func (r *results) record(t commit.DocumentResult) {
	o := ItemOutcome{Document: t.ID, Outcome: t.Outcome, Code: t.Code}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[t.ID] = o
	if t.Reason == "" && t.Kind == "" {
		return
	}
	r.details = append(r.details, ErrorDetail{
		Document: t.ID, EntityID: t.Line, Code: t.Code, Message: t.Reason, Type: typeOf(t.Kind, t.Code),
		RetryCount: t.RetryCount,
		Retryable:  !o.Outcome.Success() && o.Outcome != invoice.OutcomeFailed,
	})
}

// recordAfterCrash is record for a batch that another worker had before. That worker may have finished documents and
// died before it saved their outcomes; Commit skips these now. It skips another environment's documents, too, whatever
// their state.
func (r *results) recordAfterCrash(raws []json.RawMessage, o Options) func(commit.DocumentResult) {
	before := map[string]invoice.State{}
	for _, raw := range raws {
		if d, err := o.Reader.Read(raw, o.Now()); err == nil && d.SysName == o.SysName {
			before[d.ID] = d.State
		}
	}
	return func(t commit.DocumentResult) {
		if t.Outcome == invoice.OutcomeSkipped {
			switch state := before[t.ID]; state.Status { //nolint:exhaustive // the other statuses are not final
			case invoice.Committed:
				t.Outcome = invoice.OutcomeApplied
				if o := state.Outcome; o == invoice.OutcomeUnchanged || o == invoice.OutcomeSuperseded {
					t.Outcome = o
				}
			case invoice.RetryScheduled, invoice.Failed:
				t.Outcome = invoice.Outcome(state.Status)
			}
		}
		r.record(t)
	}
}

func (r *results) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{
		"sql_requests": r.requests, "sql_ms": int(r.sql.Milliseconds()), "cosmos_ms": int(r.cosmos.Milliseconds()),
	}
	for _, o := range r.outcomes {
		counts[string(o.Outcome)]++
	}
	return counts
}

// typeOf is the type of an error (docs/requirements.md R81): a server's number belongs to the database, our codes of a
// document to its content.
func typeOf(kind fault.Kind, code string) string {
	switch {
	case kind == "": // lines that a rewrite left alone
		return TypeMigration
	case fault.ScopeOf(kind) != fault.ScopeDocument || kind == fault.Internal:
		return TypeSystem
	case fault.IsNumber(code):
		return TypeMigration
	}
	return TypeValidation
}
