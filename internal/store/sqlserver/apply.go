package sqlserver

import (
	"context"
	"database/sql"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/shared"
)

const opApply = "sqlserver: apply"

// Apply implements commit.Sink in one request and one transaction; a rewrite reads the lines by another one before.
// After a lost acknowledgement everything may be written in spite of the error; the same request again then returns
// unchanged.
//
// Own codes: "verdict_without_evidence", "row_count" and "edited_meanwhile" (contention); "value" (document); "bug"
// (internal); "one_writer" (infrastructure, condition waits); "timeout", "cancelled", "connection" and "certificate"
// (infrastructure). Every other code is the server's number (classify.go).
//
// A document with a value that its column does not take is refused alone (DocumentOutcome.Refused). limits.go has the
// codes.
func (s *Store) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := commit.CheckRequest(s.tables.mapping, items, mode); err != nil {
		return nil, err
	}
	if len(items) == 0 && mode != commit.Preview {
		return []commit.DocumentOutcome{}, nil
	}
	return s.limits.applyFitting(ctx, items, func(fitting []commit.Item) ([]commit.DocumentOutcome, error) {
		return s.request(ctx, fitting, mode, known)
	})
}

// request makes one request for documents that fit.
func (s *Store) request(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	a := answer{items: items, mode: mode, form: s.form()}
	var err error
	if mode == commit.Rewrite {
		err = s.readLines(ctx, &a)
	}
	if err == nil {
		err = s.sendRequest(ctx, &a, known)
	}
	if err != nil {
		return nil, s.closeIdleIfBroken(heartbeatRefusal(opApply, classify(opApply, err), known))
	}
	return a.outcomes, nil
}

// form is the form of a request to this database.
func (s *Store) form() shared.Form {
	return shared.Form{Mapping: s.tables.mapping, TimeText: timeText, Stored: s.limits.stored}
}

func (s *Store) sendRequest(ctx context.Context, a *answer, known breaker.Heartbeat) error {
	payload, err := shared.Request(a.items, a.form)
	if err != nil {
		return err
	}
	args := a.arguments(payload)
	if a.mode == commit.Preview {
		return s.send(ctx, opApply, s.procedures.name(procPreview), a.read,
			append(args, sql.Named("sys_name", known.SysName)))
	}
	name := procApply
	if a.mode == commit.Rewrite {
		name, args = procRewrite, append(args, sql.Named("releases", mssql.NVarCharMax(payload.Releases)))
	}
	args = append(args, sql.Named("one_writer", s.oneWriter))
	return s.send(ctx, opApply, s.procedures.name(name), a.read, append(args, knownArguments(known)...))
}

// arguments are the parameters that a write and a preview share.
func (a *answer) arguments(payload shared.Payload) []any {
	lines, marks, repeated, seen := 0, 0, a.leavesAlone, map[int64]bool{}
	for _, it := range a.items {
		for position := range it.Rows() {
			line := it.Line(position)
			repeated = repeated || seen[line]
			seen[line] = true
		}
		lines += it.Rows()
		if it.FailureMark {
			marks += it.Rows()
		}
	}
	return []any{
		sql.Named("request", mssql.NVarCharMax(payload.JSON)), sql.Named("hashes", payload.Hashes),
		sql.Named("expected", int64(lines)), sql.Named("marks", int64(marks)),
		sql.Named("twice", repeated),
	}
}

// knownArguments are the heartbeat that the control document has.
func knownArguments(known breaker.Heartbeat) []any {
	id := sql.NullString{String: known.DatabaseID, Valid: known.DatabaseID != ""}
	return []any{sql.Named("sys_name", known.SysName), sql.Named("database_id", id), sql.Named("number", known.Number)}
}

// timeText is a time for datetime2, which has no zone and stores UTC.
func timeText(canonical string) string { return strings.TrimSuffix(canonical, "Z") }

// send calls a procedure and reads its whole answer, because an error may follow the rows.
func (s *Store) send(ctx context.Context, op, procedure string, read func(*sql.Rows) error, args []any) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return classifyDependency(op, err) // no document was sent yet
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	// The driver calls a text that is only a name as a procedure, whose plan the server has.
	rows, err := conn.QueryContext(ctx, procedure, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // drain checks the end of the stream
	if err := read(rows); err != nil {
		return err
	}
	return drain(rows)
}

// drain reads the rest of the stream, where errors after the last row appear, including those of the COMMIT.
func drain(rows *sql.Rows) error {
	for {
		for rows.Next() { //nolint:revive // further rows are ignored
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

// closeIdleIfBroken closes the idle connections after a connection error. After a failover they are broken too, and
// each would cost another request.
//
// The broken connection may itself be idle: after a failed send the driver returns it to the pool as good.
func (s *Store) closeIdleIfBroken(err error) error {
	if e := fault.As(err); e != nil && e.Code == codeConnection {
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(s.maxOpen)
	}
	return err
}
