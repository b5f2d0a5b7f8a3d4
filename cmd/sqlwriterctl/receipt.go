package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// receiptPage is how many documents are asked for at once: the most that an app gives.
const receiptPage = 1000

// runReceipt is a file that says of each document of a run what became of it. It has no name of its own until it is whole.
type runReceipt struct {
	path string
	file *os.File
}

// receiptHead is its first line.
type receiptHead struct {
	Run         string    `json:"run"`
	Kind        run.Kind  `json:"kind"`
	Status      string    `json:"status"`
	RequestedBy string    `json:"requested_by"`
	Why         string    `json:"why"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	Documents   int       `json:"documents"`
	// Counts are the documents by outcome: the lines below add up to them.
	Counts map[string]int `json:"counts"`
	// Batches are the batches by status.
	Batches map[run.BatchStatus]int `json:"batches"`
}

// receiptLine is each of the others.
type receiptLine struct {
	Document string `json:"document"`
	Outcome  string `json:"outcome"`
	Code     string `json:"code,omitempty"`
	Batch    int    `json:"batch"`
}

// newReceipt begins one beside where it is to be: whether that can be written shows before a run is begun.
func newReceipt(path string) (*runReceipt, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &usageError{fmt.Errorf("--receipt %s: expected a file, found a folder", path)}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, &usageError{fmt.Errorf("--receipt: %w", err)}
	}
	return &runReceipt{path: path, file: file}, nil
}

// discard removes what is not whole.
func (r *runReceipt) discard() {
	if r == nil || r.file == nil {
		return
	}
	_ = r.file.Close()
	_ = os.Remove(r.file.Name())
}

// write fills it with the documents of a run that has ended, and gives it its name. page asks for some of them.
func (r *runReceipt) write(ctx context.Context, p ops.RunProgress, page func(context.Context, ops.ItemQuery) ([]run.ItemOutcome, error)) error {
	out := bufio.NewWriter(r.file)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	head := receiptHead{
		Run: p.ID, Kind: p.Kind, Status: string(p.Status), RequestedBy: p.RequestedBy, Why: p.Why, StartedAt: p.StartedAt, EndedAt: p.EndedAt,
		Documents: p.Documents, Counts: outcomeCounts(p.Stats.Outcomes), Batches: p.Stats.Batches,
	}
	if err := lines.Encode(head); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	counts, total := map[string]int{}, 0
	for after := ""; ; {
		items, err := page(ctx, ops.ItemQuery{Run: p.ID, After: after, Limit: receiptPage})
		if err != nil {
			return err
		}
		for _, i := range items {
			counts[outcomeName(i.Outcome)]++
			total++
			if err := lines.Encode(receiptLine{i.Document, outcomeName(i.Outcome), i.Code, i.Number}); err != nil {
				return fmt.Errorf("receipt: %w", err)
			}
		}
		if len(items) < receiptPage {
			break
		}
		after = items[len(items)-1].Document
	}
	if total != p.Documents || !maps.Equal(counts, head.Counts) {
		return fmt.Errorf("receipt: the run has %d documents (%s), and %d were found (%s): it was changed meanwhile, ask again with `run show %s --receipt FILE`",
			p.Documents, orDash(counted(head.Counts)), total, orDash(counted(counts)), p.ID)
	}
	return r.finish(out)
}

// finish keeps what was written under its name.
func (r *runReceipt) finish(out *bufio.Writer) error {
	name := r.file.Name()
	const mode = 0o644 // as other files: a temporary one is its owner's alone
	if err := errors.Join(out.Flush(), r.file.Chmod(mode), r.file.Sync(), r.file.Close()); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	if err := os.Rename(name, r.path); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	r.file = nil
	return nil
}
