package sqlserver

import (
	"context"
	"time"
)

// Login implements open.Store.
func (s *Store) Login(ctx context.Context) (user string, at time.Time, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT USER_NAME(), SYSUTCDATETIME()`).Scan(&user, &at)
	return user, at, s.closeIdleIfBroken(classifyDependency("sqlserver: open", err))
}
