package sqlserver

import (
	"context"
	"time"
)

// Login connects, and returns the login's user in the database and the server's clock.
func (s *Store) Login(ctx context.Context) (user string, at time.Time, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT USER_NAME(), SYSUTCDATETIME()`).Scan(&user, &at)
	return user, at, s.closeIdleIfBroken(classifyDependency("sqlserver: open", err))
}
