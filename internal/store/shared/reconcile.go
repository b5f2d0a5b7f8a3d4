package shared

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// The statements of Rows.
const (
	ReconcileScan  = "reconcile_scan"
	ReconcileLines = "reconcile_lines"
)

// Rows implements reconcile.Rows over an engine's statements. It is safe for concurrent use.
type Rows struct {
	engine  RowsEngine
	columns []invoice.Column
}

// NewRows makes a Rows of an engine.
func NewRows(e RowsEngine) Rows { return Rows{engine: e, columns: e.Mapping.Columns()} }

// RowsEngine is what an engine gives to Rows.
type RowsEngine struct {
	// Mapping is that of the statements. Recipes are its recipes, by version.
	Mapping *invoice.Mapping
	Recipes func(ctx context.Context) (Recipes, error)
	// SysName is the environment. KeptDays is for how many days the user keeps a line's row after a write; 0 means for
	// ever.
	SysName  string
	KeptDays int
	// Query runs a statement that only reads, and calls each for every row of its result. It classifies errors; none is
	// a document's.
	Query func(ctx context.Context, statement string, each func(*sql.Rows) error, args ...any) error
	// Values makes values as Recipe.RowHashes had them when the line was written. found has the values of the line's
	// columns, aligned with columns; nil means NULL.
	Values func(line int64, columns []invoice.Column, found []any) ([]invoice.Value, error)
}

// Scan implements reconcile.Rows.
func (r Rows) Scan(ctx context.Context, after int64, limit int) (reconcile.Scanned, error) {
	scanned, rows := reconcile.Scanned{Last: after, Documents: map[string][]int64{}}, 0
	err := r.lines(ctx, ReconcileScan, func(l storedLine) {
		rows++
		scanned.Last = l.ID
		if l.Ledger.SysName != r.engine.SysName {
			return
		}
		scanned.Documents[l.Ledger.DocumentID] = append(scanned.Documents[l.Ledger.DocumentID], l.ID)
		switch l.state() {
		case reconcile.RowsSame:
			scanned.Same++
		case reconcile.RowsReviewed:
			scanned.Reviewed++
		case reconcile.RowsUnknown:
			if l.Ledger.Marked() {
				scanned.Same++
			} else {
				l.countIn(&scanned.NotComparable)
			}
		case reconcile.RowsArchived:
			scanned.Archived++
		case reconcile.RowsEdited, reconcile.RowsNoTracking, reconcile.RowsMissing:
			scanned.Differ = append(scanned.Differ, l.ID)
		}
	}, sql.Named("after", after), sql.Named("limit", int64(limit)), sql.Named("sys_name", r.engine.SysName),
		r.days())
	if err != nil {
		return reconcile.Scanned{}, err
	}
	scanned.More = rows == limit
	return scanned, nil
}

// Lines implements reconcile.Rows.
func (r Rows) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ids = slices.Clone(ids)
	slices.Sort(ids) // the usual order of locks
	ids = slices.Compact(ids)
	lines := make([]reconcile.Line, 0, len(ids))
	err := r.lines(ctx, ReconcileLines, func(l storedLine) {
		lines = append(lines, l.line())
	}, sql.Named("lines", idList(ids)), r.days())
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// days is the parameter of KeptDays.
func (r Rows) days() sql.NamedArg { return sql.Named("days", int64(r.engine.KeptDays)) }

// lines reads the rows of a statement that gives lines.
func (r Rows) lines(ctx context.Context, statement string, each func(storedLine), args ...any) error {
	recipes, err := r.engine.Recipes(ctx)
	if err != nil {
		return err
	}
	var n nullable
	found := make([]any, len(r.columns))
	return r.engine.Query(ctx, statement, func(rows *sql.Rows) error {
		l := storedLine{columns: r.columns}
		to := n.columns(&l)
		for i := range found {
			to = append(to, &found[i])
		}
		if err := rows.Scan(to...); err != nil {
			return unreadable(err)
		}
		n.fill(&l)
		l.Ledger.Recipe = recipes[l.Ledger.HashVersion]
		var err error
		if l.Values, err = r.engine.Values(l.ID, r.columns, found); err != nil {
			return err
		}
		each(l)
		return nil
	}, args...)
}

// nullable has the columns of a ledger row that may be absent.
type nullable struct {
	us, sourceTS, hashVersion           sql.NullInt64
	document, sysName, outcome, writeID sql.NullString
	key, hash, detailRow, tracking      Hash
}

// columns are the places of a row's first columns: the line, its ledger row, its age, and which of the user's rows
// exist.
func (n *nullable) columns(l *storedLine) []any {
	return []any{
		&l.ID, &n.us, &n.key, &n.document, &n.sourceTS, &n.hash, &n.hashVersion, &n.sysName, &n.outcome, &n.writeID,
		&n.detailRow, &n.tracking, &l.Old, &l.Detail, &l.Tracking,
	}
}

func (n *nullable) fill(l *storedLine) {
	l.Ledger = reconcile.Ledger{
		Outcome: n.outcome.String, Version: invoice.Version{US: n.us.Int64, Key: string(n.key)},
		DocumentID: n.document.String,
		SysName:    n.sysName.String, SourceTS: n.sourceTS.Int64, Hash: string(n.hash),
		HashVersion: int(n.hashVersion.Int64), WriteID: n.writeID.String,
	}
	l.DetailHash, l.TrackingHash = string(n.detailRow), string(n.tracking)
}

func unreadable(err error) error {
	return fault.Wrap(fault.Internal, "store: reconcile", fault.CodeBug, "a row of the comparison cannot be read", err)
}

// idList is a JSON list of rows with one id each.
func idList(ids []int64) string {
	b := []byte("[")
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(append(b, '['), id, 10), ']')
	}
	return string(append(b, ']'))
}

// storedLine is a line with its ledger row and its rows, as an engine read them.
type storedLine struct {
	ID     int64
	Ledger reconcile.Ledger
	// DetailHash and TrackingHash are the ledger's; empty where it has NULL.
	DetailHash, TrackingHash string
	// Old: it was written longer ago than RowsEngine.KeptDays.
	Old bool
	// Detail and Tracking report whether the rows exist.
	Detail, Tracking bool
	// Values are those of both rows, as RowsEngine.Values makes them, aligned with columns.
	Values  []invoice.Value
	columns []invoice.Column
}

// state compares the rows with the ledger row.
func (l storedLine) state() reconcile.RowState {
	switch {
	case !l.Detail && l.Old:
		return reconcile.RowsArchived
	case !l.Detail:
		return reconcile.RowsMissing
	case l.Ledger.Recipe == nil || l.DetailHash == "" || l.TrackingHash == "":
		return reconcile.RowsUnknown
	}
	detail, tracking := l.Ledger.Recipe.RowHashes(l.Values)
	switch {
	case detail != l.DetailHash:
		return reconcile.RowsEdited
	case !l.Tracking:
		return reconcile.RowsNoTracking
	case tracking != l.TrackingHash:
		return reconcile.RowsEdited
	case l.reviewed():
		return reconcile.RowsReviewed
	}
	return reconcile.RowsSame
}

// countIn counts a line that is not comparable.
func (l storedLine) countIn(versions *map[int]int) {
	version := l.Ledger.HashVersion
	if l.DetailHash == "" {
		version = 0
	}
	if *versions == nil {
		*versions = map[int]int{}
	}
	(*versions)[version]++
}

// reviewed reports a status that no document gives. The row hashes leave the status out.
func (l storedLine) reviewed() bool {
	for i, c := range l.columns {
		if c.Status && (l.Values[i].Null || !slices.Contains(c.Values, l.Values[i].Text)) {
			return true
		}
	}
	return false
}

// line is the line as the port has it.
func (l storedLine) line() reconcile.Line {
	line := reconcile.Line{ID: l.ID, Ledger: l.Ledger, Rows: l.state(), RowHash: l.rowHash()}
	if l.Detail {
		line.Values = l.Values
	}
	return line
}

// rowHash is the hash of both rows, status included; empty if both are missing. A new column changes it only where it
// has a value.
func (l storedLine) rowHash() string {
	if !l.Detail && !l.Tracking {
		return ""
	}
	b := strconv.AppendBool(strconv.AppendBool(nil, l.Detail), l.Tracking)
	for i, c := range l.columns {
		if l.Values[i].Null {
			continue
		}
		for _, text := range []string{string(c.Table), c.Name, l.Values[i].Text} {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
