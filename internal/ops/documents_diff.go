package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// maxDiffed bounds the documents of a diff.
	maxDiffed = 100
	// gone stands for the status of a document that does not exist.
	gone = "gone"
)

// DiffQuery names documents.
type DiffQuery struct {
	// IDs are those of 1 to 100 documents, with 1,000 lines at most. A single one may have more. A comma separates ids.
	IDs []string `json:"ids"`
}

// Diff is what a write of documents would change now.
type Diff struct {
	// Documents are in the order of the query.
	Documents []DocumentDiff `json:"documents"`
	// Flow describes the flow in words: nothing is written while it is stopped or paused.
	Flow string `json:"flow"`
	// Note says why nothing is written at all; empty otherwise.
	Note string `json:"note,omitempty"`
	// At is when the documents were read.
	At time.Time `json:"at"`
}

// Diff says what a write of documents would change now, line by line and column by column. It only reads. Documents
// that the app takes by itself now are previewed as one request, in which a line goes to the newest; so are the others.
// docs/rules.md has what it does not know.
//
// Errors by kind: *RequestError (usage; conflict for an id that several documents have); infrastructure, throttled,
// quota.
func (o *Ops) Diff(ctx context.Context, q DiffQuery) (Diff, error) {
	ids := distinct(q.IDs)
	if err := checkDiff(ids); err != nil {
		return Diff{}, err
	}
	d := differ{why: o.explaining(ctx), byID: map[string]DocumentDiff{}, docs: map[string]invoice.Document{}}
	raws, err := o.p.Documents.ReadMany(ctx, ids)
	if err != nil {
		return Diff{}, err
	}
	for _, raw := range raws {
		doc, err := o.o.Reader.Read(raw, d.now)
		if err != nil {
			return Diff{}, err
		}
		if _, twice := d.byID[doc.ID]; twice {
			return Diff{},
				refuse(Conflict, "%s: several documents have the id %q", commit.CodeIDTwice,
					run.Truncate(doc.ID, run.MaxBy))
		}
		d.add(doc, invoice.TooDeep(raw))
	}
	for _, request := range [][]commit.Item{d.taken, d.others} {
		if err := d.preview(ctx, request); err != nil {
			return Diff{}, err
		}
	}
	answer := Diff{Documents: make([]DocumentDiff, len(ids)), Flow: d.flowSays, Note: o.o.ReadOnly, At: o.in(d.now)}
	for i, id := range ids {
		diff, there := d.byID[id]
		if !there {
			diff = DocumentDiff{ID: id, Status: gone, Problem: "no document has this id", Lines: []LineDiff{}}
		}
		diff.Warning = d.warnings(diff)
		answer.Documents[i] = diff
	}
	return answer, nil
}

func checkDiff(ids []string) error {
	if len(ids) == 0 || len(ids) > maxDiffed {
		return refuse(Usage, "ids: expected the ids of 1 to %d documents, found %d", maxDiffed, len(ids))
	}
	for _, id := range ids {
		if err := checkDocumentID(id); err != nil {
			return err
		}
		if strings.Contains(id, ",") {
			return refuse(Usage, "ids: expected ids without a comma, which separates ids, found %q",
				run.Truncate(id, run.MaxBy))
		}
	}
	return nil
}

// differ collects a Diff.
type differ struct {
	why
	byID map[string]DocumentDiff
	docs map[string]invoice.Document
	// taken are the documents that the app takes by itself now, others the rest of those that can be written.
	taken, others []commit.Item
}

// add takes a document as it is now.
func (d *differ) add(doc invoice.Document, tooDeep bool) {
	e := d.explanation(doc, tooDeep)
	diff := DocumentDiff{
		ID: doc.ID, Status: e.Status, Why: e.Summary, Next: e.Next, Warning: e.Warning, Lines: []LineDiff{},
	}
	switch eligibility := doc.Eligibility(d.now, d.o.o.SysName); {
	case eligibility == invoice.NotOurs, eligibility == invoice.NotOffered, eligibility == invoice.UnknownStatus:
		diff.Problem = notWritten + e.Summary
	case doc.Problem != nil:
		diff.Problem = notWritten + e.ProblemFound
		diff.Taken = eligibility == invoice.Eligible
	case eligibility == invoice.Eligible:
		diff.Taken = true
		d.taken = append(d.taken, commit.ItemOf(doc))
	default:
		d.others = append(d.others, commit.TakenOver(doc))
	}
	d.byID[doc.ID], d.docs[doc.ID] = diff, doc
}

// preview previews documents as one request. Errors: *RequestError (usage) for too many lines; those of Stores.diff.
func (d *differ) preview(ctx context.Context, items []commit.Item) error {
	rows := 0
	for _, it := range items {
		rows += it.Rows()
	}
	switch {
	case len(items) == 0:
		return nil
	case len(items) > 1 && rows > maxDiffRows:
		return refuse(Usage,
			"ids: expected documents with at most %d lines together, found %d: name fewer", maxDiffRows, rows)
	}
	return d.o.stores(ctx, func(ctx context.Context, s Stores) error {
		found, err := s.diff(ctx, commit.Write, items, nil)
		for _, f := range found {
			diff := d.byID[f.ID]
			diff.Outcome, diff.Problem, diff.Lines = f.Outcome, f.Problem, f.Lines
			d.byID[f.ID] = diff
		}
		return err
	})
}

// warnings are what in a document stops the change feed, and what a write may do otherwise than its diff says.
func (d *differ) warnings(diff DocumentDiff) string {
	doc := d.docs[diff.ID]
	_, notANumber := strconv.Atoi(doc.State.LastErrorCode) // the codes of a server are numbers
	waits := doc.Eligibility(d.now, d.o.o.SysName) == invoice.NotDue || diff.Taken
	warnings := []string{diff.Warning}
	switch {
	case diff.Problem == "" && diff.Outcome == invoice.OutcomeApplied && notANumber == nil &&
		doc.State.LastErrorKind == string(fault.Document):
		warnings = append(warnings,
			fmt.Sprintf(
				"SQL refused its last write (%s): a diff asks no constraint and no trigger of the tables, so the next write may be refused too",
				doc.State.LastErrorCode))
	case diff.Problem != "" && diff.Outcome != invoice.OutcomeSuperseded && waits &&
		commit.Spent(doc.State, doc.Problem):
		warnings = append(warnings,
			fmt.Sprintf(
				"its retries are spent: the next failure may make it a poison message, which writes %s to %s of its lines",
				invoice.StatusAIError, doc.Mapping.Status(invoice.Detail)))
	}
	return strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), "; ")
}
