package blob

import (
	"context"
	"crypto/rand"
	"time"

	"sqlwriter/internal/fault"
)

// TryWrites stores a file of its own as {sys_name}/doctor/{random}, reads it and deletes it. It also deletes those that
// were stored before a time and left by one that was killed. Errors by kind: infrastructure, throttled.
func (s *Store) TryWrites(ctx context.Context, before time.Time) error {
	const folder = "doctor/"
	name := folder + rand.Text()
	if err := s.Keep(ctx, name, []byte("{}")); err != nil {
		return err
	}
	if _, err := s.Read(ctx, name); err != nil {
		return err
	}
	if err := s.remove(ctx, name); err != nil {
		return err
	}
	for at := ""; ; {
		files, next, err := s.list(ctx, folder, at)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !f.at.Before(before) {
				continue
			}
			// Another doctor deletes it, too.
			if err := s.remove(ctx, f.name); err != nil && !fault.Has(err, fault.Gone) {
				return err
			}
		}
		if at = next; at == "" {
			return nil
		}
	}
}

func (s *Store) remove(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx, s.timeouts.Keep)
	defer cancel()
	_, err := s.file(name).Delete(ctx, nil)
	return translated(operation{"blob: delete", onFile}, err)
}
