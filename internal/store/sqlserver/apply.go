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

// Apply implements commit.Sink: one request, one transaction. With an error nothing is known to be written: after a lost
// acknowledgement everything may be, and the same request again answers unchanged. Codes of our own:
// "verdict_without_evidence", "row_count" (contention), "value" (document), "mode", "values",
// "repeated_line", "encode", "answer", "verdict_count" (internal), "timeout", "cancelled", "connection", "certificate"
// (infrastructure); every other code is the server's number (classify.go). A document with a value that its column cannot
// hold is refused by itself (Outcome.Refused; limits.go has the codes).
func (s *Store) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	if err := commit.CheckRequest(items, mode); err != nil {
		return nil, err
	}
	if len(items) == 0 && mode != commit.Preview {
		return []commit.Outcome{}, nil
	}
	return s.limits.applyFitting(ctx, items, func(fitting []commit.Item) ([]commit.Outcome, error) { return s.request(ctx, fitting, mode, known) })
}

// request makes one request.
func (s *Store) request(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	payload, err := shared.Request(items, timeText)
	if err != nil {
		return nil, err
	}
	a := answer{items: items, mode: mode}
	if err := s.sendRequest(ctx, payload, &a, known); err != nil {
		return nil, s.closeIdleIfBroken(heartbeatRefusal(opApply, classify(opApply, err), known))
	}
	return a.outcomes, nil
}

// sendRequest calls the procedure of the request's mode.
func (s *Store) sendRequest(ctx context.Context, payload string, a *answer, known breaker.Heartbeat) error {
	if a.mode == commit.Preview {
		return s.send(ctx, s.procedures.name(procPreview), a, a.arguments(payload))
	}
	return s.send(ctx, s.procedures.name(procApply), a, append(a.arguments(payload), knownArguments(known)...))
}

// arguments are what a write and a preview are told of the request.
func (a *answer) arguments(payload string) []any {
	lines, marks, repeated, seen := 0, 0, false, map[int64]bool{}
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
		sql.Named("request", mssql.NVarCharMax(payload)), sql.Named("rewrite", a.mode == commit.Rewrite), sql.Named("expected", int64(lines)),
		sql.Named("marks", int64(marks)), sql.Named("twice", repeated),
	}
}

// knownArguments are the heartbeat that the control document knows.
func knownArguments(known breaker.Heartbeat) []any {
	id := sql.NullString{String: known.DatabaseID, Valid: known.DatabaseID != ""}
	return []any{sql.Named("sys_name", known.SysName), sql.Named("database_id", id), sql.Named("number", known.Number)}
}

// timeText is a time as datetime2 takes it. It has no zone: it holds UTC.
func timeText(canonical string) string { return strings.TrimSuffix(canonical, "Z") }

// send calls a procedure and reads its answer to the end: what came before an error counts for nothing.
func (s *Store) send(ctx context.Context, procedure string, a *answer, args []any) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return classifyDependency(opApply, err) // nothing of a document was sent yet
	}
	defer func() { _ = conn.Close() }() // only hands the connection back
	// A text that is a name alone is called as a procedure: the server has its plan.
	rows, err := conn.QueryContext(ctx, procedure, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // the stream's own end is looked at below
	if err := a.read(rows); err != nil {
		return err
	}
	return drain(rows)
}

// toTheEnd reads whatever is left of the stream. Errors after the last row, of the COMMIT too, stand there.
func drain(rows *sql.Rows) error {
	for {
		for rows.Next() { //nolint:revive // nothing is expected here
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

// failed lets go of the idle connections when one was found broken: after a failover its siblings are broken as well, and
// each of them would cost another request to find out. It may even be among them: the driver hands a connection back as
// good when sending failed (it keeps that cause as text only, and does not recognise it).
func (s *Store) closeIdleIfBroken(err error) error {
	if e := fault.As(err); e != nil && e.Code == codeConnection {
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(s.maxOpen)
	}
	return err
}
