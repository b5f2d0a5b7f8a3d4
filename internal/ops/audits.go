package ops

import (
	"context"
	"strconv"

	"sqlwriter/internal/run"
)

// MaxListed is the most rows of a list, defaultListed that of a request that does not say.
const (
	MaxListed     = 1000
	defaultListed = 20
)

// Audits returns the latest matching entries of the audit log, newest first; limit 0 means 20. Errors by kind:
// *RequestError (usage); infrastructure, throttled, quota, contention.
func (o *Ops) Audits(ctx context.Context, q AuditQuery) (page AuditPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	if q.Run != "" && !run.IsRunID(q.Run) {
		return page, notARun(q.Run)
	}
	if n := len(q.Action); n > run.MaxKind {
		return page, refuse(Usage, "action: expected at most %d characters, found %d", run.MaxKind, n)
	}
	if q.Page != "" {
		if q.Before, err = strconv.ParseInt(q.Page, 10, 64); err != nil || q.Before < 1 {
			return page, notAPage(q.Page)
		}
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		page.Audits, err = s.Audit.Audits(ctx, q)
		return err
	})
	page.Audits = present(page.Audits)
	for i := range page.Audits {
		page.Audits[i].At = o.in(page.Audits[i].At)
	}
	if n := len(page.Audits); n == q.Limit {
		page.Next = strconv.FormatInt(page.Audits[n-1].ID, 10)
	}
	return page, err
}

// present is a list that JSON shows as [] when it is empty.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func notAPage(token string) error {
	return refuse(Usage, "page: expected the next of a page before, found %q", run.Truncate(token, run.MaxKind))
}

func notARun(id string) error {
	return refuse(Usage, "run: expected the id of a run, as `run list` shows them, found %q",
		run.Truncate(id, run.MaxRunID))
}

func checkLimit(limit int) (int, error) {
	if limit == 0 {
		return defaultListed, nil
	}
	if limit < 0 || limit > MaxListed {
		return 0, refuse(Usage, "limit: expected 1 to %d, found %d", MaxListed, limit)
	}
	return limit, nil
}
