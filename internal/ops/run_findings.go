package ops

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
)

const (
	// findingsPage is how many findings are read at once.
	findingsPage = 1000
	// mendedANight bounds the findings that a night mends (docs/requirements.md R87).
	mendedANight = 1000
)

// resolveFindings makes the documents and lines of findings those of the plan. Lines that only an operator's word lets
// a rewrite write are named in its filter too. Errors: *RequestError (usage) when there are too many; those of
// reconcile.Findings.List.
func (o *Ops) resolveFindings(ctx context.Context, p *runPlan) error {
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		_, err := listFindings(ctx, s.Findings, reconcile.Query{Classes: p.findings},
			func(all []reconcile.Finding) error {
				if p.take(all); len(p.left) > mendedANight {
					return refuse(Usage,
						"findings: there are more than %d of not_named: `line release` takes one", mendedANight)
				}
				return p.tooMany()
			})
		return err
	})
	if err == nil {
		err = o.release(ctx, p, p.left, func(l reconcile.Left) bool { return !l.NeedsWord() })
	}
	return cmp.Or(err, p.tooMany()) // releases name documents, too
}

// tooMany refuses findings of more documents or lines than a run may name.
func (p *runPlan) tooMany() error {
	if len(p.filter.IDs) <= maxRunIDs && len(p.lines) <= maxOverwritten {
		return nil
	}
	return refuse(Usage, "findings: those of %s name more than %d documents or lines: name fewer classes, or the documents "+
		"with ids", joined(p.findings), maxRunIDs)
}

// listFindings lists all findings of a query. It asks enough with each page whether those so far are too many.
func listFindings(
	ctx context.Context, s FindingStore, q reconcile.Query, enough func([]reconcile.Finding) error,
) (all []reconcile.Finding, err error) {
	for after := (*reconcile.Key)(nil); ; {
		found, err := s.List(ctx, q, after, findingsPage)
		all = append(all, found...)
		if err != nil {
			return all, err
		}
		if err := enough(all); err != nil || len(found) < findingsPage {
			return all, err
		}
		after = &found[len(found)-1].Key
	}
}

// take makes the documents and lines of findings those of the plan. A line that its document does not name is one of
// left: release finds its document.
func (p *runPlan) take(found []reconcile.Finding) {
	lines, overwrite, documents := map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	p.left = nil
	for _, f := range found {
		if f.Class == reconcile.NotNamed {
			p.left = append(p.left, f.Line)
		}
		if f.Class == reconcile.NotNamed || f.Class == reconcile.NoDocument {
			continue
		}
		documents[f.Document], lines[f.Line] = true, true
		if f.Overwrites() {
			overwrite[f.Line] = true
		}
	}
	p.lines, p.filter.IDs, p.filter.OverwriteEdits = lines, slices.Sorted(maps.Keys(documents)),
		slices.Sorted(maps.Keys(overwrite))
}

// MendFindings starts the run that writes again what a comparison found and nobody edited, 1,000 findings at most: what
// an operator starts by classes of findings, but for the lines that only his word lets it overwrite. Its id is made of
// the environment and the comparison, so a repeated call starts no other. Errors by kind: infrastructure, throttled,
// quota, contention; nothing was started then.
func (o *Ops) MendFindings(ctx context.Context, comparison string) error {
	// environments may share a database, and a run's id is unique there
	environment := crc32.ChecksumIEEE([]byte(o.o.SysName))
	p := runPlan{
		kind: o.o.Kinds.Rewriting(), findings: reconcile.MendedClasses(), why: "findings of " + comparison,
		id: fmt.Sprintf("%s-mend-%08x", comparison, environment),
	}
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		found, err := listFindings(ctx, s.Findings, reconcile.Query{Classes: p.findings, Mends: true},
			func([]reconcile.Finding) error { return nil })
		if len(found) > mendedANight { // each night draws others: some that cannot be mended keep nobody waiting
			draw := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE([]byte(p.id))), 0)) //nolint:gosec // no secret
			draw.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
			found = found[:mendedANight]
		}
		p.take(found)
		return err
	})
	if err == nil {
		err = o.release(ctx, &p, p.left, func(l reconcile.Left) bool { return l.Rule.Mends })
	}
	n := len(p.filter.IDs)
	if err != nil || n == 0 {
		return err
	}
	row, err := o.begin(WithActor(ctx, ByTimer), p, Started{Matched: n}, false)
	if err == nil {
		_, _ = o.notify(ctx, row) // without its message the timer sends one
	}
	if fault.CodeOf(err) == "run_exists" {
		return nil
	}
	return err
}
