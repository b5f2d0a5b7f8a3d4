package commit

import (
	"context"
	"strings"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// CanaryPrefix begins the id of a canary: a document without sql_writer and without a line, by which `doctor --send`
// sees the change feed work. It belongs to no environment, so every list, count and comparison passes it over, and so
// do builds that know of none (docs/requirements.md R14).
const CanaryPrefix = "sqlwriter-canary-"

// CanaryName is the request_details.sys_name of an environment's canaries.
func CanaryName(sysName string) string { return "canary:" + sysName }

// Seen is the member seen of a canary, which CommitResults writes once.
type Seen struct {
	// At is when the feed brought it to CommitResults.
	At       time.Time `json:"at"`
	Build    string    `json:"build"`
	Instance string    `json:"instance"`
}

// seenWithin bounds the marks of one batch, whose documents are all recorded by then.
const seenWithin = 5 * time.Second

// IsCanary reports whether a document is a canary of an environment, and nothing else.
func IsCanary(d invoice.Snapshot, sysName string) bool {
	return strings.HasPrefix(d.ID, CanaryPrefix) && d.SysName == CanaryName(sysName) &&
		invoice.Member(d.JSON(), []string{"sql_writer"}) == nil && d.Main == 0 && len(d.Duplicates) == 0
}

// passOver takes a canary out of the batch: nothing counts it, and nothing measures the feed's lag by it.
func (t *tally) passOver(d invoice.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Documents--
	if invoice.Member(d.JSON(), []string{"seen"}) == nil {
		t.canaries = append(t.canaries, d)
	}
}

// markSeen marks the canaries of a batch whose documents are done. A mark that fails fails nothing else. An etag that
// is not the canary's any more, or no canary, needs none.
func (c *Commit) markSeen(ctx context.Context, t *tally, at time.Time) {
	if c.o.MarkSeen == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	for _, d := range t.canaries {
		err := c.o.MarkSeen(ctx, d, Seen{At: at.UTC(), Build: c.o.AppVersion, Instance: c.o.Instance})
		if err != nil && !fault.Has(err, fault.Changed) && !fault.Has(err, fault.Gone) {
			t.log.Write(events.CanaryNotMarked, events.Fields{Document: d.ID}.Of(err))
		}
	}
}
