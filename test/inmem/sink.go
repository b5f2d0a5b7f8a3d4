package inmem

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// Sink is commit.Sink in plain maps: for programs that need no database, and the oracle that the SQL adapters are
// compared with. It follows the same rules by other means: one function per rule (sinkrules.go), no SQL. One lock
// around everything makes each Apply alone in the world, so contention never happens here.
type Sink struct {
	*database
	// mapping has columns that mapping.InUse has too.
	mapping *invoice.Mapping
	// places are those of the mapping's columns in a line.
	places []int
}

// database is what sinks of several mappings share.
type database struct {
	mu sync.Mutex
	// mappings are those that sinks wrote by.
	mappings []*invoice.Mapping

	lines  map[int64]Line
	ledger map[int64]Entry
	refuse func(line int64, c invoice.Column, v invoice.Value) bool
	writes int64

	adoption adoption

	heartbeats map[string]HeartbeatRow // by sys_name

	now func() time.Time
}

// HeartbeatRow is an environment's row of the table heartbeat.
type HeartbeatRow struct {
	// DatabaseID is made with the row, and anew when it is taken over.
	DatabaseID string
	Number     int64
}

// Line is the content of the user's two tables for one line. A Line is never changed in place.
type Line struct {
	// Tracking says whether IVCE_TRKG_MSTR has a row for the line.
	Tracking bool
	// Values are aligned with the columns of mapping.InUse; those of IVCE_TRKG_MSTR are NULL without a tracking row.
	Values []invoice.Value
}

// Ledger outcomes.
const (
	// OutcomeApplied: the line was written from the document.
	OutcomeApplied = "applied"
	// OutcomeFailed: the line carries a failure mark of the document; the entry has no hash.
	OutcomeFailed = "failed"
	// OutcomeAdopted: the line has history, and was adopted unchanged.
	OutcomeAdopted = "adopted"
)

// Entry is the ledger's row for one line: the document that the line was written from.
type Entry struct {
	// Version and DocumentID name the document; SourceTS is the snapshot's _ts in whole seconds.
	Version    invoice.Version
	DocumentID string
	SourceTS   int64
	// SysName is the environment that wrote it.
	SysName string
	// Hash and HashVersion name the content; empty and 0 for a failure mark.
	Hash        string
	HashVersion int
	// DetailHash and TrackingHash are those of the rows that were written; empty for a failure mark and an adopted
	// line.
	DetailHash, TrackingHash string
	// Outcome is one of the constants above.
	Outcome string
	// Write numbers the Apply that wrote the entry, from 1; Run names the adoption that did. One of them is empty.
	Write int64
	Run   string
	// At is when an Apply wrote it, in epoch seconds.
	At int64
}

// NewSink makes an empty one.
func NewSink() *Sink {
	d := &database{
		lines: map[int64]Line{}, ledger: map[int64]Entry{}, heartbeats: map[string]HeartbeatRow{}, now: time.Now,
	}
	return (&Sink{database: d}).Under(mapping.InUse())
}

// Under is a sink of another mapping over the same database. Each of its columns is one of mapping.InUse.
func (s *Sink) Under(m *invoice.Mapping) *Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mappings = append(s.mappings, m)
	u := &Sink{database: s.database, mapping: m}
	all := mapping.InUse().Columns()
	for _, c := range m.Columns() {
		u.places = append(u.places, slices.IndexFunc(all, func(o invoice.Column) bool {
			return o.Table == c.Table && o.Name == c.Name
		}))
	}
	return u
}

// NewSinkOn makes an empty one on a clock, for Entry.At.
func NewSinkOn(now func() time.Time) *Sink {
	s := NewSink()
	s.now = now
	return s
}

// Backup is a copy: another sink with the same content.
func (s *Sink) Backup() *Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Sink{&database{
		mappings: slices.Clone(s.mappings),
		lines:    maps.Clone(s.lines), ledger: maps.Clone(s.ledger), heartbeats: maps.Clone(s.heartbeats),
		writes: s.writes, adoption: s.adoption, now: s.now,
	}, s.mapping, s.places}
}

// Restore replaces the sink's content with a backup, or with another database.
func (s *Sink) Restore(from *Sink) {
	c := from.Backup()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines, s.ledger, s.heartbeats, s.writes, s.adoption = c.lines, c.ledger, c.heartbeats, c.writes, c.adoption
}

// AddLines makes detail rows, all NULL; rows that exist are left alone.
func (s *Sink) AddLines(ids ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if _, ok := s.lines[id]; !ok {
			s.lines[id] = Line{Values: nulls()}
		}
	}
}

// Line gives the content of a line; ok is false without a detail row.
func (s *Sink) Line(id int64) (l Line, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok = s.lines[id]
	return l, ok
}

// SetLine is another program's write: it replaces the content of a line.
func (s *Sink) SetLine(id int64, l Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[id] = Line{Tracking: l.Tracking, Values: append([]invoice.Value(nil), l.Values...)}
}

// DeleteLine deletes a line's rows in both tables, as another program does. Its ledger row stays.
func (s *Sink) DeleteLine(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lines, id)
}

// Entry answers the ledger's row for a line.
func (s *Sink) Entry(id int64) (e Entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok = s.ledger[id]
	return e, ok
}

// SetEntry puts a row into the ledger, as adopting a database with history does.
func (s *Sink) SetEntry(id int64, e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger[id] = e
}

// DeleteEntry deletes the ledger's row for a line, as a restored database lacks it.
func (s *Sink) DeleteEntry(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ledger, id)
}

// Refuse makes the sink refuse values as a database's constraint would: f answers true for a value that a line's column
// must not have. Text longer than its column is refused always.
func (s *Sink) Refuse(f func(line int64, c invoice.Column, v invoice.Value) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// Apply implements commit.Sink. Errors by kind: infrastructure ("cancelled", "timeout", and the refusals of a database
// that went back), document ("refused"), internal ("bug").
func (s *Sink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := ended(ctx, "inmem: apply"); err != nil {
		return nil, err
	}
	if err := s.acceptable(items, mode); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := known.Refuse("inmem: apply", s.row(known.SysName)); err != nil && mode != commit.Preview &&
		len(items) > 0 {
		return nil, err
	}
	w := s.work(items, mode, known.SysName)
	outcomes := w.outcomes()
	if mode == commit.Preview {
		w.preview(outcomes)
		return outcomes, nil
	}
	if err := s.refused(w.lines); err != nil {
		return nil, err
	}
	if err := ended(ctx, "inmem: apply"); err != nil {
		return nil, err
	}
	s.writes++
	maps.Copy(s.lines, w.lines)
	maps.Copy(s.ledger, w.entries)
	return outcomes, nil
}

// Heartbeat implements commit.Sink: memory is always well. Errors by kind: infrastructure ("cancelled", "timeout", and
// the refusals).
func (s *Sink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, false)
}

// TakeOver implements commit.Sink.
func (s *Sink) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.raise(ctx, known, true)
}

func (s *Sink) raise(ctx context.Context, known breaker.Heartbeat, force bool) (breaker.Heartbeat, error) {
	if err := ended(ctx, "inmem: heartbeat"); err != nil {
		return breaker.Heartbeat{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(known.SysName)
	if err := known.Refuse("inmem: heartbeat", row); err != nil && !force {
		return breaker.Heartbeat{}, err
	}
	if row.Number > 0 && known.Number == 0 && !force {
		return row, nil
	}
	if row.Number == 0 || force {
		row.DatabaseID = strings.ToLower(rand.Text())
	}
	if force {
		row.Number = max(row.Number, known.Number)
	}
	row.Number = max(row.Number+1, time.Now().UnixMilli())
	s.heartbeats[known.SysName] = HeartbeatRow{row.DatabaseID, row.Number}
	return row, nil
}

// row is an environment's row of the table heartbeat; one without a number does not exist.
func (s *Sink) row(sysName string) breaker.Heartbeat {
	row := s.heartbeats[sysName]
	return breaker.Heartbeat{SysName: sysName, DatabaseID: row.DatabaseID, Number: row.Number}
}

// SetHeartbeat is another program's write: it replaces an environment's row of the table heartbeat. One without a
// number deletes it.
func (s *Sink) SetHeartbeat(sysName string, row HeartbeatRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heartbeats[sysName] = row; row.Number == 0 {
		delete(s.heartbeats, sysName)
	}
}

// Heartbeats answers an environment's row of the table heartbeat.
func (s *Sink) Heartbeats(sysName string) (row HeartbeatRow, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok = s.heartbeats[sysName]
	return row, ok
}

// refused answers the error of the first value that the tables would not take.
func (s *Sink) refused(lines map[int64]Line) error {
	columns := mapping.InUse().Columns()
	for id, l := range lines {
		for i, v := range l.Values {
			c := columns[i]
			tooLong := c.Max > 0 && len(utf16.Encode([]rune(v.Text))) > c.Max
			if tooLong || (s.refuse != nil && s.refuse(id, c, v)) {
				return fault.New(fault.Document, "inmem: apply", "refused",
					"line %d: %s.%s does not take the value", id, c.Table, c.Name)
			}
		}
	}
	return nil
}

// acceptable refuses what the port's contract rules out.
func (s *Sink) acceptable(items []commit.Item, mode commit.Mode) error {
	if mode != commit.Write && mode != commit.Rewrite && mode != commit.Preview {
		return fault.New(fault.Internal, "inmem: apply", fault.CodeBug,
			"expected write, rewrite or preview, found %q", mode)
	}
	for _, it := range items {
		if n := len(s.mapping.Columns()); !it.FailureMark && len(it.Values) != n {
			return fault.New(fault.Internal, "inmem: apply", fault.CodeBug, "document %s: expected %d values, found %d",
				it.DocumentID, n, len(it.Values))
		}
		seen := map[int64]bool{}
		for _, id := range linesOf(it) {
			if seen[id] {
				return fault.New(fault.Internal, "inmem: apply", fault.CodeBug,
					"document %s: line %d stands there twice", it.DocumentID, id)
			}
			seen[id] = true
		}
	}
	return nil
}

// nulls is a line without values.
func nulls() []invoice.Value {
	values := make([]invoice.Value, len(mapping.InUse().Columns()))
	for i := range values {
		values[i] = invoice.Null()
	}
	return values
}
