package run

import (
	"context"
	"time"

	"sqlwriter/internal/writer"
)

// Preview calls each for the documents that a run would take, until it answers false. Nothing is changed. Errors as
// Selection.Page.
func Preview(ctx context.Context, s Selection, sysName string, kind Kind, f Filter, now time.Time, each func(writer.Waiting) bool) error {
	for continuation := ""; ; {
		found, next, err := s.Page(ctx, f.query(sysName, kind, now), continuation)
		if err != nil {
			return err
		}
		for _, w := range found {
			if f.fits(kind, w, now) && !each(w) {
				return nil
			}
		}
		if continuation = next; next == "" {
			return nil
		}
	}
}
