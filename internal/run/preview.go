package run

import (
	"context"
	"time"

	"sqlwriter/internal/commit"
)

// PreviewLeft calls each for the documents that a replay of another run's failed and deferred documents (Filter.Run) would take, until
// it returns false. Errors as Batches.Items.
func PreviewLeft(ctx context.Context, s itemReader, f Filter, each func(document string) bool) error {
	const page = 1000
	for key := ""; ; {
		found, next, err := f.left(ctx, s, key, page)
		if err != nil {
			return err
		}
		for _, id := range found {
			if !each(id) {
				return nil
			}
		}
		if key = next; next == "" {
			return nil
		}
	}
}

// Preview calls each for the documents that a run would take, until it returns false. It changes nothing. Errors as Selection.Page.
func Preview(ctx context.Context, s Selection, sysName string, kind Kind, f Filter, now time.Time, each func(commit.PendingDoc) bool) error {
	for continuation := ""; ; {
		found, next, err := s.Page(ctx, f.query(sysName, kind, now), continuation)
		if err != nil {
			return err
		}
		for _, doc := range found {
			if f.accepts(kind, doc, now) && !each(doc) {
				return nil
			}
		}
		if continuation = next; next == "" {
			return nil
		}
	}
}
