package inmem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// ReconcileRows is reconcile.Rows of an environment over the sink's maps.
func (s *Sink) ReconcileRows(sysName string, keptDays int) reconcile.Rows {
	return rows{s, sysName, keptDays}
}

type rows struct {
	s        *Sink
	sysName  string
	keptDays int
}

// Scan implements reconcile.Rows.
func (r rows) Scan(ctx context.Context, after int64, limit int) (reconcile.Scanned, error) {
	if err := ended(ctx, "inmem: scan"); err != nil {
		return reconcile.Scanned{}, err
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	ids := r.s.ledgerAfter(after, limit)
	out := reconcile.Scanned{Last: after, More: len(ids) == limit, Documents: map[string][]int64{}}
	for _, id := range ids {
		out.Last = id
		if r.s.ledger[id].SysName != r.sysName {
			continue
		}
		document := r.s.ledger[id].DocumentID
		out.Documents[document] = append(out.Documents[document], id)
		switch r.rowState(id) {
		case reconcile.RowsSame:
			out.Same++
		case reconcile.RowsReviewed:
			out.Reviewed++
		case reconcile.RowsUnknown:
			if r.s.ledger[id].Outcome == OutcomeFailed {
				out.Same++
			} else {
				version := r.s.ledger[id].HashVersion
				if r.s.ledger[id].DetailHash == "" {
					version = 0
				}
				if out.NotComparable == nil {
					out.NotComparable = map[int]int{}
				}
				out.NotComparable[version]++
			}
		case reconcile.RowsArchived:
			out.Archived++
		default:
			out.Differ = append(out.Differ, id)
		}
	}
	return out, nil
}

// Lines implements reconcile.Rows.
func (r rows) Lines(ctx context.Context, ids []int64) ([]reconcile.Line, error) {
	if err := ended(ctx, "inmem: lines"); err != nil {
		return nil, err
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var lines []reconcile.Line
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		line := reconcile.Line{ID: id, Rows: r.rowState(id)}
		if e, ok := r.s.ledger[id]; ok {
			line.Ledger = reconcile.Ledger{
				Outcome: e.Outcome, Version: e.Version, DocumentID: e.DocumentID,
				SysName: e.SysName, SourceTS: e.SourceTS,
				Hash: e.Hash, HashVersion: e.HashVersion, WriteID: e.writeID(), Recipe: r.s.recipe(e.HashVersion),
			}
		}
		if l, ok := r.s.lines[id]; ok {
			line.Values, line.RowHash = slices.Clone(l.Values), hashOf(l)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// ledgerAfter lists the next ids of the ledger.
func (s *Sink) ledgerAfter(after int64, limit int) []int64 {
	ids := slices.Sorted(maps.Keys(s.ledger))
	at, found := slices.BinarySearch(ids, after)
	if found {
		at++
	}
	return ids[at:min(at+limit, len(ids))]
}

// rowState compares a line with its entry.
func (r rows) rowState(id int64) reconcile.RowState {
	l, there := r.s.lines[id]
	e := r.s.ledger[id]
	switch {
	case !there && r.keptDays > 0 && e.Outcome != "" && e.At < r.s.now().AddDate(0, 0, -r.keptDays).Unix():
		return reconcile.RowsArchived
	case !there:
		return reconcile.RowsMissing
	}
	recipe := r.s.recipe(e.HashVersion)
	if e.Outcome != OutcomeApplied || recipe == nil || e.DetailHash == "" || e.TrackingHash == "" {
		return reconcile.RowsUnknown
	}
	detail, tracking := recipe.RowHashes(r.s.own(l.Values))
	if detail != e.DetailHash || (l.Tracking && tracking != e.TrackingHash) {
		return reconcile.RowsEdited
	}
	if !l.Tracking {
		return reconcile.RowsNoTracking
	}
	for i, c := range mapping.InUse().Columns() {
		if c.Status && !slices.Contains(c.Values, l.Values[i].Text) {
			return reconcile.RowsReviewed
		}
	}
	return reconcile.RowsSame
}

// writeID is what stands for the write of an entry.
func (e Entry) writeID() string { return fmt.Sprint(e.Write, e.Run) }

// hashOf is the hash of a line's content.
func hashOf(l Line) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and booleans only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
