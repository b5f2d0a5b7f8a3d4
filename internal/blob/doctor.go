package blob

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

var _ ops.Trial = (*Store)(nil)

// trialFolder has the files of Try, below the environment.
const trialFolder = "doctor/"

// Try implements ops.Trial: it stores a file as {sys_name}/doctor/{id}, reads it and deletes it. Errors by kind:
// infrastructure, throttled; internal for an invalid id.
func (s *Store) Try(ctx context.Context, id string) error {
	name := trialFolder + id
	if err := s.Keep(ctx, name, []byte("{}")); err != nil {
		return err
	}
	if _, err := s.Read(ctx, name); err != nil {
		return err
	}
	return s.remove(ctx, name)
}

// Sweep implements ops.Trial. Errors as Try.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	for at := ""; ; {
		files, next, err := s.list(ctx, trialFolder, at)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.at.Before(before) {
				if err := s.remove(ctx, f.name); err != nil && !fault.Has(err, fault.Gone) { // another run sweeps, too
					return err
				}
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
