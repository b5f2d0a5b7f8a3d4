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

// codeReadOnly means a read-only database, such as a secondary replica.
const codeReadOnly = "read_only"

// Heartbeat implements commit.Sink in one request and one transaction (sql/heartbeat.sql). Own codes: "read_only",
// breaker.CodeWentBack, breaker.CodeOtherDatabase (infrastructure). Other codes are those of Apply.
func (s *Store) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements commit.Sink. It is the request of a heartbeat without the comparison.
func (s *Store) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Store) raise(ctx context.Context, known breaker.Heartbeat, takeOver bool) (breaker.Heartbeat, error) {
	row := breaker.Heartbeat{SysName: known.SysName}
	args := append(knownArguments(known), sql.Named("take_over", takeOver))
	if err := s.readOne(ctx, opHeartbeat, s.procedures.name(procHeartbeat),
		[]any{&row.DatabaseID, &row.Number}, args...); err != nil {
		return breaker.Heartbeat{}, s.closeIdleIfBroken(heartbeatRefusal(opHeartbeat, heartbeatError(err), known))
	}
	return row, nil
}

// heartbeatRefusal makes the refusal that all engines share from the server's error. The message has the row's number
// and id.
func heartbeatRefusal(op string, err error, known breaker.Heartbeat) error {
	if !breaker.Refused(err) {
		return err
	}
	row := breaker.Heartbeat{SysName: known.SysName}
	_, errorText, _ := strings.Cut(serverText(err), refusalPrefix)
	_, _ = fmt.Sscan(errorText, &row.Number, &row.DatabaseID) // empty where there is no row
	if same := known.Refuse(op, row); same != nil {
		return same
	}
	return err
}

// refusalPrefix comes before number and id in the message of a refusal (sql/database.sql, sql/heartbeat.sql).
const refusalPrefix = "sqlwriter: heartbeat "

// heartbeatError classifies an error of a heartbeat. It removes the condition, because the error concerns no document.
func heartbeatError(err error) error {
	err = classifyDependency(opHeartbeat, err)
	e := fault.As(err)
	if e == nil {
		return err
	}
	own := *e
	own.Condition = fault.NoCondition
	if slices.Contains([]string{"3906", "3908", "3924"}, own.Code) { // one row of rules
		own.Code = codeReadOnly
	}
	return &own
}
