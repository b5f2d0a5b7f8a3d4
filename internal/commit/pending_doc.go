package commit

import (
	"fmt"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Spellings are the texts of a status that a Backlog finds: lower case, upper case and capitalised. An index compares texts
// exactly.
func Spellings(status invoice.Status) []string {
	lower := strings.ToLower(string(status))
	upper := strings.ToUpper(lower)
	if lower == "" {
		return nil
	}
	return []string{lower, upper, upper[:1] + lower[1:]}
}

// PendingDocOf makes a PendingDoc from a document's main line and state.
func PendingDocOf(id string, ts, line int64, state invoice.State) PendingDoc {
	p := PendingDoc{
		ID: id, TS: ts, Status: state.Status, RetryAfter: state.RetryAfter, Postponed: state.Postponed,
		Kind: state.LastErrorKind, Code: state.LastErrorCode, FailedAt: state.FailedAt, ErrorAt: state.LastErrorAt, Line: line,
	}
	if len(state.Attempts) > 0 {
		p.FirstAt = state.Attempts[0].At
	}
	return p
}

// PutOffKinds are the values of last_error_kind for documents that were put off.
func PutOffKinds() []fault.Kind {
	return []fault.Kind{fault.Contention, fault.Infrastructure, fault.Throttled}
}

// Continuation makes a page's continuation from the query and the adapter's position. It contains the query's times,
// because Now changes between ticks. Cosmos DB accepts a continuation only with its own parameters ("you'd either get an
// error or incorrect results", azure-cosmos-dotnet-v2 issue 252).
func (q WindowQuery) Continuation(place string) string {
	return fmt.Sprintf("%d.%d.%d.%d/%s", q.Now, q.AppliedBefore, q.LeftBefore, q.OldWriterBefore, place)
}

// Continued gives the query with the times of a continuation, and the adapter's position; false for an invalid
// continuation.
func (q WindowQuery) Continued(continuation string) (began WindowQuery, place string, ok bool) {
	times, place, _ := strings.Cut(continuation, "/")
	if _, err := fmt.Sscanf(times, "%d.%d.%d.%d", &q.Now, &q.AppliedBefore, &q.LeftBefore, &q.OldWriterBefore); err != nil {
		return WindowQuery{}, "", false
	}
	return q, place, q.Continuation(place) == continuation // Sscanf accepts more than Continuation writes
}
