package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Filter is the filter of a run that compares.
type Filter struct {
	run.Filter

	// PurgeDays lets the run end with a purge of rows that are older, LeastRetention or more; 0 purges nothing. Only the timer sets it,
	// so an operator's comparison deletes nothing, and whoever carries the run on goes by the app's settings and not by his own.
	PurgeDays int `json:"purge_days,omitempty"`
}

// mostPurged bounds the rows of one night, to about: an hour and a half of ticks at the nightly rate. Until its end, other comparisons wait,
// and no night is started.
const mostPurged = 2_000_000

// noted is the position behind all parts: the entry of the audit log is a step of its own, so that a repetition purges nothing.
const noted Part = "noted"

// leastAudit is how many days who did what is kept at least, as long as evidence (deploy/storage/lifecycle.json).
const leastAudit = 365

// retention deletes the next old rows of a part, and in the end writes one entry of the audit log if any went. A step that is repeated
// after its rows went deletes the next ones: the first are then not counted, at most MaxPurge of them.
func (w *work) retention(ctx context.Context) (stepped, error) {
	at, days := w.at, w.filter.PurgeDays
	if days == 0 {
		return stepped{}, nil
	}
	if at.Part == noted {
		return stepped{}, w.notePurge(ctx, at.Purged, days)
	}
	parts := Parts()
	if at.Part == "" {
		at.Part = parts[0]
	}
	i := slices.Index(parts, at.Part)
	if i < 0 {
		return stepped{}, nil
	}
	keep := days
	if at.Part == AuditLog { // a shorter time is meant for details of errors, and takes nobody's trail away
		keep = max(days, leastAudit)
	}
	rows, err := w.p.Retention.Purge(ctx, at.Part, keep, MaxPurge)
	if err != nil {
		return stepped{}, err
	}
	next := position{Part: at.Part, Purged: map[Part]int{}}
	maps.Copy(next.Purged, at.Purged)
	switch {
	case rows > 0:
		if next.Purged[at.Part] += rows; sum(next.Purged) >= mostPurged {
			next.Part = noted
		}
		return stepped{next: &next, counts: map[Class]int{Purged: rows}}, nil
	case i+1 < len(parts):
		next.Part = parts[i+1]
	case len(next.Purged) > 0:
		next.Part = noted
	default:
		return stepped{}, nil
	}
	return stepped{next: &next}, nil
}

// notePurge writes the entry of the audit log, unless an earlier try did.
func (w *work) notePurge(ctx context.Context, purged map[Part]int, days int) error {
	detail, err := json.Marshal(struct {
		Days   int          `json:"days"`
		Purged map[Part]int `json:"purged"`
	}{days, purged})
	if err != nil {
		return fault.Wrap(fault.Internal, "reconcile: retention", "encode", "the detail cannot be written as JSON", err)
	}
	return w.p.Audits.WriteOnce(ctx, run.Audit{
		Code: run.CodeRetentionPurge, Level: run.LevelInfo, By: w.run.RequestedBy, Why: fmt.Sprintf("old rows deleted: %d", sum(purged)), Run: w.run.ID, Detail: detail,
	})
}

func sum(purged map[Part]int) (total int) {
	for _, rows := range purged {
		total += rows
	}
	return total
}
