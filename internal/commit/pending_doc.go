package commit

import (
	"fmt"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Spellings are the texts that a Backlog finds for a status: lower case, upper case and capitalised. A database that
// compares texts by an index compares them exactly.
func Spellings(status invoice.Status) []string {
	lower := strings.ToLower(string(status))
	upper := strings.ToUpper(lower)
	if lower == "" {
		return nil
	}
	return []string{lower, upper, upper[:1] + lower[1:]}
}

// PendingDocOf makes the entry of a document from what it says of itself, read as leniently as everywhere.
func PendingDocOf(id string, ts int64, state invoice.State) PendingDoc {
	return PendingDoc{
		ID: id, TS: ts, Status: state.Status, RetryAfter: state.RetryAfter, Postponed: state.Postponed,
		Kind: state.LastErrorKind, Code: state.LastErrorCode, FailedAt: state.FailedAt,
	}
}

// PutOffKinds are the values of last_error_kind that put a document off.
func PutOffKinds() []fault.Kind {
	return []fault.Kind{fault.Contention, fault.Infrastructure, fault.Throttled}
}

// Continuation makes the continuation of a page from the query and the place where an adapter's search stopped. It carries
// the query's times: Cosmos DB promises nothing for a continuation with other parameters than those it was given for
// ("you'd either get an error or incorrect results", azure-cosmos-dotnet-v2 issue 252), and Now moves from tick to tick.
func (q WindowQuery) Continuation(place string) string {
	return fmt.Sprintf("%d.%d.%d.%d/%s", q.Now, q.AppliedBefore, q.LeftBefore, q.OldWriterBefore, place)
}

// Continued gives the query with the times in a continuation, and the place; false when the continuation is none.
func (q WindowQuery) Continued(continuation string) (began WindowQuery, place string, ok bool) {
	times, place, _ := strings.Cut(continuation, "/")
	if _, err := fmt.Sscanf(times, "%d.%d.%d.%d", &q.Now, &q.AppliedBefore, &q.LeftBefore, &q.OldWriterBefore); err != nil {
		return WindowQuery{}, "", false
	}
	return q, place, q.Continuation(place) == continuation // Sscanf takes more than was written
}
