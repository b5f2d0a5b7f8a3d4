package inmem

import (
	"context"
	"fmt"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
)

// adoption is how far the ledger's adoption is; runs numbers the runs.
type adoption struct {
	state adopt.State
	runs  int
}

// State implements adopt.Ledger.
func (s *Sink) State(ctx context.Context) (adopt.State, error) {
	if err := ended(ctx, "inmem: adoption"); err != nil {
		return adopt.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adoption.state, nil
}

// MarkEmpty records that there is no history to adopt. It does nothing after that, or after an adoption began.
func (s *Sink) MarkEmpty(ctx context.Context, who string) error {
	if err := ended(ctx, "inmem: mark empty"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adoption.state.Phase == "" {
		now := time.Now().UTC()
		s.adoption.state = adopt.State{Phase: adopt.Empty, By: who, Started: now, Finished: now}
	}
	return nil
}

// Begin implements adopt.Ledger.
func (s *Sink) Begin(ctx context.Context, was adopt.State, who string) (adopt.State, error) {
	const op = "inmem: begin adoption"
	if err := ended(ctx, op); err != nil {
		return adopt.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.adoption.state; now.Phase != was.Phase || now.Run != was.Run {
		return adopt.State{}, moved(op)
	}
	s.adoption.runs++
	s.adoption.state = adopt.State{
		Phase: adopt.Running, Run: fmt.Sprintf("%032x", s.adoption.runs), By: who, Started: time.Now().UTC(),
	}
	return s.adoption.state, nil
}

// Page implements adopt.Ledger.
func (s *Sink) Page(ctx context.Context, p adopt.Page) error {
	const op = "inmem: adopt"
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.adoption.at(p.Run, p.From) {
		return moved(op)
	}
	for _, r := range p.Rows {
		if e, known := s.ledger[r.Line]; !known || mayAdopt(e, r) {
			s.ledger[r.Line] = Entry{
				Version: r.Version, DocumentID: r.DocumentID, SourceTS: r.SourceTS, Hash: r.Hash,
				HashVersion: r.HashVersion,
				SysName:     r.SysName, Outcome: string(r.Outcome), Run: p.Run, At: s.now().Unix(),
			}
		}
	}
	if p.Advance != nil {
		s.adoption.state.Watermark, s.adoption.state.Counts = p.Advance.Watermark, p.Advance.Counts
	}
	return nil
}

// Finish implements adopt.Ledger.
func (s *Sink) Finish(ctx context.Context, run string, watermark int64) (adopt.State, error) {
	const op = "inmem: finish adoption"
	if err := ended(ctx, op); err != nil {
		return adopt.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.adoption.at(run, watermark) {
		return adopt.State{}, moved(op)
	}
	state := &s.adoption.state
	state.Phase, state.Finished = adopt.Done, time.Now().UTC()
	for _, e := range s.ledger {
		switch {
		case e.Run != run:
		case e.Outcome == OutcomeFailed:
			state.Counts.Marked++
		default:
			state.Counts.Adopted++
		}
	}
	return *state, nil
}

// row is an entry as a row of its line.
func (e Entry) row(line int64) adopt.Row {
	return adopt.Row{
		Line: line, Version: e.Version, DocumentID: e.DocumentID, SourceTS: e.SourceTS, Hash: e.Hash,
		HashVersion: e.HashVersion, SysName: e.SysName, Outcome: adopt.Outcome(e.Outcome),
	}
}

// Rows implements adopt.Reader.
func (s *Sink) Rows(ctx context.Context, lines []int64) ([]adopt.Row, error) {
	if err := ended(ctx, "inmem: read ledger"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []adopt.Row
	for _, line := range lines {
		if e, ok := s.ledger[line]; ok {
			rows = append(rows, e.row(line))
		}
	}
	return rows, nil
}

// RowsOf implements adopt.Reader.
func (s *Sink) RowsOf(ctx context.Context, document string) ([]adopt.Row, error) {
	if err := ended(ctx, "inmem: read ledger"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []adopt.Row
	for line, e := range s.ledger {
		if e.DocumentID == document {
			rows = append(rows, e.row(line))
		}
	}
	return rows, nil
}

// at reports whether a run stands at a watermark.
func (a *adoption) at(run string, watermark int64) bool {
	return a.state.Phase == adopt.Running && a.state.Run == run && a.state.Watermark == watermark
}

// mayAdopt is the guard of adopt.Ledger.Page.
func mayAdopt(e Entry, r adopt.Row) bool {
	if order := r.Version.Compare(e.Version); order != 0 {
		return order > 0
	}
	if r.SourceTS < e.SourceTS {
		return false
	}
	if r.Outcome == adopt.Failed || e.Outcome == OutcomeFailed {
		return string(r.Outcome) != e.Outcome
	}
	if e.HashVersion != r.HashVersion {
		return e.HashVersion == adopt.Unproven
	}
	return e.Hash != r.Hash
}

// moved is the error of a run that another process advanced or ended.
func moved(op string) error {
	return &fault.Error{
		Kind: fault.Contention, Condition: fault.Changed, Code: "adoption_moved", Op: op,
		Reason: "the adoption does not stand where it was read: somebody else adopts at the same time",
	}
}
