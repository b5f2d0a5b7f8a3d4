package run

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// The bounds of one tick of the timer.
const (
	// mostSent is how many batches one tick sends (requirements/002).
	mostSent = 1000
	// mostRuns is how many open runs it looks at.
	mostRuns = 100
	// sentAtOnce is how many messages go in one call.
	sentAtOnce = 100
	// releasedFor is for how long a batch that was let go of waits for the message that was put off.
	releasedFor = 30 * time.Minute
	// runSilent is after how long without a word a run has lost its message. It is longer than any message is put off.
	runSilent = lastWait + time.Minute
	// managerSilent is after how long without a word a run has lost its manager. One that lives and could not let go of its run
	// puts a message off; that comes sooner: by its wait, its jitter and the last heartbeat before, and a minute more (ADR 0026).
	managerSilent = lastWait + firstWait + beatEvery + time.Minute
	// never is longer than anything waits.
	never = 10 * 365 * 24 * time.Hour
)

// Recovery finds what was left behind between the tables and the queue: a pass of the timer RecoverRetries. It is safe beside
// other instances: every change is compare-and-set.
type Recovery struct {
	kit
	gate gateLog
}

// NewRecovery makes it.
func NewRecovery(p Ports, o Options) *Recovery { return &Recovery{kit: kit{p, o.withDefaults()}} }

// Recovered is what one tick found and did.
type Recovered struct {
	// Sent, Unsent and Failed count batches: whose message the queue took, did not take, and refused for the last time.
	Sent, Unsent, Failed int
	// Buried and Workers count batches and workers that were dead; Silent batches whose message seems to be lost.
	Buried, Workers, Silent int
	// Resumed counts runs whose manager was gone, Ended those that had come to their end.
	Resumed, Ended int
	// Off says for people why nothing was looked at; empty after a tick.
	Off string
}

// Run does one tick. While the gate is open it does nothing, but beside a systemic one whose probe is due. Time during which the
// gate was open does not count: who could not say a word then is not dead. Errors by kind: infrastructure, throttled, quota,
// contention; the next tick goes on.
func (r *Recovery) Run(ctx context.Context) (done Recovered, err error) {
	state := r.state(ctx)
	closed := r.gate.look(state, r.o.Now())
	if state.Open() && !forDocuments(state, r.o.Now()) {
		done.Off = "the gate is " + state.Describe(r.o.Now())
		return done, nil
	}
	for _, pass := range []func(context.Context, calm, *Recovered) error{r.dead, r.runs, r.messages} {
		if r.near(ctx) {
			break
		}
		if passErr := pass(ctx, closed, &done); err == nil {
			err = passErr
		}
	}
	return done, err
}

// state is the gate's, after a probe if one is due: where no document and no message comes, nobody else makes it, and a run
// whose message is lost would wait for ever. A full database wants that something is written, a systemic gate a document,
// which only a worker has.
func (r *Recovery) state(ctx context.Context) writer.GateState {
	state := r.p.Gate.View(ctx).State()
	if !state.Due(r.o.Now()) || forDocuments(state, r.o.Now()) {
		return state
	}
	probe, ask := r.look, func(ctx context.Context) error {
		_, err := r.p.Store.OpenRuns(ctx, r.o.SysName, 1)
		return err
	}
	if state.Kind == fault.Quota {
		probe, ask = r.books, func(ctx context.Context) error {
			return r.p.Store.Write(ctx, Audit{
				Code: CodeGateProbe, Level: LevelInfo, By: r.o.Instance, Why: "the database was full and takes writes again",
				Detail: detail(map[string]any{"gate": state.Code, "since": state.Since}),
			})
		}
	}
	_ = probe(ctx, ask) // what it answers is the gate's to judge
	return r.p.Gate.View(ctx).State()
}

// forDocuments reports whether the gate waits for a document's answer and for nothing else: the books can be used beside it, so
// that the messages go out whose workers bring one.
func forDocuments(state writer.GateState, now time.Time) bool {
	return state.Kind == fault.Systemic && state.Due(now)
}

// dead takes batches from dead workers, and those whose message seems to be lost.
func (r *Recovery) dead(ctx context.Context, closed calm, done *Recovered) error {
	stale, some := closed.age(workerStale)
	if !some {
		return nil
	}
	released, some := closed.age(releasedFor)
	if !some {
		released = never
	}
	err := r.books(ctx, func(ctx context.Context) (err error) {
		done.Buried, done.Workers, err = r.p.Store.Bury(ctx, r.o.SysName, stale, released, mostSent)
		return err
	})
	if silent, some := closed.age(silentAfter); err == nil && some {
		err = r.books(ctx, func(ctx context.Context) (err error) {
			done.Silent, err = r.p.Store.Silence(ctx, r.o.SysName, silent, mostSent)
			return err
		})
	}
	if done.Buried+done.Silent == 0 {
		return err
	}
	auditErr := r.books(ctx, func(ctx context.Context) error {
		return r.p.Store.Write(ctx, Audit{
			Code: CodeBatchRecovered, Level: LevelWarn, By: r.o.Instance, Why: "batches were left behind and are sent again",
			Detail: detail(map[string]int{"dead": done.Buried, "silent": done.Silent, "workers": done.Workers}),
		})
	})
	if err == nil {
		err = auditErr
	}
	return err
}

// runs ends those that have come to their end, and goes on with those whose manager is gone. A queue that is away keeps nobody
// from the former, and what it has against one message nobody from the others.
func (r *Recovery) runs(ctx context.Context, closed calm, done *Recovered) error {
	var open []Run
	err := r.look(ctx, func(ctx context.Context) (err error) {
		open, err = r.p.Store.OpenRuns(ctx, r.o.SysName, mostRuns)
		return err
	})
	for _, row := range open {
		if r.near(ctx) {
			break
		}
		switch {
		case row.Cancel || !row.HandedOffAt.IsZero():
			if r.completeRun(ctx, row.ID) {
				done.Ended++
			}
		case abandoned(row, closed) && !fault.IsDependency(err):
			sendErr := send(ctx, r.p.RunQueue, []Message{r.again(row)})[0]
			if sendErr == nil {
				done.Resumed++
			} else if err == nil || fault.IsDependency(sendErr) {
				err = sendErr
			}
		}
	}
	return err
}

// abandoned reports whether nobody goes on with a run: its manager says nothing, or the message that should is lost.
func abandoned(row Run, closed calm) bool {
	silent := runSilent
	if row.Owner != "" {
		silent = managerSilent
	}
	age, some := closed.age(silent)
	return some && row.Silent >= age && row.NextIn <= 0
}

// again is the message for an abandoned run. Its deferral is the minute, so that the queue does not take it for the one that is
// lost; a second one in the same minute is a duplicate. It says that a manager was found silent: its epoch is that of a message
// that the manager could have sent.
func (r *Recovery) again(row Run) Message {
	n := NoticeOfRun(row)
	n.ManagerSilent = row.Owner != ""
	n.FirstDeferredAt = r.o.Now().Unix()
	n.Deferral = int(r.o.Now().Unix() / int64(time.Minute/time.Second))
	return n.Message(0)
}

// messages sends what is to be sent, run by run.
func (r *Recovery) messages(ctx context.Context, closed calm, done *Recovered) error {
	stale, some := closed.age(workerStale)
	if !some {
		stale = never // the manager may be at it
	}
	var jobs []Job
	err := r.look(ctx, func(ctx context.Context) (err error) {
		jobs, err = r.p.Store.ToSend(ctx, r.o.SysName, stale, mostSent)
		return err
	})
	for chunk := range slices.Chunk(jobs, sentAtOnce) {
		if err != nil || r.near(ctx) {
			return err
		}
		var d delivered
		d, err = r.deliver(ctx, Lease{}, chunk, true)
		done.Sent, done.Unsent, done.Failed = done.Sent+d.sent, done.Unsent+d.unsent, done.Failed+d.failed
		if fault.IsDependency(err) {
			return err // the others wait as they are: nothing is counted
		}
	}
	return err
}
