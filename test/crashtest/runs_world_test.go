package crashtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

const (
	// lockTime is for how long a message is locked: what a dead process had comes again then.
	lockTime = time.Minute
	// renewFor is for how long the host renews the lock of a process that lives.
	renewFor = 5 * time.Minute
	// invocationTime is the handler's own deadline.
	invocationTime = 4 * time.Minute
	// tickEvery is the timer's schedule.
	tickEvery = 5 * time.Minute
	// mostDeliveries is how often a message is delivered before it is a dead letter.
	mostDeliveries = 10
	// maxTurns is how much patience the end of runs has: far more than two faults can cost.
	maxTurns = 400
)

// runsPath is what a path has of runs.
type runsPath struct {
	// batch, chunk and page are the sizes: documents of a batch, of a checkpoint, of a page of the selection.
	batch, chunk, page int
	// outstanding is run.Options.MaxOutstanding.
	outstanding int
	// seed prepares the run store and the queues.
	seed func(r *runs)
	// wishes are what an operator wants, one after the other.
	wishes []wish
	// want are the documents of runs, by run, with the outcome that each has without faults; nil: whatever is found.
	want map[string]map[string]invoice.Outcome
	// deadLetters is how many messages are put aside.
	deadLetters int
	// compares says that it has comparisons, which the timer carries on.
	compares bool
}

// wish is something that an operator asks for until it is so.
type wish struct {
	what string
	// due and done say when it is asked for, and that it need not be any more.
	due, done func(r *runs) bool
	do        func(ctx context.Context, r *runs, i *instance)
}

// runs is the part of a world that outlives every process: run store, queues, the timer's schedule, the operator.
type runs struct {
	w    *world
	path *runsPath
	// store is the run store; storeOrMistake is the same, or a wrapper with a deliberate mistake.
	store          *inmem.RunStore
	storeOrMistake run.Store
	// findings are kept beside it; they may be a deliberate mistake too.
	findings reconcile.Findings
	pages    commit.Finder
	// runQ and batchQ are the queues, in the order in which the host looks at them.
	runQ, batchQ *bus
	wishes       []wish
	// asksAgain is when the operator asks again for what is not so.
	asksAgain   time.Time
	nextTick    time.Time
	seenRuns    map[string]run.Run
	seenBatches map[string]run.Batch
	leases      map[*instance]*lease
	// pagesOf are the documents of the pages that were given, by run and continuation.
	pagesOf map[string][]string
	count   counted
	// deadLetterSeen are the folders of evidence that entries of the audit log name.
	deadLetterSeen map[string]bool
	// ended says when documents were committed: the timer may have them before a run finds them.
	ended map[string]time.Time
	// onTakeOver is called once, when a worker has taken a batch over.
	onTakeOver func()
}

// counted is what was observed.
type counted struct {
	claims, completions map[string]int // of batches
	ends                map[string]int // of runs
	runClaims, pages    int
	lost                int // locks
	redelivered         int
	most                int // deliveries of one message
}

// lease is a run as an instance claimed it; fresh says that no page was asked for since.
type lease struct {
	run   run.Run
	fresh bool
}

func newRuns(w *world, p *runsPath) *runs {
	r := &runs{
		w: w, path: p, store: inmem.NewRunStore(w.now, "web"), pages: w.docs.Paged(p.page),
		wishes:   slices.Clone(p.wishes),
		seenRuns: map[string]run.Run{}, seenBatches: map[string]run.Batch{}, leases: map[*instance]*lease{},
		deadLetterSeen: map[string]bool{}, ended: map[string]time.Time{}, pagesOf: map[string][]string{},
		count: counted{claims: map[string]int{}, completions: map[string]int{}, ends: map[string]int{}},
	}
	r.storeOrMistake, r.findings = r.store, r.store.Findings(w.sink)
	r.runQ, r.batchQ = newBus(r, "runs"), newBus(r, "batches")
	r.nextTick = begins().Add(tickEvery)
	return r
}

// equip gives an instance the use cases of runs.
func (r *runs) equip(i *instance) {
	p := run.Ports{
		Store: i.store(), Finder: selection{i}, Documents: reader{i}, Commit: i.commit, Breaker: i.breaker,
		RunQueue: sender{i, r.runQ}, BatchQueue: sender{i, r.batchQ}, Evidence: evidence{i},
	}
	o := run.Options{
		SysName: sysName, Instance: i.name, Log: r.w.log, MaxOutstanding: r.path.outstanding, BatchSize: r.path.batch,
		ChunkSize: r.path.chunk,
		Now:       r.w.now, Draw: func() float64 { return 0.5 }, Wait: i.wait, Every: i.every,
	}
	i.runs = useCases{
		run.NewManager(p, o), run.NewWorkers(p, o), run.NewRecovery(p, o), run.NewRunDeadLetters(p, o),
		run.NewBatchDeadLetters(p, o),
		run.NewExecutor(p, o),
	}
}

// useCases are what an instance does about runs.
type useCases struct {
	manager                          *run.Manager
	workers                          *run.Workers
	recovery                         *run.Recovery
	runDeadLetters, batchDeadLetters *run.DeadLetters
	executor                         *run.Executor
}

// heartbeat is something that an instance does again and again while an invocation goes on.
type heartbeat struct {
	every time.Duration
	due   time.Time
	f     func()
}

// every is run.Options.Every on the world's clock: a heartbeat that is due comes before the next use of a document, a
// page or a queue. A process that hangs in a call says nothing meanwhile, and may find itself given up.
func (i *instance) every(d time.Duration, f func()) (stop func()) {
	b := &heartbeat{d, i.w.now().Add(d), f}
	i.heartbeats = append(i.heartbeats, b)
	return func() {
		i.heartbeats = slices.DeleteFunc(i.heartbeats, func(other *heartbeat) bool { return other == b })
	}
}

func (i *instance) beat() {
	if i.beating || i.dead {
		return
	}
	i.beating = true
	for _, b := range slices.Clone(i.heartbeats) {
		if now := i.w.now(); !b.due.After(now) {
			b.due = now.Add(b.every)
			b.f()
		}
	}
	i.beating = false
}

// deadlined is a context whose deadline is by the world's clock.
type deadlined struct {
	context.Context //nolint:containedctx // it is one
	at              time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// invoke is one invocation of an instance, in a goroutine of its own: it has four minutes.
func (r *runs) invoke(ctx context.Context, i *instance, what func(ctx context.Context)) (crashed bool) {
	crashed = r.w.do(ctx, i, func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		i.deadline, i.expire = r.w.now().Add(invocationTime), cancel
		defer func() { i.expire = nil }()
		what(deadlined{ctx, i.deadline})
	})
	i.heartbeats, i.beating = nil, false
	return crashed
}

// timeIsOver ends an invocation whose time is over.
func (i *instance) timeIsOver() {
	if i.expire != nil && !i.w.now().Before(i.deadline) {
		i.expire()
	}
}

// bus is a queue with locks: what is taken is completed, given back, or comes again when its lock is over.
type bus struct {
	r           *runs
	name        string
	q           *inmem.Queue
	locks       []*lock
	deadLetters []*deadLetter
}

type lock struct {
	d     run.Incoming
	until time.Time
}

// deadLetter is a dead letter; it is delivered again when its process died.
type deadLetter struct {
	d   run.Incoming
	due time.Time
}

func newBus(r *runs, name string) *bus {
	b := &bus{r: r, name: name, q: inmem.NewQueue(r.w.now)}
	b.q.DetectDuplicates(10 * time.Minute)
	return b
}

// back has a message come again, or puts it aside.
func (b *bus) back(d run.Incoming) {
	b.r.count.redelivered++
	if d.Count < mostDeliveries {
		b.q.PutBack(d)
		return
	}
	b.putAside(d, "MaxDeliveryCountExceeded")
}

func (b *bus) putAside(d run.Incoming, reason string) {
	d.Count, d.Properties = 0, map[string]string{"DeadLetterReason": reason}
	b.deadLetters = append(b.deadLetters, &deadLetter{d: d, due: b.r.w.now()})
}

// unlock has messages come again whose locks are over.
func (b *bus) unlock() {
	now := b.r.w.now()
	b.locks = slices.DeleteFunc(b.locks, func(l *lock) bool {
		if l.until.After(now) {
			return false
		}
		b.r.count.lost++
		b.back(l.d)
		return true
	})
}

// take locks the message that has been due longest.
func (b *bus) take() *lock {
	b.unlock()
	d, ok := b.q.Take()
	if !ok {
		return nil
	}
	b.r.count.most = max(b.r.count.most, d.Count)
	l := &lock{d, b.r.w.now().Add(renewFor)}
	b.locks = append(b.locks, l)
	return l
}

// settle ends a delivery. That of a lock which is lost changes nothing: the message has come again.
func (b *bus) settle(l *lock, err error, crashed bool) {
	b.unlock()
	if crashed {
		l.until = b.r.w.now().Add(lockTime)
		return
	}
	n := len(b.locks)
	b.locks = slices.DeleteFunc(b.locks, func(other *lock) bool { return other == l })
	if len(b.locks) < n && err != nil {
		b.back(l.d)
	}
}

// next is when something can be taken.
func (b *bus) next() (next time.Time, ok bool) {
	earlier := func(t time.Time) {
		if !ok || t.Before(next) {
			next, ok = t, true
		}
	}
	if due, there := b.q.NextDue(); there {
		earlier(due)
	}
	for _, l := range b.locks {
		earlier(l.until)
	}
	for _, l := range b.deadLetters {
		earlier(l.due)
	}
	return next, ok
}

// serve has an instance handle the next message of a queue; false when none is due.
func (r *runs) serve(ctx context.Context, b *bus, i *instance) (did, crashed bool) {
	handle := i.runs.workers.Receive
	if b == r.runQ {
		handle = i.runs.manager.Receive
	}
	l := b.take()
	if l == nil {
		return false, false
	}
	var err error
	crashed = r.invoke(ctx, i, func(ctx context.Context) { _, err = handle(ctx, l.d) })
	b.settle(l, err, crashed)
	return true, crashed
}

// serveLetter does the same for dead letters.
func (r *runs) serveLetter(ctx context.Context, b *bus, i *instance) (did, crashed bool) {
	handle := i.runs.batchDeadLetters.Receive
	if b == r.runQ {
		handle = i.runs.runDeadLetters.Receive
	}
	n := slices.IndexFunc(b.deadLetters, func(l *deadLetter) bool { return !l.due.After(r.w.now()) })
	if n < 0 {
		return false, false
	}
	l := b.deadLetters[n]
	b.deadLetters = slices.Delete(b.deadLetters, n, n+1)
	l.d.Count++
	var err error
	if crashed = r.invoke(ctx, i, func(ctx context.Context) { _, err = handle(ctx, l.d) }); crashed || err != nil {
		l.due = r.w.now()
		if crashed {
			l.due = l.due.Add(lockTime)
		}
		b.deadLetters = append(b.deadLetters, l)
	}
	return true, crashed
}

// tick is the timer RecoverRetries: the heartbeat, documents if any is due, then runs.
func (r *runs) tick(ctx context.Context, i *instance) (crashed bool) {
	r.nextTick = r.w.now().Truncate(tickEvery).Add(tickEvery)
	return r.invoke(ctx, i, func(ctx context.Context) {
		if next, _ := r.w.next(); !next.IsZero() && !next.After(r.w.now()) {
			_, _ = i.recover.Run(ctx)
		} else {
			_ = i.breaker.Tick(ctx)
		}
		done, _ := i.runs.recovery.Run(ctx) // its error is the host's to log: the next tick goes on
		if done.QueueAway {
			_, _ = i.runs.recovery.CarryOn(ctx)
		}
		if r.path.compares {
			_, _ = r.reconciler(i).Tick(ctx)
		}
	})
}

// operate has the operator ask for what is wanted now.
func (r *runs) operate(ctx context.Context, i *instance) (did, crashed bool) {
	for len(r.wishes) > 0 && r.wishes[0].done(r) {
		r.wishes = r.wishes[1:]
	}
	if len(r.wishes) == 0 || !r.wishes[0].due(r) {
		return false, false
	}
	if r.w.now().Before(r.asksAgain) {
		return false, false
	}
	wanted := r.wishes[0]
	r.asksAgain = r.w.now().Add(time.Minute)
	crashed = r.invoke(ctx, i, func(ctx context.Context) { wanted.do(ctx, r, i) })
	if wanted.done(r) {
		r.asksAgain = time.Time{}
	}
	return true, crashed
}

// pump has one instance do everything: messages, dead letters, the timer, the operator's calls, until nothing is left.
func (r *runs) pump(i *instance) (crashed bool) {
	ctx := context.Background()
	for range maxTurns {
		if !r.nextTick.After(r.w.now()) {
			if r.tick(ctx, i) {
				return true
			}
			continue
		}
		did := false
		for _, turn := range []func() (bool, bool){
			func() (bool, bool) { return r.operate(ctx, i) },
			func() (bool, bool) { return r.serve(ctx, r.batchQ, i) },
			func() (bool, bool) { return r.serve(ctx, r.runQ, i) },
			func() (bool, bool) { return r.serveLetter(ctx, r.batchQ, i) },
			func() (bool, bool) { return r.serveLetter(ctx, r.runQ, i) },
		} {
			if did, crashed = turn(); crashed {
				return true
			}
			if did {
				break
			}
		}
		if did {
			continue
		}
		if r.quiet() {
			return false
		}
		next := r.nextTick
		if len(r.wishes) > 0 && r.wishes[0].due(r) && r.asksAgain.Before(next) {
			next = r.asksAgain
		}
		for _, b := range []*bus{r.runQ, r.batchQ} {
			if due, ok := b.next(); ok && due.Before(next) {
				next = due
			}
		}
		r.w.until(next)
	}
	r.w.violated("G1", "runs are not quiet after %d turns: %s", maxTurns, r.restless())
	return false
}

// quiet reports whether nothing is left to do: every run and every comparison has ended, and no message is under way.
func (r *runs) quiet() bool {
	for _, b := range []*bus{r.runQ, r.batchQ} {
		if _, more := b.next(); more {
			return false
		}
	}
	for _, row := range r.all() {
		if row.Status == run.RunRunning {
			return false
		}
	}
	_, compares, _ := r.findings.Next(context.Background())
	return !compares && len(r.wishes) == 0
}

func (r *runs) restless() string {
	var found []string
	for _, row := range r.all() {
		stats, _ := r.store.Stats(context.Background(), row.ID)
		found = append(found,
			fmt.Sprintf("run %s is %s (owner %q), batches %v, documents %v", row.ID, row.Status, row.Owner,
				stats.Batches, stats.Outcomes))
	}
	for _, b := range []*bus{r.runQ, r.batchQ} {
		found = append(found,
			fmt.Sprintf("%s: %d messages, %d locks, %d letters", b.name, len(b.q.Messages()),
				len(b.locks), len(b.deadLetters)))
	}
	for _, wanted := range r.wishes {
		found = append(found, "the operator still wants: "+wanted.what)
	}
	return fmt.Sprint(found)
}

// all are the runs, past all ports.
func (r *runs) all() []run.Run {
	rows, err := r.store.ListRuns(context.Background(), "", 100)
	if err != nil {
		panic(err)
	}
	slices.Reverse(rows)
	for i := range rows { // a list leaves out how far a run is
		rows[i] = r.row(rows[i].ID)
	}
	return rows
}

// row is a run, past all ports.
func (r *runs) row(id string) run.Run {
	row, _, err := r.store.Run(context.Background(), id)
	if err != nil {
		panic(err)
	}
	return row
}

// settle continues with a new instance after each that dies, until nothing is left to do.
func (r *runs) settle() {
	for range mostRounds {
		if !r.pump(r.w.restart()) {
			break
		}
	}
	if !r.quiet() && len(r.w.seen) == 0 {
		r.w.violated("G1", "runs are not quiet after %d processes: %s", mostRounds, r.restless())
	}
	r.w.checkpoint = len(r.w.changes) // CommitResults is switched off
}
