package shared

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Findings implements reconcile.Findings on a database. It is safe for concurrent use. A statement locks rows in the
// order of their keys.
type Findings struct{ changes }

var _ reconcile.Findings = (*Findings)(nil)

// NewFindings makes the findings of an engine without using the database.
func NewFindings(e Engine) *Findings { return &Findings{changes{e.statements(OfFindings, OfAuditLog)}} }

// request is what a comparison was asked for, as JSON.
type request struct {
	IDs   []string `json:"ids,omitempty"`
	Whole bool     `json:"whole,omitempty"`
}

// Begin implements reconcile.Findings.
func (s *Findings) Begin(ctx context.Context, c reconcile.Comparison) (began bool, err error) {
	op := s.op("begin comparison")
	asked, err := json.Marshal(request{c.IDs, c.Whole})
	if err != nil {
		return false, fault.Wrap(fault.Internal, op, fault.CodeBug, "the request cannot be written as JSON", err)
	}
	a, err := c.Audit().Normalize()
	if err != nil {
		return false, err
	}
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "comparison_begin", s.environment(), sql.Named("id", c.ID),
			sql.Named("request", string(asked)),
			sql.Named("named", boolInt(len(c.IDs) > 0)), sql.Named("night", boolInt(c.Night)), sql.Named("by", a.By),
			sql.Named("why", a.Why))
		if began = n > 0; err != nil || !began {
			return err
		}
		return s.audit(ctx, tx, a)
	})
	if fault.Has(err, fault.OwnWhenAlone) { // another tick began it meanwhile: its id is the only key from the caller
		return false, nil
	}
	return began && err == nil, err
}

// Next implements reconcile.Findings.
func (s *Findings) Next(ctx context.Context) (reconcile.Comparison, bool, error) {
	return s.comparison(ctx, "comparison_next")
}

// Last implements reconcile.Findings.
func (s *Findings) Last(ctx context.Context) (reconcile.Comparison, bool, error) {
	return s.comparison(ctx, "comparison_last")
}

func (s *Findings) comparison(ctx context.Context, name string) (c reconcile.Comparison, there bool, err error) {
	err = s.page(ctx, s.op("read comparison"), name, 1, func(rows *sql.Rows) error {
		var counts, asked string
		var failed sql.NullString
		var begun, moved, ended, read moment
		err := rows.Scan(&c.ID, &c.Night, &c.By, &c.Why, &c.Step, &c.Position, &counts, &failed, &begun,
			&moved, &ended, &asked, &read)
		if err != nil {
			return err
		}
		var r request
		if err := errors.Join(json.Unmarshal([]byte(counts), &c.Counts),
			json.Unmarshal([]byte(asked), &r)); err != nil {
			return fault.Wrap(fault.Internal, s.op("read comparison"), fault.CodeBug, "a column is not valid JSON", err)
		}
		c.IDs, c.Whole, c.Error, there = r.IDs, r.Whole, failed.String, true
		c.BegunAt, c.MovedAt, c.EndedAt, c.Ended, c.ReadAt = begun.Time, moved.Time, ended.Time,
			!ended.IsZero(), read.Time
		return nil
	}, s.environment())
	return c, there, err
}

// Save implements reconcile.Findings. The comparison's row comes first, so that two ticks never save the same findings
// at once.
func (s *Findings) Save(ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key) error {
	op := s.op("save comparison")
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "comparison_save", s.environment(), sql.Named("id", c.ID),
			sql.Named("step", int64(c.Step)),
			sql.Named("position", c.Position), sql.Named("error", c.Error), sql.Named("ended", boolInt(c.Ended)))
		if err := requireRow(n, err, op, "another tick did this step"); err != nil {
			return err
		}
		if err := s.saveFindings(ctx, tx, &c, put, drop); err != nil {
			return err
		}
		counts, err := json.Marshal(maps.Collect(maps.All(c.Counts))) // an object: null is not JSON to SQL Server
		if err != nil {
			return fault.Wrap(fault.Internal, op, fault.CodeBug, "the counts cannot be written as JSON", err)
		}
		_, err = s.exec(ctx, tx, "comparison_count", s.environment(), sql.Named("id", c.ID),
			sql.Named("counts", string(counts)))
		return err
	})
}

// saveFindings saves findings, and counts in c those that have no room.
func (s *Findings) saveFindings(
	ctx context.Context, tx *sql.Tx, c *reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key,
) error {
	rows := s.seenRows(put)
	for _, class := range slices.Sorted(maps.Keys(rows)) {
		room := []any{
			s.environment(), sql.Named("class", string(class)), sql.Named("most", int64(reconcile.MaxFindings)),
		}
		for part := range slices.Chunk(rows[class], maxRows) {
			known, err := s.execRows(ctx, tx, "findings_see", part)
			if err != nil {
				return err
			}
			added, err := s.execRows(ctx, tx, "findings_insert", part, room...)
			if err != nil {
				return err
			}
			c.Unkept(class, len(part)-int(known+added))
		}
	}
	drop = slices.Clone(drop)
	slices.SortFunc(drop, reconcile.Key.Compare)
	for _, k := range slices.Compact(drop) {
		_, err := s.exec(ctx, tx, "findings_drop", s.environment(), sql.Named("class", string(k.Class)),
			sql.Named("line", k.Line),
			HashArg("key", run.DocumentKey(k.Document)))
		if err != nil {
			return err
		}
	}
	return nil
}

// seenRows makes rows by class: line, key, class, environment, mark, sure, detail, mends, document. The environment
// lets an engine find a row by the list alone. Of a finding that comes twice the last counts.
func (s *Findings) seenRows(put []reconcile.Seen) map[reconcile.Class][][]any {
	last := map[reconcile.Key]reconcile.Seen{}
	for _, f := range put {
		last[f.Key] = f
	}
	rows := map[reconcile.Class][][]any{}
	for _, k := range slices.SortedFunc(maps.Keys(last), reconcile.Key.Compare) {
		f := last[k]
		rows[k.Class] = append(rows[k.Class], []any{
			k.Line, Hash(run.DocumentKey(k.Document)), k.Class, s.engine.SysName, f.Mark, boolInt(f.Sure),
			run.Truncate(f.Detail, reconcile.MaxDetail), boolInt(f.Mends),
			run.Truncate(k.Document, run.MaxSubject),
		})
	}
	return rows
}

// List implements reconcile.Findings. It asks class by class, because each has a range of an index.
func (s *Findings) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) ([]reconcile.Finding, error) {
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
		err := s.page(ctx, s.op("list findings"), "findings_list", limit-len(list), func(rows *sql.Rows) error {
			f, err := scanFinding(rows)
			f.Class = class
			list = append(list, f)
			return err
		}, s.environment(), sql.Named("class", string(class)), sql.Named("from", from), sql.Named("to", to),
			HashArg("after_key", key),
			sql.Named("suspects", boolInt(q.Suspects)), sql.Named("mends", boolInt(q.Mends)))
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func scanFinding(rows *sql.Rows) (f reconcile.Finding, err error) {
	var first, last moment
	err = rows.Scan(&f.Line, &f.Document, &first, &last, &f.Mark, &f.Sure, &f.Detail, &f.Mends)
	f.FirstSeen, f.LastSeen = first.Time, last.Time
	return f, err
}

// Counts implements reconcile.Findings.
func (s *Findings) Counts(ctx context.Context) ([]reconcile.Count, error) {
	list := []reconcile.Count{}
	err := s.each(ctx, s.engine.Read, "findings_count", func(rows *sql.Rows) error {
		var c reconcile.Count
		var first moment
		err := rows.Scan(&c.Class, &c.Findings, &first)
		c.First = first.Time
		list = append(list, c)
		return err
	}, s.environment())
	if err != nil {
		return nil, s.engine.Classify(s.op("count findings"), err)
	}
	return list, nil
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
