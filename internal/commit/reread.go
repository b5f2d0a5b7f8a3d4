package commit

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// reread reads the document of a snapshot again, or the one with its id that was put in its place. Another document
// with its id counts only then. Errors as Documents.Read.
func reread(
	ctx context.Context, by invoice.Reader, docs Documents, was invoice.Snapshot, now time.Time,
) (invoice.Snapshot, error) {
	raw, err := docs.Read(ctx, was.ID)
	if err == nil {
		return by.ReadSnapshot(raw, now)
	}
	if fault.CodeOf(err) != CodeIDTwice {
		return invoice.Snapshot{}, err
	}
	raws, failed := docs.ReadMany(ctx, []string{was.ID})
	if failed != nil {
		return invoice.Snapshot{}, failed
	}
	for _, raw := range raws {
		if d, unreadable := by.ReadSnapshot(raw, now); unreadable == nil && d.Identity() == was.Identity() {
			return d, nil
		}
	}
	return invoice.Snapshot{}, err
}
