// Package retention deletes our own rows that are old: runs and comparisons that ended, error details and the audit
// log.
package retention

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// Store deletes the environment's old rows. Nothing else of ours deletes rows of these tables. Errors by kind:
// infrastructure, throttled, quota, contention; internal for invalid arguments, code CodeDays for fewer days than
// LeastDays.
type Store interface {
	// Purge deletes rows of a part that are older than days, by the database's clock: at most limit of them (1 to
	// MaxPurge), in one transaction. It returns how many; 0 means that none is left. Fewer than limit does not mean so.
	// After an error, and after any crash, a repeated call goes on.
	//
	// ErrorDetails go by when they were added; those of a running run stay. The audit log goes by when an entry was
	// written and by the days of the table audit_retention, 365 at least, which only the database's administrator
	// writes: days do not matter, and without a row there nothing goes.
	//
	// EndedRuns go by their end, the oldest first, one run a call. The first call makes the run purged, so that nothing
	// continues it. Its batches go first, then documents and workers, and its own row last. Runs stay that are running,
	// or that a running run names (run.Filter.Run). Comparisons go by their end; the one of reconcile.Findings.Last
	// stays.
	Purge(ctx context.Context, part Part, days, limit int) (rows int, err error)
}

const (
	// MaxPurge is the most rows of one Store.Purge: SQL Server may lock a whole table for a statement that locks 5,000
	// rows.
	MaxPurge = 1000
	// LeastDays is the least days of Store.Purge. The database refuses fewer, whoever asks.
	LeastDays = 30
	// CodeDays is the code of a purge for fewer days.
	CodeDays = "retention_days"
	// within bounds the purges of one tick. A chunk that has begun ends, so the first are small, and those after quick
	// ones are larger: a row may take 4 ms beside a drain.
	within     = 500 * time.Millisecond
	firstChunk = 100
	quick      = within / 10
)

// Part names what one Store.Purge deletes.
type Part string

// The parts.
const (
	ErrorDetails Part = "error_details"
	// EndedRuns have their batches, documents and workers with them.
	EndedRuns   Part = "runs"
	Comparisons Part = "comparisons"
	AuditLog    Part = "audit_log"
)

// Parts returns all parts.
func Parts() []Part { return []Part{ErrorDetails, EndedRuns, Comparisons, AuditLog} }

// Tick deletes rows that are older than days, for half a second, a chunk of each part in turn: so no part waits for
// another. 0 days delete nothing but old entries of the audit log, which has days of its own. The next tick goes on.
// Errors are those of Store.Purge: a part that fails has no more turns. rows counts what was deleted.
func Tick(ctx context.Context, s Store, days int, now func() time.Time) (rows int, err error) {
	left, began, limit := Parts(), now(), firstChunk
	if days == 0 {
		left, days = []Part{AuditLog}, LeastDays
	}
	for i := 0; len(left) > 0 && now().Sub(began) < within; {
		i %= len(left)
		chunk := now()
		n, failed := s.Purge(ctx, left[i], days, limit)
		switch took := now().Sub(chunk); {
		case took > 2*quick:
			limit = max(1, limit/2)
		case took < quick && n == limit:
			limit = min(MaxPurge, 2*limit)
		}
		err = cmp.Or(err, failed)
		if rows += n; n == 0 || failed != nil {
			left = slices.Delete(left, i, i+1)
		} else {
			i++
		}
	}
	return rows, err
}

// Check refuses an unknown part and a limit outside of 1 to MaxPurge: internal, codes "part" and "limit".
func Check(op string, part Part, limit int) error {
	if !slices.Contains(Parts(), part) {
		return fault.New(fault.Internal, op, "part", "expected one of %v, found %q", Parts(), part)
	}
	if limit < 1 || limit > MaxPurge {
		return fault.New(fault.Internal, op, "limit", "expected 1 to %d rows, found %d", MaxPurge, limit)
	}
	return nil
}

// CheckDays refuses fewer days than LeastDays, for an engine that has no procedure that does: internal, code CodeDays.
func CheckDays(op string, days int) error {
	if days < LeastDays {
		return fault.New(fault.Internal, op, CodeDays, "expected at least %d days, found %d", LeastDays, days)
	}
	return nil
}

// Faults is the table of this package's codes, for operators.
func Faults() []fault.Row {
	const source = "the contract of Store (internal/retention/retention.go)"
	own := fault.Consequence{Spends: fault.Nothing, Next: "nothing is deleted, and the next tick tries again"}
	return fault.Of("writer", []fault.Row{
		{
			Code: CodeDays, Kind: fault.Internal, Reason: fmt.Sprintf("a purge keeps at least %d days", LeastDays),
			Source: source, Own: own,
		},
		{
			Code: "part", Kind: fault.Internal, Reason: "a purge of an unknown part was asked for",
			Source: source, Own: own,
		},
		{
			Code: "limit", Kind: fault.Internal,
			Reason: fmt.Sprintf("a purge of no row was asked for, or of more than %d", MaxPurge),
			Source: source, Own: own,
		},
	})
}
