package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// The host's own numbers (functions/*/function.json, handlers): poll, pause before the same batch comes again, deadline
// of an invocation, size of a batch, the recovery timer.
const (
	pollDelay = time.Second
	hostPause = 10 * time.Second
	deadline  = 4 * time.Minute
	batchSize = 100
	tickEvery = 5 * time.Minute
	// acquireEvery is when a range whose reading failed is read again.
	acquireEvery = 13 * time.Second
)

// feedRange is one range of the change feed: each document once, at the place of its latest change.
type feedRange struct {
	mu     sync.Mutex
	order  []place
	latest map[string]int
	n      int
}

type place struct {
	id string
	n  int
}

func newFeedRange() *feedRange { return &feedRange{latest: map[string]int{}} }

// changed puts a document to the end.
func (f *feedRange) changed(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	f.latest[id] = f.n
	f.order = append(f.order, place{id, f.n})
}

// take takes the next documents; the host moves its checkpoint when the invocation is done, and here no instance loses
// a lease.
func (f *feedRange) take(most int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for len(f.order) > 0 && len(ids) < most {
		p := f.order[0]
		f.order = f.order[1:]
		if f.latest[p.id] == p.n {
			delete(f.latest, p.id)
			ids = append(ids, p.id)
		}
	}
	return ids
}

// giveBack puts what a process had when it ended to the front.
func (f *feedRange) giveBack(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var front []place
	for _, id := range ids {
		if _, later := f.latest[id]; !later {
			f.n++
			f.latest[id] = f.n
			front = append(front, place{id, f.n})
		}
	}
	f.order = append(front, f.order...)
}

// instance is one process of the app.
type instance struct {
	w     *world
	name  string
	build build
	// ahead is how far its clock is ahead of the others'.
	ahead time.Duration
	product
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
}

// process is how an instance is started.
type process struct {
	build build
	ahead time.Duration
	// feed are the ranges that it owns.
	feed []int
	// ticks says that it has the recovery timer, runs that it takes messages of runs.
	ticks, runs bool
}

// start starts a process. The first one of most tests owns the ticks.
func (w *world) start(name string, p process) *instance {
	if p.build.version == "" {
		p.build.version = "v1"
	}
	i := &instance{w: w, name: name, build: p.build, ahead: p.ahead}
	i.ctx, i.stop = context.WithCancel(w.ctx)
	i.product = newProduct(i)
	w.mu.Lock()
	w.instances = append(w.instances, i)
	w.mu.Unlock()
	for _, n := range p.feed {
		i.goes(func() { i.serve(n) })
	}
	if p.ticks {
		i.goes(i.tick)
	}
	if p.runs {
		i.takesMessages()
	}
	return i
}

// host starts n processes that divide the ranges among them; the first has the ticks.
func (w *world) host(n int) []*instance { return w.hostOf(n, build{}) }

func (w *world) hostOf(n int, b build) []*instance {
	var all []*instance
	for k := range n {
		p := process{build: b, ticks: k == 0}
		for r := k; r < len(w.feed); r += n {
			p.feed = append(p.feed, r)
		}
		all = append(all, w.start(string(rune('a'+k))+"-"+b.version, p))
	}
	return all
}

func (i *instance) goes(f func()) {
	i.w.group.Go(func() {
		i.done.Add(1)
		defer i.done.Done()
		f()
	})
}

// end ends a process as the host does: nothing new, and what is under way is cut.
func (i *instance) end() {
	i.stop()
	i.done.Wait()
}

// invocation is one of CommitResults.
type invocation struct {
	rng        int
	instance   string
	begin, end time.Time
	n, retry   int
	err        error
}

// tick is one of RecoverRetries.
type tick struct {
	begin, end time.Time
	err        error
}

// serve takes a range's batches one after the other. After an error the same batch comes again, from memory.
func (i *instance) serve(n int) {
	w := i.w
	for i.ctx.Err() == nil {
		ids := w.feed[n].take(batchSize)
		if len(ids) == 0 {
			_ = pause(i.ctx, pollDelay)
			continue
		}
		if w.stands(n, ids) { // the host asks again, and no function is called
			w.feed[n].giveBack(ids)
			_ = pause(i.ctx, acquireEvery)
			continue
		}
		if w.batchCost > 0 && pause(i.ctx, w.batchCost) != nil {
			w.feed[n].giveBack(ids)
			return
		}
		batch := make([]json.RawMessage, 0, len(ids))
		for _, id := range ids {
			if raw, err := w.docs.Read(w.ctx, id); err == nil {
				batch = append(batch, i.reads(raw))
			}
		}
		for retry := 0; ; retry++ {
			if i.invoke(n, ids, batch, retry) == nil {
				break
			}
			if pause(i.ctx, hostPause) != nil {
				w.feed[n].giveBack(ids)
				return
			}
		}
	}
}

// invoke is one invocation of CommitResults.
func (i *instance) invoke(n int, ids []string, batch []json.RawMessage, retry int) error {
	w := i.w
	in := invocation{rng: n, instance: i.name, begin: time.Now(), n: len(batch), retry: retry}
	ctx, cancel := context.WithTimeout(i.ctx, deadline)
	defer cancel()
	_, in.err = i.commit.Run(ctx, commit.Delivery{Documents: batch, Received: i.now(), RetryCount: retry})
	in.end = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.invocations = append(w.invocations, in)
	for _, id := range ids {
		if d := w.docOf[id]; !d.brought {
			d.brought, d.broughtDone = true, !d.committed.IsZero()
		}
	}
	return in.err
}

// tick is the recovery timer: at the full five minutes.
func (i *instance) tick() {
	for {
		now := time.Now()
		if pause(i.ctx, now.Truncate(tickEvery).Add(tickEvery).Sub(now)) != nil {
			return
		}
		i.once()
	}
}

// once is one tick.
func (i *instance) once() tick {
	w := i.w
	t := tick{begin: time.Now()}
	ctx, cancel := context.WithTimeout(i.ctx, deadline)
	defer cancel()
	_, t.err = i.recover.RunAs(ctx, "RecoverRetries")
	_, err := i.recovery.Run(ctx)
	t.err = errors.Join(t.err, err, i.ops.TellTransitions(ctx))
	t.end = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticks = append(w.ticks, t)
	return t
}

// replay is what the workers of a replay do with documents that failed.
func (i *instance) replay(docs []*doc) {
	for batch := range slices.Chunk(docs, batchSize) {
		ids := make([]string, len(batch))
		for k, d := range batch {
			ids[k] = d.id
		}
		ctx, cancel := context.WithTimeout(i.ctx, deadline)
		raws, err := documentsSpy{i.w.docs, i}.ReadMany(ctx, ids)
		if err == nil {
			_, err = i.commit.Run(ctx, commit.Delivery{
				Documents: raws, Received: i.now(), Purpose: commit.ForRun, RunID: "replay-1",
				TakeOver: []invoice.Status{invoice.Failed},
			})
		}
		cancel()
		assert.NoError(i.w.t, err, "replay")
	}
}
