package blob

import (
	"cmp"
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
	err := s.Keep(ctx, name, []byte("{}"))
	if err == nil {
		_, err = s.Read(ctx, name)
	}
	if err == nil {
		err = s.remove(ctx, name)
	}
	for at, more := "", true; more && err == nil; more = at != "" {
		var files []file
		files, at, err = s.list(ctx, folder, at)
		for _, f := range files {
			if f.at.Before(before) {
				err = cmp.Or(err, s.remove(ctx, f.name))
			}
		}
	}
	return err
}

// remove deletes a file. Another doctor may have deleted it.
func (s *Store) remove(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx, s.timeouts.Keep)
	defer cancel()
	_, err := s.file(name).Delete(ctx, nil)
	if err = translated(operation{"blob: delete", onFile}, err); fault.Has(err, fault.Gone) {
		return nil
	}
	return err
}
