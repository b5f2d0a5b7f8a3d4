package run_test

import (
	"context"
	"runtime"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// instance is a process of the app.
type instance struct {
	w       *world
	name    string
	breaker *breaker.Breaker
	// commit is the real Commit, also where fakeWrites replaces it in runs.
	commit *commit.Commit

	manager            *run.Manager
	workers            *run.Workers
	recovery           *run.Recovery
	executor           *run.Executor
	batchDead, runDead *run.DeadLetters

	mu sync.Mutex
	// dead says that the process has died. It dies in its use of a port with the number killAt; steps counts the uses.
	dead          bool
	steps, killAt int
	// ops are the names of its uses.
	ops []string
}

// killAfter kills the process when its nth use of a port from now is done, before it returns.
func (i *instance) killAfter(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.killAt = i.steps + n
}

func (i *instance) isDead() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead
}

// instance starts a process that receives no messages yet.
func (w *world) instance(name string) *instance {
	i := &instance{w: w, name: name}
	i.breaker = i.newBreaker()
	i.commit = commit.NewCommit(spyDocuments{i}, spySink{i},
		commit.Options{SysName: sysName, Breaker: i.breaker, Evidence: spyEvidence{i}, Now: i.now})
	ports := run.Ports{
		Store: i.store(), Finder: spyFinder{i}, Documents: spyDocuments{i}, Commit: i.commit, Breaker: i.breaker,
		RunQueue: spyQueue{i, w.runs}, BatchQueue: spyQueue{i, w.batches}, Evidence: spyEvidence{i},
	}
	if w.fake != nil {
		ports.Finder, ports.Documents, ports.Commit = spyFakeWrites{i}, spyFakeWrites{i}, spyFakeWrites{i}
	}
	o := run.Options{
		SysName: sysName, Instance: name, MaxOutstanding: w.outstanding, BatchSize: w.batchSize, ChunkSize: w.chunkSize,
		Log: w.log, Kinds: w.kinds, Now: i.now,
	}
	i.manager, i.workers, i.recovery = run.NewManager(ports, o), run.NewWorkers(ports, o), run.NewRecovery(ports, o)
	i.executor = run.NewExecutor(ports, o)
	i.batchDead, i.runDead = run.NewBatchDeadLetters(ports, o), run.NewRunDeadLetters(ports, o)
	return i
}

// crew starts a manager and a worker. It returns a process for the timer, which does not tick yet.
func (w *world) crew() (timer *instance) {
	w.instance("m").manage()
	w.instance("w").work()
	return w.instance("timer")
}

// manage, work and tick deliver messages and timer ticks to an instance.
func (i *instance) manage() *instance { return i.serve("BatchManager", i.w.runs, i.manager.Receive) }

func (i *instance) work() *instance { return i.serve("BatchWorker", i.w.batches, i.workers.Receive) }

func (i *instance) serve(
	function string, b *bus, handle func(context.Context, run.Incoming) (run.Handled, error),
) *instance {
	i.w.group.Go(func() {
		for {
			in, ok := b.Next(i.w.ctx)
			if !ok {
				return
			}
			if i.isDead() {
				b.PutBack(run.Incoming{Body: in.Body, ID: in.ID, Count: in.Count - 1, EnqueuedAt: in.EnqueuedAt})
				b.Signal()
				return
			}
			err, alive := i.invoke(function, in, handle)
			switch {
			case !alive:
				i.w.group.Go(func() {
					time.Sleep(lockTime)
					b.Again(in)
				})
			case err != nil:
				b.Again(in)
			}
		}
	})
	return i
}

// invoke is one invocation, as the mount does it around a handler. It returns false when the process died.
func (i *instance) invoke(
	function string, in run.Incoming, handle func(context.Context, run.Incoming) (run.Handled, error),
) (err error, alive bool) {
	ended := make(chan struct{})
	c := call{function: function, instance: i.name, begin: time.Now(), count: in.Count}
	i.w.group.Go(func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(i.w.ctx, 4*time.Minute)
		defer cancel()
		c.done, c.err = handle(skewed{ctx, i.w.skews[i.name]}, in)
		alive = true
	})
	<-ended
	c.end = time.Now()
	if alive {
		i.w.mu.Lock()
		i.w.calls = append(i.w.calls, c)
		i.w.mu.Unlock()
	}
	return c.err, alive
}

// skewed tells an invocation's deadline by the clock of its process.
type skewed struct {
	context.Context //nolint:containedctx // it is one

	by time.Duration
}

func (s skewed) Deadline() (time.Time, bool) {
	at, ok := s.Context.Deadline()
	return at.Add(s.by), ok
}

// deadLetters delivers dead letters to an instance.
func (i *instance) deadLetters() *instance {
	for _, l := range []struct {
		function string
		b        *bus
		handle   func(context.Context, run.Incoming) (run.Handled, error)
	}{{"BatchDeadLetter", i.w.batches, i.batchDead.Receive}, {"RunDeadLetter", i.w.runs, i.runDead.Receive}} {
		i.w.group.Go(func() {
			for i.w.ctx.Err() == nil {
				in, ok := l.b.TakeLetter()
				if !ok {
					i.w.pause(5 * time.Second)
					continue
				}
				if err, alive := i.invoke(l.function, in, l.handle); err != nil || !alive {
					in.Count++
					l.b.PutLetter(in)
				}
			}
		})
	}
	return i
}

// pause waits unless the test is over.
func (w *world) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// tick is the timer, every five minutes.
func (i *instance) tick() *instance {
	i.w.group.Go(func() {
		for {
			i.w.pause(5 * time.Minute)
			if i.w.ctx.Err() != nil || i.isDead() {
				return
			}
			_, _ = i.once() // the next tick does the rest
		}
	})
	return i
}

// once is one tick of the timer. It starts with the breaker's tick, as the recovery of documents does.
func (i *instance) once() (done run.RecoveredRuns, err error) {
	ended := make(chan struct{})
	i.w.group.Go(func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(i.w.ctx, 4*time.Minute)
		defer cancel()
		_ = i.breaker.Tick(ctx)
		done, err = i.recovery.Run(ctx)
	})
	<-ended
	return done, err
}

// use wraps every use of a port. A process that has died uses nothing any more.
func (i *instance) use(ctx context.Context, op string, sql bool, f func() error) error {
	i.mu.Lock()
	if i.dead {
		i.mu.Unlock()
		runtime.Goexit()
	}
	i.steps++
	last := i.killAt > 0 && i.steps >= i.killAt
	i.ops = append(i.ops, op)
	i.mu.Unlock()
	w := i.w
	w.mu.Lock()
	hook, down := w.hook, sql && w.sqlDown
	if sql {
		w.asked = append(w.asked, time.Now())
	}
	w.mu.Unlock()
	var err error
	if hook != nil {
		err = hook(ctx, i, op)
	}
	if err == nil && down {
		err = unreachable()
	}
	if err == nil {
		err = f()
	}
	if last {
		i.mu.Lock()
		i.dead = true
		i.mu.Unlock()
		w.mu.Lock()
		w.killed = true
		w.mu.Unlock()
		runtime.Goexit()
	}
	return err
}

func continuationRefused() error {
	return fault.New(fault.Document, "test: page", "continuation", "the continuation is invalid")
}

func unreachable() error {
	return fault.New(fault.Infrastructure, "test: sql", "refused", "the connection was refused")
}
