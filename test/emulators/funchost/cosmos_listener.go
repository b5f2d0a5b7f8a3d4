package funchost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// cosmosListener is the change feed processor of one cosmosDBTrigger function.
type cosmosListener struct {
	host     *Host
	function *function
	trigger  *cosmosTrigger
	source   changeSource
	leases   *leaseManager
	ranges   []feedRange

	mu    sync.Mutex
	owned map[string]bool // lease ids whose ranges are being read
	work  sync.WaitGroup
}

// newCosmosListener opens the containers, creates what leases are missing and is ready to run.
func newCosmosListener(ctx context.Context, h *Host, f *function, source changeSource, store leaseStore) (*cosmosListener, error) {
	owner := h.options.Instance
	if owner == "" {
		owner = newGUID()
	}
	l := &cosmosListener{
		host: h, function: f, trigger: f.cosmos, source: source, owned: map[string]bool{},
		leases: &leaseManager{store: store, owner: owner, now: h.clock.Now},
	}
	ranges, err := source.ranges(ctx)
	if err != nil {
		return nil, err
	}
	l.ranges = ranges
	for _, r := range ranges {
		fresh := lease{
			ID:         leaseID(f.cosmos.prefix, f.cosmos.database, f.cosmos.container, r),
			LeaseToken: r.String(), FeedRange: r, Timestamp: h.clock.Now().UTC(), Mode: "Incremental Feed",
		}
		switch err := store.create(ctx, fresh); {
		case err == nil:
			l.event(Event{Kind: LeaseCreated, Range: r.String()})
		case !errors.Is(err, errLeaseExists):
			return nil, fmt.Errorf("create lease of range %s: %w", r, err)
		}
	}
	return l, nil
}

func (l *cosmosListener) event(e Event) {
	e.Function, e.Owner = l.function.name, l.leases.owner
	l.host.event(e)
}

// run shares the ranges out and reads those it has, all at once, until ctx ends; then it gives its leases back.
// Source: PartitionLoadBalancerCore.cs, PartitionControllerCore.cs.
func (l *cosmosListener) run(ctx context.Context) {
	defer l.work.Wait()
	// Leases that bear this instance's name are taken up first: they are its own from before a crash (LoadLeasesAsync).
	l.balance(ctx, func(all []lease) []lease {
		return slices.DeleteFunc(all, func(each lease) bool { return each.Owner != l.leases.owner })
	})
	for {
		l.balance(ctx, func(all []lease) []lease {
			return leasesToTake(all, l.leases.owner, l.host.clock.Now(), l.trigger.expire)
		})
		if !l.host.clock.Sleep(ctx, l.trigger.acquire, waitLeaseAcquire) {
			return
		}
	}
}

// balance takes the leases that choose picks out of all.
func (l *cosmosListener) balance(ctx context.Context, choose func([]lease) []lease) {
	all := make([]lease, 0, len(l.ranges))
	for _, r := range l.ranges {
		found, err := l.leases.read(ctx, leaseID(l.trigger.prefix, l.trigger.database, l.trigger.container, r))
		if err != nil {
			l.leaseProblem(ctx, r.String(), err)
			return
		}
		all = append(all, found)
	}
	for _, wanted := range choose(all) {
		l.take(ctx, wanted)
	}
}

// take acquires a lease and starts reading its range.
func (l *cosmosListener) take(ctx context.Context, wanted lease) {
	if !l.claim(wanted.ID) {
		return // expired on paper only: this host is still reading it
	}
	got, err := l.leases.acquire(ctx, wanted)
	if err != nil {
		l.unclaim(wanted.ID)
		l.leaseProblem(ctx, wanted.LeaseToken, err)
		return
	}
	l.event(Event{Kind: LeaseAcquired, Range: got.LeaseToken})
	l.work.Go(func() {
		defer l.unclaim(got.ID)
		l.own(ctx, got)
	})
}

func (l *cosmosListener) claim(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owned[id] {
		return false
	}
	l.owned[id] = true
	return true
}

func (l *cosmosListener) unclaim(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owned, id)
}

// own reads a range and renews its lease until ctx ends, the lease is lost or the feed fails; then it lets go.
// Source: PartitionSupervisorCore.cs.
func (l *cosmosListener) own(ctx context.Context, mine lease) {
	reading, stop := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	var renewErr error
	renewing.Go(func() {
		renewErr = l.keep(reading, mine)
		stop()
		if renewErr != nil {
			l.event(Event{Kind: LeaseLost, Range: mine.LeaseToken, Err: renewErr})
		}
	})
	err := l.read(ctx, reading, mine)
	stop()
	renewing.Wait()
	if renewErr != nil {
		return // already logged
	}
	if errors.Is(err, errLeaseLost) {
		l.event(Event{Kind: LeaseLost, Range: mine.LeaseToken, Err: err})
		return
	}
	if err != nil && ctx.Err() == nil {
		l.event(Event{Kind: FeedError, Range: mine.LeaseToken, Err: err})
	}
	// The listener may have been stopped: giving the lease back still has to reach the store.
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.leases.release(releasing, mine.ID); err != nil {
		l.leaseProblem(releasing, mine.LeaseToken, err)
		return
	}
	l.event(Event{Kind: LeaseReleased, Range: mine.LeaseToken})
}

// keep renews the lease. Only its loss ends it early: any other failure is tried again at the next interval.
func (l *cosmosListener) keep(ctx context.Context, mine lease) error {
	for {
		if !l.host.clock.Sleep(ctx, l.trigger.renew, waitLeaseRenew) {
			return nil
		}
		err := l.leases.renew(ctx, mine.ID)
		if errors.Is(err, errLeaseLost) {
			return err
		}
		if err != nil {
			l.leaseProblem(ctx, mine.LeaseToken, err)
		}
	}
}

// read dispatches page after page. reading ends with the lease; listening only with the listener: as in the extension, a
// batch that is being retried goes on being retried although its lease is lost, but it is never checkpointed then.
// Source: FeedProcessorCore.cs, AutoCheckpointer.cs, CosmosDBTriggerListener.cs ProcessChangesAsync.
func (l *cosmosListener) read(listening, reading context.Context, mine lease) error {
	at := position{in: mine.FeedRange, maxItems: l.trigger.maxItems, start: l.startOf()}
	if mine.ContinuationToken != nil {
		at.continuation = *mine.ContinuationToken
	}
	for reading.Err() == nil {
		page, err := l.source.page(reading, at)
		if err != nil {
			return err
		}
		if page.continuation != "" {
			at.continuation = page.continuation
		}
		if len(page.items) == 0 {
			if !l.host.clock.Sleep(reading, l.trigger.feedPoll, waitFeedPoll) {
				return nil
			}
			continue
		}
		data, err := cosmosData(page.items, l.host.options.Zone)
		if err != nil {
			return err
		}
		_, _ = l.host.execute(listening, l.function, payload{data: data, items: len(page.items)}) // recorded by execute
		if over(listening) {
			return nil // stopped: not checkpointed, so delivered again
		}
		// Succeeded, or failed for good: either way the feed moves on (docs/facts.md F43).
		if mine, err = l.leases.checkpoint(reading, mine, at.continuation); err != nil {
			return err
		}
		l.event(Event{Kind: Checkpoint, Range: mine.LeaseToken, Items: len(page.items)})
	}
	return nil
}

// over says whether a context has ended.
func over(ctx context.Context) bool { return ctx.Err() != nil }

// startOf says where a range without a continuation begins: as the documents say, these settings act only as long as a
// lease has never been checkpointed. Without them it is "now", and again now at each start until the first checkpoint.
func (l *cosmosListener) startOf() *time.Time {
	switch {
	case l.trigger.fromBeginning:
		return nil
	case !l.trigger.fromTime.IsZero():
		return &l.trigger.fromTime
	default:
		now := l.host.clock.Now()
		return &now
	}
}

func (l *cosmosListener) leaseProblem(ctx context.Context, token string, err error) {
	if ctx.Err() != nil {
		return
	}
	kind := LeaseError
	if errors.Is(err, errLeaseLost) {
		kind = LeaseLost
	}
	l.event(Event{Kind: kind, Range: token, Err: err})
}
