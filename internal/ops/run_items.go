package ops

import (
	"context"
	"slices"
	"strings"

	"sqlwriter/internal/run"
)

// ItemQuery selects documents of a run.
type ItemQuery struct {
	Run string `json:"run"`
	// Outcomes selects by outcome; empty means all documents, also those without one.
	Outcomes []run.Outcome `json:"outcomes,omitempty"`
	// After is the last document's id of the previous page; empty starts. Limit is at most 1,000.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// OutcomesOf splits a list with commas. RunItems refuses unknown outcomes.
func OutcomesOf(text string) (list []run.Outcome) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, run.Outcome(part))
		}
	}
	return list
}

// RunItems returns documents of a run with their outcomes, page by page. Errors as RunShow.
func (o *Ops) RunItems(ctx context.Context, q ItemQuery) (items []run.ItemOutcome, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return nil, err
	}
	if !isRunID(q.Run) {
		return nil, notARun(q.Run)
	}
	for _, outcome := range q.Outcomes {
		if !slices.Contains(run.Outcomes(), outcome) {
			return nil, refuse(Usage, "outcome: expected some of %s, found %q", outcomes(), string(outcome))
		}
	}
	after := ""
	if q.After != "" {
		after = run.DocumentKey(q.After)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		if _, err := o.requireRun(ctx, s, q.Run); err != nil {
			return err
		}
		items, err = s.Runs.Items(ctx, q.Run, q.Outcomes, after, q.Limit)
		return err
	})
	return items, err
}

func outcomes() string {
	var all []string
	for _, o := range run.Outcomes() {
		all = append(all, string(o))
	}
	return strings.Join(all, ", ")
}

// Report runs a monitoring query. Errors as RunShow; *RequestError (usage) with the known names for an unknown one.
func (o *Ops) Report(ctx context.Context, name string) (t run.Table, err error) {
	if err := o.knownReport(name); err != nil {
		return t, err
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		t, err = s.Reports.Report(ctx, name)
		return err
	})
	return t, err
}

// knownReport refuses an unknown name without using the database.
func (o *Ops) knownReport(name string) error {
	var known []string
	for _, n := range o.p.ReportNames {
		if n.Name == name {
			return nil
		}
		known = append(known, n.Name)
	}
	return refuse(Usage, "report: expected one of %s, found %q", strings.Join(known, ", "), Truncate(name, MaxRunID))
}

// ReportNames returns the reports and their meaning, without SQL.
func (o *Ops) ReportNames(context.Context) ([]run.ReportName, error) { return o.p.ReportNames, nil }
