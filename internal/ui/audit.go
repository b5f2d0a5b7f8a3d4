package ui

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// auditPage is what the page of the audit log shows.
type auditPage struct {
	Query  ops.AuditQuery
	Audits []ops.Audit
	// Next is the address of the next page.
	Next string
}

// shownOnPage is how many rows a page of a list has.
const shownOnPage = 50

// audit lists who did what.
func (v *visit) audit() (content, error) {
	q, err := query(v, opsapi.AuditList)
	if err != nil {
		return content{}, err
	}
	if q.Limit == 0 {
		q.Limit = shownOnPage
	}
	found, err := do(v, opsapi.AuditList, q)
	if err != nil {
		return content{}, err
	}
	p := auditPage{Query: q, Audits: found.Audits}
	p.Next = v.nextPage(found.Next)
	command := flags("sqlwriterctl audit list", "--run", q.Run, "--action", q.Action)
	if q.All {
		command += " --all"
	}
	return content{Title: "Audit", Command: command, Main: p, Live: q.Page == ""}, nil
}
