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

// receiptPage is the number of documents in one request, the maximum of the app.
const receiptPage = 1000

// runReceipt is a file with the outcome of each document of a run. It has a temporary name until it is complete.
type runReceipt struct {
	path string
	file *os.File
}

// receiptHead is the first line of a receipt.
type receiptHead struct {
	Run         string    `json:"run"`
	Kind        run.Kind  `json:"kind"`
	Status      string    `json:"status"`
	RequestedBy string    `json:"requested_by"`
	Why         string    `json:"why"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	// Evidence counts the poison messages of a run from evidence.
	Evidence  *run.EvidenceCounts `json:"evidence,omitempty"`
	Documents int                 `json:"documents"`
	// Counts are the documents by outcome, the sums of the lines below.
	Counts map[string]int `json:"counts"`
	// Batches are the numbers of batches by status.
	Batches map[run.BatchStatus]int `json:"batches"`
}

// receiptLine is each other line of a receipt.
type receiptLine struct {
	Document string `json:"document"`
	Outcome  string `json:"outcome"`
	Code     string `json:"code,omitempty"`
	Batch    int    `json:"batch"`
}

// newReceipt creates the file beside its final place, so that an unwritable folder shows before the run starts.
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

// discard removes an incomplete receipt.
func (r *runReceipt) discard() {
	if r == nil || r.file == nil {
		return
	}
	_ = r.file.Close()
	_ = os.Remove(r.file.Name())
}

// write writes the documents of an ended run and gives the file its name. page requests one page of documents.
func (r *runReceipt) write(ctx context.Context, p ops.RunProgress, page func(context.Context, ops.ItemQuery) (ops.ItemPage, error)) error {
	out := bufio.NewWriter(r.file)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	head := receiptHead{
		Run: p.ID, Kind: p.Kind, Status: string(p.Status), RequestedBy: p.RequestedBy, Why: p.Why, StartedAt: p.StartedAt, EndedAt: p.EndedAt,
		Evidence: run.EvidenceOf(p.Filter), Documents: p.Documents, Counts: outcomeCounts(p.Stats.Outcomes), Batches: p.Stats.Batches,
	}
	if err := lines.Encode(head); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	counts, total := map[string]int{}, 0
	for next := ""; ; {
		got, err := page(ctx, ops.ItemQuery{Run: p.ID, Page: next, Limit: receiptPage})
		if err != nil {
			return err
		}
		for _, i := range got.Items {
			counts[outcomeName(i.Outcome)]++
			total++
			if err := lines.Encode(receiptLine{i.Document, outcomeName(i.Outcome), i.Code, i.Number}); err != nil {
				return fmt.Errorf("receipt: %w", err)
			}
		}
		if next = got.Next; next == "" {
			break
		}
	}
	if total != p.Documents || !maps.Equal(counts, head.Counts) {
		return fmt.Errorf("receipt: the run has %d documents (%s), but %d were found (%s): it changed meanwhile, try again with `sqlwriterctl run show %s --receipt FILE`",
			p.Documents, orDash(counted(head.Counts)), total, orDash(counted(counts)), p.ID)
	}
	return r.finish(out)
}

// finish renames the complete file to its final name.
func (r *runReceipt) finish(out *bufio.Writer) error {
	name := r.file.Name()
	const mode = 0o644 // a temporary file is readable by its owner alone
	if err := errors.Join(out.Flush(), r.file.Chmod(mode), r.file.Sync(), r.file.Close()); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	if err := os.Rename(name, r.path); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	r.file = nil
	return nil
}
