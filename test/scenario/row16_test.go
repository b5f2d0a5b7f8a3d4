package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// wentBack plays two processes over a database that becomes another one 70 minutes after the beginning. It asserts that
// nothing is false before, and that nothing is written afterwards, for 20 minutes, by any instance.
func wentBack(
	w *world, code string, becomes func(sql, anHourAgo, threeMinutesAgo *inmem.Sink), ends func(sql, live *inmem.Sink),
) {
	const at, ended, over = 70 * time.Minute, 90 * time.Minute, 2 * time.Hour
	sql := w.base.Sink.(*inmem.Sink) //nolint:forcetypeassert // these scenarios are played in memory
	for line := range int64(4000) {
		sql.AddLines(line + 1) // the user's lines are there, with or without ours
	}
	w.hostOf(2, build{})
	w.every(2*time.Second, over, func() { w.arrive(1, good()) })
	w.until(10 * time.Minute)
	anHourAgo := sql.Backup()
	w.until(at - 3*time.Minute)
	threeMinutesAgo := sql.Backup()
	w.until(at)
	w.mu.Lock()
	assert.Empty(w.t, w.flow, "no false stop")
	w.mu.Unlock()

	live := sql.Backup()
	becomes(sql, anHourAgo, threeMinutesAgo)
	entries := w.written(sql)
	asked := w.requestsIn(span{0, at})
	w.until(ended)
	assert.True(w.t, w.isOpen())
	assert.Equal(w.t, entries, w.written(sql), "rows were written to it")
	assert.LessOrEqual(w.t, w.requestsIn(span{0, ended})-asked, 2, "requests for documents that were refused")
	w.mu.Lock()
	flow := slices.Clone(w.flow)
	w.mu.Unlock()
	require.NotEmpty(w.t, flow, "it was not known")
	assert.LessOrEqual(w.t, flow[0].at.Sub(w.began), at+5*time.Second, "known at the first request")
	assert.Equal(w.t, "infrastructure "+code, flow[0].why)
	w.atMostOneAMinuteWhileOpen()

	ends(sql, live)
	w.until(over + 10*time.Minute)
	assert.False(w.t, w.isOpen())
	w.figures()
	w.allCommitted(w.of(""))
	w.noneFailed(w.of(""), 0)
}

// written are the ledger's entries.
func (w *world) written(sql *inmem.Sink) map[int64]inmem.Entry {
	found := map[int64]inmem.Entry{}
	for _, d := range w.of("") {
		if e, ok := sql.Entry(d.line); ok {
			found[d.line] = e
		}
	}
	return found
}

// forced is an operator: a resume is refused with the risk, and forced.
func forced(w *world) {
	operator := w.start("operator", process{})
	_, err := operator.ops.Resume(ops.WithActor(w.ctx, "ann"), ops.ResumeFlow{Why: "it looks well"})
	require.ErrorContains(w.t, err, "is missing here")
	assert.True(w.t, w.isOpen())
	_, err = operator.resume(w.ctx)
	require.NoError(w.t, err)
	w.pass(time.Minute)
	assert.False(w.t, w.isOpen(), "an operator accepted it")
	entries, err := w.store.AuditLog().Audits(w.ctx, ops.AuditQuery{All: true, Limit: 1000})
	require.NoError(w.t, err)
	actions := map[string]int{}
	for _, a := range entries {
		actions[a.Action]++
	}
	assert.Equal(w.t, 1, actions[ops.FlowForced], "it is audited")
}

// Row 16: the database is a copy of before, or another one.
func TestRow16(t *testing.T) {
	failback := func(sql, live *inmem.Sink) { sql.Restore(live) }
	anHour := func(sql, anHourAgo, _ *inmem.Sink) { sql.Restore(anHourAgo) }
	threeMinutes := func(sql, _, threeMinutesAgo *inmem.Sink) { sql.Restore(threeMinutesAgo) }
	each(t, "a copy of an hour ago, failback", one(2), func(w *world) {
		wentBack(w, breaker.CodeWentBack, anHour, failback)
		w.check()
	})
	each(t, "a copy of an hour ago, accepted", daily(one(2)), func(w *world) {
		wentBack(w, breaker.CodeWentBack, anHour, func(_, _ *inmem.Sink) { forced(w) })
	})
	each(t, "a replica three minutes behind, failback", daily(one(2)), func(w *world) {
		wentBack(w, breaker.CodeWentBack, threeMinutes, failback)
		w.check()
	})
	each(t, "a replica three minutes behind, accepted, and then the old primary", one(2), func(w *world) {
		wentBack(w, breaker.CodeWentBack, threeMinutes, func(sql, live *inmem.Sink) {
			forced(w)
			accepted := sql.Backup()
			w.pass(10 * time.Minute)
			// by a process that could not read the control document
			_, err := live.Heartbeat(w.ctx, breaker.Heartbeat{SysName: sysName})
			require.NoError(w.t, err)
			sql.Restore(live)
			entries := w.written(sql)
			w.pass(10 * time.Minute)
			assert.True(w.t, w.isOpen(), "it lacks what was written since it was given up")
			assert.Equal(w.t, entries, w.written(sql))
			sql.Restore(accepted)
			w.pass(3 * time.Minute)
			assert.True(w.t, w.isOpen(), "and so does the accepted one of ten minutes ago")
			forced2(w)
		})
	})
	each(t, "the heartbeat table made anew", one(2), func(w *world) {
		wentBack(w, breaker.CodeOtherDatabase, func(sql, _, _ *inmem.Sink) {
			sql.SetHeartbeat(sysName, inmem.HeartbeatRow{})
		},
			func(_, _ *inmem.Sink) { forced(w) })
		w.check()
	})
	each(t, "another database, and back", daily(one(2)), func(w *world) {
		wentBack(w, breaker.CodeOtherDatabase, func(sql, _, _ *inmem.Sink) {
			other := inmem.NewSink()
			for line := range int64(4000) {
				other.AddLines(line + 1)
			}
			other.SetHeartbeat(sysName,
				inmem.HeartbeatRow{DatabaseID: "another", Number: time.Now().Add(time.Hour).UnixMilli()})
			sql.Restore(other)
		}, failback)
		w.check()
	})
}

// forced2 accepts once more.
func forced2(w *world) {
	_, err := w.start("operator 2", process{}).resume(w.ctx)
	require.NoError(w.t, err)
}
