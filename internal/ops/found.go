package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// Found counts the findings at a time.
type Found struct {
	// Classes have findings, by name. Open are those that a person must look at, or that the night mends
	// (reconcile.Class.Asks).
	Classes []reconcile.Count `json:"classes"`
	Open    int               `json:"open"`
	// Edited are lines that people edited, which they may.
	Edited int `json:"edited"`
	// NewEdits are those of Edited that the last completed comparison was the first to find.
	NewEdits int `json:"edited_new,omitempty"`
	// NotComparable says of which mappings the last completed comparison found lines that the one in use cannot
	// compare, and what makes them comparable.
	NotComparable []string `json:"not_comparable,omitempty"`
	// Comparison is the last one that ended well and named no documents, and ComparedAt when it began; both empty when
	// there is none.
	Comparison string    `json:"comparison,omitempty"`
	ComparedAt time.Time `json:"compared_at,omitzero"`
	// Comparing is one that goes on, and MovedAt the time of its last step; both empty when there is none.
	Comparing string    `json:"comparing,omitempty"`
	MovedAt   time.Time `json:"moved_at,omitzero"`
	// Progress says how far Comparing is.
	Progress string `json:"progress,omitempty"`
	// At is when they were counted.
	At time.Time `json:"at"`
	// Says describes them in a line.
	Says string `json:"says,omitempty"`
}

// mendWithin is how long the nightly comparison has to mend a finding: until the night after it was found.
const mendWithin = 26 * time.Hour

// forPeople counts the findings that people must look at: of the classes that the night mends only those that it did
// not mend in time. since is when the first of them was found.
func (f Found) forPeople(now time.Time) (open int, classes []string, since time.Time) {
	for _, c := range f.Classes {
		if !c.Class.Asks() ||
			(slices.Contains(reconcile.MendedClasses(), c.Class) && now.Sub(c.First) < mendWithin) {
			continue
		}
		if since.IsZero() || c.First.Before(since) {
			since = c.First
		}
		open += c.Findings
		classes = append(classes, fmt.Sprintf("%d %s", c.Findings, c.Class))
	}
	return open, classes, since
}

// countedFindings counts the findings for SaveCounts; unknown says why it could not. A shadow has none. While the flow
// is stopped or paused SQL is not asked: probes are the breaker's.
func (o *Ops) countedFindings(ctx context.Context) (found *Found, unknown string) {
	if o.o.ReadOnly != "" {
		return nil, ""
	}
	if flow := o.p.Breaker.View(ctx).Control.Breaker; flow.Name == breaker.Open || flow.Name == breaker.Paused {
		return nil, "SQL is not asked while the flow is " + o.describe(flow)
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	err := o.withStores(ctx, func(ctx context.Context, s Stores) error {
		f, err := o.countFindings(ctx, s)
		found = &f
		return err
	})
	if err != nil {
		return nil, errorText(err)
	}
	return found, ""
}

// countFindings counts the findings as of now.
func (o *Ops) countFindings(ctx context.Context, s Stores) (f Found, err error) {
	f = Found{At: o.o.Now().UTC()}
	if f.Classes, err = s.Findings.Counts(ctx); err != nil {
		return Found{}, err
	}
	f.Classes = present(f.Classes)
	slices.SortFunc(f.Classes, func(a, b reconcile.Count) int {
		return strings.Compare(string(a.Class), string(b.Class))
	})
	for _, c := range f.Classes {
		switch {
		case c.Class.Asks():
			f.Open += c.Findings
		case c.Class == reconcile.Edited:
			f.Edited = c.Findings
		}
	}
	last, there, err := s.Findings.Last(ctx)
	if err != nil {
		return Found{}, err
	}
	if there {
		f.Comparison, f.ComparedAt, f.NewEdits = last.ID, last.BegunAt.UTC(), last.Counts[reconcile.NewEdits]
		if f.NotComparable, err = s.notComparable(ctx, last.Versions()); err != nil {
			return Found{}, err
		}
	}
	open, there, err := s.Findings.Next(ctx)
	if err != nil {
		return Found{}, err
	}
	if there {
		f.Comparing, f.MovedAt, f.Progress = open.ID, open.MovedAt.UTC(), open.Progress()
	}
	return f, nil
}

// notComparable says what makes lines comparable that other mappings wrote. lines counts them by version.
func (s Stores) notComparable(ctx context.Context, lines map[int]int) (says []string, err error) {
	if len(lines) == 0 {
		return nil, nil
	}
	recorded, err := s.Mappings(ctx)
	if err != nil {
		return nil, err
	}
	for _, version := range slices.Sorted(maps.Keys(lines)) {
		why := "no migration recorded its columns"
		at := slices.IndexFunc(recorded, func(r invoice.Recorded) bool { return r.Version == version })
		if at >= 0 {
			lacks := invoice.Without(recorded[at].Lines, s.Mapping.Lines())
			more := ""
			if n := len(lacks) - columnsNamed; n > 0 {
				lacks, more = lacks[:columnsNamed], fmt.Sprintf(" and %d more", n)
			}
			why = fmt.Sprintf("its columns %s%s are not in the mapping in use: put them back", strings.Join(lacks, ", "), more)
			if len(lacks) == 0 {
				why = "the next comparison can compare them"
			}
		}
		n := lines[version]
		says = append(says, fmt.Sprintf("%d %s of mapping %d: %s, or `reindex --not-comparable` writes them", n,
			Plural(n, "line", "lines"), version, why))
	}
	return says, nil
}

// columnsNamed bounds the columns that one sentence names.
const columnsNamed = 5

// localFound converts times to the deployment's zone, and describes the findings.
func (o *Ops) localFound(f Found) Found {
	f.At, f.ComparedAt, f.MovedAt = o.in(f.At), o.in(f.ComparedAt), o.in(f.MovedAt)
	f.Classes = append([]reconcile.Count{}, f.Classes...)
	for i, c := range f.Classes {
		f.Classes[i].First = o.in(c.First)
	}
	f.Says = strings.Join(append([]string{o.foundSays(f)}, f.NotComparable...), "; not comparable: ")
	if f.Comparing != "" {
		f.Says += fmt.Sprintf("; comparison %s goes on: %s", f.Comparing, f.Progress)
	}
	return f
}

// foundSays describes the findings in one line.
func (o *Ops) foundSays(f Found) string {
	if f.ComparedAt.IsZero() && len(f.Classes) == 0 {
		return "unknown: nothing was compared yet"
	}
	says := "none, SQL equals Cosmos"
	if f.Open > 0 {
		var parts []string
		for _, c := range f.Classes {
			if c.Class.Asks() {
				parts = append(parts, fmt.Sprintf("%d %s", c.Findings, c.Class))
			}
		}
		says = fmt.Sprintf("%d open (%s)", f.Open, strings.Join(parts, ", "))
	}
	if f.Edited > 0 {
		says += fmt.Sprintf("; people edited %d %s", f.Edited, Plural(f.Edited, "line", "lines"))
		if f.NewEdits > 0 {
			says += fmt.Sprintf(", %d of them since the comparison before", f.NewEdits)
		}
	}
	if f.ComparedAt.IsZero() {
		return says + "; no comparison was completed"
	}
	return says + ", as of " + o.clock(f.ComparedAt)
}
