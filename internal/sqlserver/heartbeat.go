package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

const opHeartbeat = "sqlserver: heartbeat"

// codeReadOnly says that the database answers reads only: a secondary replica, or one that was set so.
const codeReadOnly = "read_only"

// Heartbeat implements writer.Sink: one request, one transaction (sql/heartbeat.sql). Codes of our own: "read_only",
// breaker.CodeWentBack, breaker.CodeOtherDatabase (infrastructure); every other code is as for Apply.
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements writer.Sink: the same request without the comparison.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Store) raise(ctx context.Context, known breaker.Heartbeat, takeOver bool) (breaker.Heartbeat, error) {
	row := breaker.Heartbeat{SysName: known.SysName}
	args := append(knownArguments(known), sql.Named("take_over", takeOver))
	if err := s.readOne(ctx, s.procedures.name(procHeartbeat), []any{&row.DatabaseID, &row.Number}, args...); err != nil {
		return breaker.Heartbeat{}, s.failed(numbered(refused(err), known))
	}
	return row, nil
}

// numbered says in the reason of a refusal which row the database has, and which one is known.
func numbered(err error, known breaker.Heartbeat) error {
	if !breaker.Refused(err) {
		return err
	}
	own := *fault.As(err)
	own.Reason = fmt.Sprintf("%s: %s; known is %d of %s", own.Reason, serverText(own.Err), known.Number, known.DatabaseID)
	return &own
}

// refused translates an error of a heartbeat. It concerns no document, so no condition that speaks of one stays.
func refused(err error) error {
	err = outside(opHeartbeat, err)
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
