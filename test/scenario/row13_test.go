package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/ops"
)

// Row 13: a full log, a fresh process, resume.
func TestRow13(t *testing.T) {
	const from, to = 10 * time.Minute, 3*time.Hour + time.Second
	each(t, "", memory(), func(w *world) {
		w.rule(w.everything(span{from, to}, func() error { return full("9002") }))
		old := w.host(len(w.feed))
		w.every(time.Minute, to+10*time.Minute, func() { w.arrive(1, good()) })
		w.until(40 * time.Minute)
		assert.True(w.t, w.isOpen())
		for _, i := range old {
			i.end()
		}
		w.until(41 * time.Minute)

		// While the log is full: it is logged at once, and is in the audit log later.
		fresh := w.start("fresh", process{feed: append(rest(w), 0), ticks: true})
		begin := time.Now()
		_, err := fresh.resume(w.ctx)
		assert.NoError(w.t, err, "resume while the log is full")
		assert.LessOrEqual(w.t, time.Since(begin), time.Minute)
		w.pass(2 * time.Minute)
		assert.True(w.t, w.isOpen(), "it stays shut by itself")
		asked := w.requestsIn(span{41 * time.Minute, to})
		assert.LessOrEqual(w.t, asked, 2, "requests for documents after the resume")

		// The log has room again, and another process has just started.
		w.until(to)
		operator := w.start("operator", process{})
		_, err = operator.resume(w.ctx)
		assert.NoError(w.t, err, "resume when there is room again")
		w.pass(time.Minute)
		assert.False(w.t, w.isOpen())
		assert.Empty(w.t, w.uncommitted(w.before(to)), "documents that waited, a minute after resume")
		w.until(to + 12*time.Minute)
		w.figures()
		w.allCommitted(w.of(""))
		w.noneFailed(w.of(""), 0)
		assert.Equal(w.t, 2, w.audited("ann"), "both are in the audit log")
	})
}

// before are the documents that arrived before a moment.
func (w *world) before(d time.Duration) (found []*doc) {
	for _, x := range w.of("") {
		if x.arrived.Sub(w.began) < d {
			found = append(found, x)
		}
	}
	return found
}

// audited counts the entries of a person in the audit log.
func (w *world) audited(by string) (n int) {
	entries, err := w.store.AuditLog().Audits(w.ctx, ops.AuditQuery{All: true, Limit: 1000})
	assert.NoError(w.t, err)
	for _, a := range entries {
		if a.By == by {
			n++
		}
	}
	return n
}
