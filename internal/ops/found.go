package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/reconcile"
)

// Found counts the findings at a time.
type Found struct {
	// Classes have open or accepted findings, by name. Open and Accepted are their sums.
	Classes  []reconcile.Count `json:"classes"`
	Open     int               `json:"open"`
	Accepted int               `json:"accepted"`
	// Run is the last completed comparison, and ComparedAt when it began; both empty when there is none.
	Run        string    `json:"run,omitempty"`
	ComparedAt time.Time `json:"compared_at,omitzero"`
	// At is when they were counted.
	At time.Time `json:"at"`
	// Says describes them in a line.
	Says string `json:"says,omitempty"`
}

// mendWithin is how long the nightly comparison has to mend a finding: until the night after it was found.
const mendWithin = 26 * time.Hour

// forPeople counts the open findings that people must look at: of the classes that the comparison mends only those that it did not
// mend in time. since is when the first of them was found.
func (f Found) forPeople(now time.Time) (open int, classes []string, since time.Time) {
	for _, c := range f.Classes {
		if c.Open == 0 || (mendedAtNight(c.Class) && now.Sub(c.First) < mendWithin) {
			continue
		}
		if since.IsZero() || c.First.Before(since) {
			since = c.First
		}
		open += c.Open
		classes = append(classes, fmt.Sprintf("%d %s", c.Open, c.Class))
	}
	return open, classes, since
}

// mendedAtNight reports whether the nightly comparison mends findings of a class by itself.
func mendedAtNight(class reconcile.Class) bool {
	return slices.ContainsFunc(reconcile.Meanings(), func(m reconcile.Meaning) bool { return m.Class == class && m.Mends != "" })
}

// countedFindings counts the findings for SaveCounts; unknown says why it could not. A shadow has none. While the flow is stopped or paused
// SQL is not asked: probes are the breaker's.
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
		f, err := o.countFindings(ctx, s.Findings)
		found = &f
		return err
	})
	if err != nil {
		return nil, errorText(err)
	}
	return found, ""
}

// countFindings counts the findings as of now.
func (o *Ops) countFindings(ctx context.Context, s FindingStore) (f Found, err error) {
	f = Found{At: o.o.Now().UTC()}
	if f.Classes, err = s.Counts(ctx); err != nil {
		return Found{}, err
	}
	f.Classes = present(f.Classes)
	slices.SortFunc(f.Classes, func(a, b reconcile.Count) int { return strings.Compare(string(a.Class), string(b.Class)) })
	for _, c := range f.Classes {
		f.Open, f.Accepted = f.Open+c.Open, f.Accepted+c.Accepted
	}
	id, began, there, err := s.LastCompleted(ctx, o.o.Kinds.Comparing().Kind)
	if err != nil {
		return Found{}, err
	}
	if there {
		f.Run, f.ComparedAt = id, began.UTC()
	}
	return f, nil
}

// localFound converts times to the deployment's zone, and describes the findings.
func (o *Ops) localFound(f Found) Found {
	f.At, f.ComparedAt = o.in(f.At), o.in(f.ComparedAt)
	f.Classes = append([]reconcile.Count{}, f.Classes...)
	for i, c := range f.Classes {
		f.Classes[i].First = o.in(c.First)
	}
	f.Says = o.foundSays(f)
	return f
}

// foundSays describes the findings in one line.
func (o *Ops) foundSays(f Found) string {
	if f.ComparedAt.IsZero() && f.Open+f.Accepted == 0 {
		return "unknown: nothing was compared yet"
	}
	says := "none, SQL equals Cosmos"
	switch {
	case f.Open > 0:
		var parts []string
		for _, c := range f.Classes {
			if c.Open > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", c.Open, c.Class))
			}
		}
		says = fmt.Sprintf("%d open (%s)", f.Open, strings.Join(parts, ", "))
		if f.Accepted > 0 {
			says += fmt.Sprintf(", %d accepted", f.Accepted)
		}
	case f.Accepted > 0:
		says = fmt.Sprintf("none open, SQL equals Cosmos but for %d accepted", f.Accepted)
	}
	if f.ComparedAt.IsZero() {
		return says + "; no comparison was completed"
	}
	return says + ", as of " + o.clock(f.ComparedAt)
}
