package ops

import (
	"context"
	"slices"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// ItemQuery selects documents of a run.
type ItemQuery struct {
	Run string `json:"run"`
	// Outcomes selects by outcome; empty means all documents, also those without one.
	Outcomes []invoice.Outcome `json:"outcome,omitempty"`
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// ItemPage is a page of a run's documents.
type ItemPage struct {
	Items []run.ItemOutcome `json:"items"`
	// Next is the ItemQuery.Page of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// RunItems returns documents of a run with their outcomes, page by page. Errors as RunShow.
func (o *Ops) RunItems(ctx context.Context, q ItemQuery) (page ItemPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	if !run.IsRunID(q.Run) {
		return page, notARun(q.Run)
	}
	for _, outcome := range q.Outcomes {
		if !slices.Contains(invoice.Outcomes(), outcome) {
			return page,
				refuse(Usage, "outcome: expected some of %s, found %q", joined(invoice.Outcomes()), string(outcome))
		}
	}
	after := ""
	if q.Page != "" {
		after = run.DocumentKey(q.Page)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		if _, err := o.requireRun(ctx, s, q.Run); err != nil {
			return err
		}
		page.Items, err = s.Runs.Items(ctx, q.Run, q.Outcomes, after, q.Limit)
		return err
	})
	page.Items = present(page.Items)
	if n := len(page.Items); n == q.Limit {
		page.Next = page.Items[n-1].Document
	}
	return page, err
}

// Report runs a monitoring query. Without a name it lists them with what they answer, and asks nothing. Errors as
// RunShow; *RequestError (usage) with the known names for an unknown one.
func (o *Ops) Report(ctx context.Context, name string) (t run.Table, err error) {
	if name == "" {
		t.Columns = []string{"report", "answers"}
		for _, n := range o.p.ReportNames {
			t.Rows = append(t.Rows, []any{n.Name, n.Meaning})
		}
		return t, nil
	}
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
	return refuse(Usage, "report: expected one of %s, found %q", strings.Join(known, ", "),
		run.Truncate(name, run.MaxRunID))
}
