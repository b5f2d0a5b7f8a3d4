package ui

import (
	"fmt"

	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// reports lists the monitoring queries.
func (v *visit) reports() (content, error) {
	list, err := do(v, opsapi.ReportList, opsapi.None{})
	if err != nil {
		return content{}, err
	}
	return content{Title: "Reports", Command: "sqlwriterctl report show", Main: list}, nil
}

// reportPage is what the page of a report shows.
type reportPage struct {
	Name, Meaning string
	Table         run.Table
	// Cut says that a report may have more rows.
	Cut bool
}

// reportRows is the most rows of a report (internal/store/shared/reports).
const reportRows = 100

// report shows a monitoring query.
func (v *visit) report() (content, error) {
	q, err := query(v, opsapi.ReportShow)
	if err != nil {
		return content{}, err
	}
	list, err := do(v, opsapi.ReportList, opsapi.None{})
	if err != nil {
		return content{}, err
	}
	p := reportPage{Name: q.Name}
	for _, r := range list.Reports {
		if r.Name == q.Name {
			p.Meaning = r.Meaning
		}
	}
	if p.Meaning == "" {
		return content{}, notFound(fmt.Sprintf("no report has the name %q", q.Name))
	}
	if p.Table, err = do(v, opsapi.ReportShow, q); err != nil {
		return content{}, err
	}
	p.Cut = len(p.Table.Rows) >= reportRows
	return content{Title: "Report " + q.Name, Command: "sqlwriterctl report show " + shellWord(q.Name), Main: p, Live: true}, nil
}
