package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The bounds of a preview.
const (
	// maxPreviewed bounds the documents that a preview counts; above it the count is "at least".
	maxPreviewed = 10_000
	// shown bounds the documents that a preview lists.
	shown = 20
	// findWithin bounds the search.
	findWithin = time.Minute
	// maxRead bounds the documents of one read.
	maxRead = 100
)

// Match is a document that a run would take.
type Match struct {
	ID     string         `json:"id"`
	Status invoice.Status `json:"status"`
	Kind   string         `json:"kind,omitempty"`
	Code   string         `json:"code,omitempty"`
	// FailedAt is when it failed; its last change if it does not say.
	FailedAt time.Time `json:"failed_at"`
}

// NotTaken is a document that was named and does not match.
type NotTaken struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Failures counts documents with the same status, kind and code.
type Failures struct {
	Status    invoice.Status `json:"status"`
	Kind      string         `json:"kind"`
	Code      string         `json:"code"`
	Documents int            `json:"documents"`
}

// runPreview collects what a run would take.
type runPreview struct {
	*Started
	failures map[Failures]int
}

// add counts a document; false when it counts no more.
func (p runPreview) add(m Match) bool {
	if p.Matched++; len(p.First) < shown {
		p.First = append(p.First, m)
	}
	if m.Status != "" { // only its id is known otherwise
		p.failures[Failures{Status: m.Status, Kind: m.Kind, Code: m.Code}]++
	}
	p.AtLeast = p.Matched > maxPreviewed
	return !p.AtLeast
}

// previewRun counts the documents of a run.
func (o *Ops) previewRun(ctx context.Context, of runPlan) (Started, error) {
	res := Started{DryRun: of.dryRun, Kind: of.kind.Kind, First: []Match{}, Failures: []Failures{}}
	p := runPreview{&res, map[Failures]int{}}
	var err error
	switch {
	case len(of.filter.IDs) > 0:
		err = o.previewNamed(ctx, of, p)
	case of.filter.Run != "":
		err = o.previewLeft(ctx, of.filter, p)
	default:
		err = o.previewFound(ctx, of, p)
	}
	if err != nil {
		return Started{}, err
	}
	for f, n := range p.failures {
		f.Documents = n
		res.Failures = append(res.Failures, f)
	}
	sortFailures(res.Failures)
	if of.limit > 0 && res.Matched > of.limit {
		res.Matched, res.AtLeast = of.limit, false
		res.First = res.First[:min(len(res.First), of.limit)]
	}
	if res.AtLeast {
		res.Matched = min(res.Matched, maxPreviewed)
	}
	if res.Matched == 0 {
		res.Note = othersToTake(of.kind, of.filter)
	}
	return res, nil
}

// othersToTake says how a search that found nothing finds documents with other statuses; empty when it does not.
func othersToTake(kind run.KindRow, f run.Filter) string {
	if len(kind.TakeOverNamed) == 0 || len(f.Statuses)+len(f.IDs) > 0 || f.Run != "" {
		return ""
	}
	return fmt.Sprintf(
		"a %s takes documents whose status is %s alone: `document retry` also takes those that wait for a retry",
		kind.Kind, joined(kind.Statuses))
}

// previewFound searches.
func (o *Ops) previewFound(ctx context.Context, of runPlan, p runPreview) error {
	finding, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	err := of.kind.Preview(finding, o.p.Finder, o.o.SysName, of.filter, o.o.Now(), func(doc commit.PendingDoc) bool {
		return p.add(o.match(doc))
	})
	if err != nil {
		late := finding.Err() != nil && ctx.Err() == nil
		// the container dropped the continuation: the documents found so far count
		if !late && fault.CodeOf(err) != "continuation" {
			return err
		}
		p.AtLeast = true
	}
	return nil
}

// previewNamed lists named documents. A dry run reads them, to say which the run would leave alone.
func (o *Ops) previewNamed(ctx context.Context, of runPlan, p runPreview) error {
	if !of.dryRun {
		for _, id := range of.filter.IDs {
			p.add(Match{ID: id})
		}
		return nil
	}
	var taken []invoice.Document
	for ids := range slices.Chunk(of.filter.IDs, maxRead) {
		raws, err := o.p.Documents.ReadMany(ctx, ids)
		if err != nil {
			return err
		}
		missing := map[string]bool{}
		for _, id := range ids {
			missing[id] = true
		}
		for _, raw := range raws {
			doc, err := o.o.Reader.Read(raw, o.o.Now())
			if err != nil {
				return err
			}
			delete(missing, doc.ID)
			if why := of.kind.Leaves(doc, of.filter, o.o.SysName, o.o.Now()); why != "" {
				p.NotTaken = append(p.NotTaken, NotTaken{doc.ID, why})
				continue
			}
			p.add(o.match(commit.PendingDocOf(doc.ID, doc.TS, doc.Main, doc.State)))
			if len(taken) < shown {
				taken = append(taken, doc)
			}
		}
		for id := range missing {
			p.NotTaken = append(p.NotTaken, NotTaken{id, "no document has this id"})
		}
	}
	slices.SortFunc(p.NotTaken, func(a, b NotTaken) int { return cmp.Compare(a.ID, b.ID) })
	if !of.kind.Rewrite {
		return nil
	}
	var err error
	p.Diffs, err = o.rewriteDiff(ctx, taken, of.filter, of.lines)
	return err
}

// previewLeft counts the documents that another run left undone.
func (o *Ops) previewLeft(ctx context.Context, r run.Filter, p runPreview) error {
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		row, err := o.requireRun(ctx, s, r.Run)
		if err != nil {
			return err
		}
		if row.Status == run.RunPurged {
			return refuse(Conflict, "run %q is deleted by retention: what it left is not known any more", r.Run)
		}
		// A run of a million documents may leave many: its receipt has their number.
		first, err := s.Runs.Items(ctx, r.Run, invoice.Unfinished(), "", shown)
		if err != nil {
			return err
		}
		stats, err := s.Runs.Stats(ctx, r.Run)
		if err != nil {
			return err
		}
		for _, item := range first {
			p.First = append(p.First, Match{ID: item.Document})
		}
		p.Matched = stats.Left()
		return nil
	})
}

func (o *Ops) match(doc commit.PendingDoc) Match {
	at := o.stamp(doc.FailedAt)
	if at.IsZero() {
		at = o.in(time.Unix(doc.TS, 0))
	}
	return Match{ID: doc.ID, Status: doc.Status, Kind: doc.Kind, Code: doc.Code, FailedAt: at}
}

// sortFailures puts the most frequent first.
func sortFailures(all []Failures) {
	slices.SortFunc(all, func(a, b Failures) int {
		return cmp.Or(cmp.Compare(b.Documents, a.Documents), cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
	})
}

func kinds() string {
	var all []string
	for _, rule := range fault.Rules() {
		all = append(all, string(rule.Kind))
	}
	return strings.Join(all, ", ")
}

// distinct removes repetitions and keeps the order.
func distinct(all []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		twice := seen[s]
		seen[s] = true
		return twice
	})
}
