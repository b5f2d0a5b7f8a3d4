package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

const opHeartbeat = "sqlserver: heartbeat"

// codeReadOnly says that the database answers reads only: a secondary replica, or one that was set so.
const codeReadOnly = "read_only"

// Heartbeat implements commit.Sink: one request, one transaction (sql/heartbeat.sql). Codes of our own: "read_only",
// breaker.CodeWentBack, breaker.CodeOtherDatabase (infrastructure); every other code is as for Apply.
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements commit.Sink: the same request without the comparison.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Store) raise(ctx context.Context, known breaker.Heartbeat, takeOver bool) (breaker.Heartbeat, error) {
	row := breaker.Heartbeat{SysName: known.SysName}
	args := append(knownArguments(known), sql.Named("take_over", takeOver))
	if err := s.readOne(ctx, opHeartbeat, s.procedures.name(procHeartbeat), []any{&row.DatabaseID, &row.Number}, args...); err != nil {
		return breaker.Heartbeat{}, s.closeIdleIfBroken(heartbeatRefusal(opHeartbeat, heartbeatError(err), known))
	}
	return row, nil
}

// compared makes the refusal that all engines have of the one that the server sent: its message says the row.
func heartbeatRefusal(op string, err error, known breaker.Heartbeat) error {
	if !breaker.Refused(err) {
		return err
	}
	row := breaker.Heartbeat{SysName: known.SysName}
	_, errorText, _ := strings.Cut(serverText(err), refusalPrefix)
	_, _ = fmt.Sscan(errorText, &row.Number, &row.DatabaseID) // nothing stands there where there is no row
	if same := known.Refuse(op, row); same != nil {
		return same
	}
	return err
}

// rowForm stands before number and id in the message of a refusal (sql/database.sql, sql/heartbeat.sql).
const refusalPrefix = "sqlwriter: heartbeat "

// refused translates an error of a heartbeat. It concerns no document, so no condition that speaks of one stays.
func heartbeatError(err error) error {
	err = classifyDependency(opHeartbeat, err)
	e := fault.As(err)
	if e == nil {
		return err
	}
	own := *e
	own.Condition = fault.NoCondition
	if slices.Contains([]string{"3906", "3908", "3924"}, own.Code) { // one row of classify.go
		own.Code = codeReadOnly
	}
	return &own
}
