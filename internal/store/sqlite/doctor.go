package sqlite

import (
	"context"
	"time"
)

// Login implements open.Store. A file has no users.
func (s *Store) Login(ctx context.Context) (user string, at time.Time, err error) {
	var text string
	err = s.reader.QueryRowContext(ctx, `SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`).Scan(&text)
	if err == nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	return "", at, classifyDependency("sqlite: log in", err)
}
