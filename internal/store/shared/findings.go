package shared

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

//go:embed findings/*.sql findings/parts/*.sql
var findingFiles embed.FS

// FindingTables are the names of tables that only Findings uses.
type FindingTables struct {
	Finding, Adoption string
	// IndexByState, behind the table, makes the engine use the index that begins with the state. It is empty on an engine that chooses
	// by statistics.
	IndexByState string
}

// Findings implements reconcile.Findings and reconcile.Accepter on a database. It is safe for concurrent use.
//
// Every transaction locks the rows of finding before those of audit_log. A statement locks them in the order of their keys.
type Findings struct{ changes }

var (
	_ reconcile.Findings = (*Findings)(nil)
	_ reconcile.Accepter = (*Findings)(nil)
)

// NewFindings makes the findings of an engine without using the database.
func NewFindings(e RunEngine, tables FindingTables) *Findings {
	texts, err := FindingTexts(e.RunDialect, tables)
	if err != nil {
		panic("shared: " + err.Error()) // the templates and their data are constant
	}
	return &Findings{e.changes(texts)}
}

const (
	stFindings        = "findings_list"
	stFindingsByState = "findings_list_by_state"
)

// FindingTexts returns the statements by name (the file's name without .sql, or one of the constants).
func FindingTexts(d RunDialect, tables FindingTables) (map[string]string, error) {
	t := template.New("").Option("missingkey=error")
	for _, from := range []struct {
		files    embed.FS
		patterns []string
	}{
		{auditLogFiles, []string{"auditlog/begin.sql"}},
		{runFiles, []string{"runs/audit_add.sql"}},
		{findingFiles, []string{"findings/*.sql", "findings/parts/*.sql"}},
	} {
		if _, err := t.ParseFS(from.files, from.patterns...); err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
	}
	files, err := fs.Glob(findingFiles, "findings/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	type data struct {
		RunDialect
		FindingTables
		ByState bool
	}
	texts := map[string]string{}
	for _, f := range append(files, "audit_add.sql") {
		name := strings.TrimSuffix(path.Base(f), ".sql")
		if texts[name], err = render(t, name, data{d, tables, false}); err != nil {
			return nil, err
		}
	}
	texts[stFindingsByState], err = render(t, stFindings, data{d, tables, true})
	return texts, err
}

// Save implements reconcile.Findings.
func (s *Findings) Save(ctx context.Context, runID string, seen []reconcile.Seen, gone []reconcile.Key) (opened, closed int, err error) {
	err = s.inTx(ctx, s.op("save findings"), func(tx *sql.Tx) error {
		opened, closed = 0, 0
		rows := s.seenRows(seen)
		for _, class := range slices.Sorted(maps.Keys(rows)) {
			n, err := s.saveSeen(ctx, tx, runID, class, rows[class])
			if err != nil {
				return err
			}
			opened += n
		}
		n, err := s.execRows(ctx, tx, "findings_close", s.keyRows(gone), sql.Named("run", runID))
		closed = int(n)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return opened, closed, nil
}

// saveSeen saves the findings of a class, and counts those that it opened.
func (s *Findings) saveSeen(ctx context.Context, tx *sql.Tx, runID string, class reconcile.Class, list [][]any) (opened int, err error) {
	room := []any{s.environment(), sql.Named("class", s.key(string(class))), sql.Named("most", int64(reconcile.MaxOpen))}
	by := sql.Named("run", runID)
	for part := range slices.Chunk(list, maxRows) {
		known, err := s.execRows(ctx, tx, "findings_open", part, room...)
		if err != nil {
			return 0, err
		}
		if _, err := s.execRows(ctx, tx, "findings_see", part, by); err != nil {
			return 0, err
		}
		added, err := s.execRows(ctx, tx, "findings_insert", part, append(slices.Clip(room), by)...)
		if err != nil {
			return 0, err
		}
		opened += int(known + added)
	}
	return opened, nil
}

// keyRow begins the rows of all lists: line, key, class, environment. The environment lets an engine find a row by the list alone.
func (s *Findings) keyRow(k reconcile.Key) []any {
	return []any{k.Line, run.DocumentKey(k.Document), k.Class, s.engine.SysName}
}

// seenRows makes rows by class: keyRow, row hash, detail, mend, document. Of a finding that comes twice the last counts.
func (s *Findings) seenRows(seen []reconcile.Seen) map[reconcile.Class][][]any {
	last := map[reconcile.Key]reconcile.Seen{}
	for _, f := range seen {
		last[f.Key] = f
	}
	rows := map[reconcile.Class][][]any{}
	for key, f := range last {
		rows[key.Class] = append(rows[key.Class], append(
			s.keyRow(key), f.RowHash, ops.Truncate(f.Detail, reconcile.MaxDetail), f.Mend, ops.Truncate(key.Document, ops.MaxSubject),
		))
	}
	for _, list := range rows {
		slices.SortFunc(list, compareKeyRows)
	}
	return rows
}

// keyRows makes the rows of keys, each once.
func (s *Findings) keyRows(keys []reconcile.Key) [][]any {
	once := map[reconcile.Key]bool{}
	for _, k := range keys {
		once[k] = true
	}
	list := make([][]any, 0, len(once))
	for k := range once {
		list = append(list, s.keyRow(k))
	}
	slices.SortFunc(list, compareKeyRows)
	return list
}

// compareKeyRows compares in the order in which all transactions lock rows.
func compareKeyRows(a, b []any) int {
	return cmp.Or(
		cmp.Compare(a[2].(reconcile.Class), b[2].(reconcile.Class)), cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(string), b[1].(string)),
	)
}

// List implements reconcile.Findings. It asks class by class, because each has a range of an index.
func (s *Findings) List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) ([]reconcile.Finding, error) {
	classes := slices.Clone(q.Classes)
	if len(classes) == 0 {
		classes = reconcile.FindingClasses()
	}
	slices.Sort(classes)
	list := []reconcile.Finding{}
	for _, class := range slices.Compact(classes) {
		from, to, key := int64(math.MinInt64), int64(math.MaxInt64), ""
		if q.Line != 0 {
			from, to = q.Line, q.Line
		}
		switch {
		case after == nil || class > after.Class || class == after.Class && from > after.Line:
		case class < after.Class || to < after.Line:
			continue
		default:
			from, key = after.Line, run.DocumentKey(after.Document)
		}
		name, args := stFindings, []any{
			s.environment(), sql.Named("class", s.key(string(class))), sql.Named("from", from), sql.Named("to", to), sql.Named("after", s.key(key)),
			sql.Named("unqueued", boolInt(q.Unqueued)), sql.Named("mend", s.key(string(q.Mend))),
		}
		if q.State != "" {
			name, args = stFindingsByState, append(args, sql.Named("state", s.key(string(q.State))))
		}
		err := s.page(ctx, s.op("list findings"), name, limit-len(list), func(rows *sql.Rows) error {
			f, err := scanFinding(rows)
			f.Class = class
			list = append(list, f)
			return err
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func scanFinding(rows *sql.Rows) (f reconcile.Finding, err error) {
	var first, last moment
	var queued, accepted, by, why sql.NullString
	err = rows.Scan(&f.Line, &f.Document, &f.State, &first, &last, &f.Run, &f.RowHash, &f.Detail, &f.Mend, &queued, &accepted, &by, &why)
	f.FirstSeen, f.LastSeen, f.QueuedBy = first.Time, last.Time, queued.String
	f.AcceptedHash, f.By, f.Why = accepted.String, by.String, why.String
	return f, err
}

// Counts implements reconcile.Findings.
func (s *Findings) Counts(ctx context.Context) ([]reconcile.Count, error) {
	list := []reconcile.Count{}
	err := s.each(ctx, s.engine.Read, "findings_count", func(rows *sql.Rows) error {
		var class reconcile.Class
		var state reconcile.State
		var n int
		var first moment
		if err := rows.Scan(&class, &state, &n, &first); err != nil {
			return err
		}
		if len(list) == 0 || list[len(list)-1].Class != class {
			list = append(list, reconcile.Count{Class: class})
		}
		c := &list[len(list)-1]
		if state == reconcile.Accepted {
			c.Accepted = n
			return nil
		}
		c.Open, c.First = n, first.Time
		return nil
	}, s.environment())
	if err != nil {
		return nil, s.engine.Classify(s.op("count findings"), err)
	}
	return list, nil
}

// MarkQueued implements reconcile.Findings.
func (s *Findings) MarkQueued(ctx context.Context, by string, keys []reconcile.Key) error {
	return s.inTx(ctx, s.op("mark findings queued"), func(tx *sql.Tx) error {
		_, err := s.execRows(ctx, tx, "findings_queued", s.keyRows(keys), sql.Named("by", by))
		return err
	})
}

// Accept implements reconcile.Accepter.
func (s *Findings) Accept(ctx context.Context, keys []reconcile.Key, a run.Audit) error {
	op := s.op("accept findings")
	a, err := normalizedAudit(a)
	if err != nil {
		return err
	}
	list := s.keyRows(keys)
	if len(list) == 0 {
		return nil
	}
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.execRows(ctx, tx, "findings_accept", list, sql.Named("by", a.By), sql.Named("why", a.Why))
		if err != nil {
			return err
		}
		if n < int64(len(list)) {
			return changedErr(op, fmt.Sprintf("%d of %d findings are gone or unknown", int64(len(list))-n, len(list)))
		}
		return s.audit(ctx, tx, a)
	})
}

// LastCompleted implements reconcile.Findings.
func (s *Findings) LastCompleted(ctx context.Context, kind run.Kind) (runID string, began time.Time, ok bool, err error) {
	err = s.page(ctx, s.op("last completed run"), "last_completed", 1, func(rows *sql.Rows) error {
		var at moment
		err := rows.Scan(&runID, &at)
		began, ok = at.Time, err == nil
		return err
	}, s.environment(), sql.Named("kind", string(kind)))
	if err != nil {
		return "", time.Time{}, false, err
	}
	return runID, began, ok, nil
}

// Waits implements reconcile.Findings.
func (s *Findings) Waits(ctx context.Context, r run.Run, follows string) (waits bool, err error) {
	err = s.each(ctx, s.engine.Read, "run_waits", func(rows *sql.Rows) error {
		waits = true
		return nil
	}, s.environment(), sql.Named("kind", string(r.Kind)), sql.Named("run", r.ID), sql.Named("follows", follows))
	if err != nil {
		return false, s.engine.Classify(s.op("older runs"), err)
	}
	return waits, nil
}

// AdoptedAt implements reconcile.Findings.
func (s *Findings) AdoptedAt(ctx context.Context) (at time.Time, err error) {
	err = s.each(ctx, s.engine.Read, "adopted_at", func(rows *sql.Rows) error {
		var m moment
		err := rows.Scan(&m)
		at = m.Time
		return err
	})
	if err != nil {
		return time.Time{}, s.engine.Classify(s.op("adoption"), err)
	}
	return at, nil
}
