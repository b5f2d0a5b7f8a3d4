package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// cosmosListener is the change feed processor of one cosmosDBTrigger function.
type cosmosListener struct {
	host     *Host
	function *function
	trigger  *cosmosTrigger
	source   changeSource
	leases   *leaseManager
	prefix   string // of the ids of leases

	mu    sync.Mutex
	owned map[string]bool // lease ids whose ranges are being read
	work  sync.WaitGroup
}

func newCosmosListener(h *Host, f *function, source changeSource, store leaseStore) *cosmosListener {
	owner := h.options.Instance
	if owner == "" {
		owner = newGUID()
	}
	return &cosmosListener{
		host: h, function: f, trigger: f.cosmos, source: source, owned: map[string]bool{},
		prefix: f.cosmos.prefix + source.name(),
		leases: &leaseManager{store: store, owner: owner, now: h.clock.Now},
	}
}

// The lock of the first start lives for lockTime, if the lease container has a time to live; who finds it looks again
// after lockPause.
const (
	lockTime  = 30 * time.Second
	lockPause = 15 * time.Second
)

// initialize creates the leases at the first start on a prefix, under a lock. A lock that a killed host left behind is
// waited for without a line, for ever where documents do not expire (docs/facts.md F40). Source: BootstrapperCore.cs,
// DocumentServiceLeaseStoreCosmos.cs.
func (l *cosmosListener) initialize(ctx context.Context) error {
	info, lock, store := l.prefix+".info", l.prefix+".lock", l.leases.store
	for {
		if done, err := store.exists(ctx, info); err != nil || done {
			return err
		}
		err := store.mark(ctx, lock, int(lockTime.Seconds()))
		if errors.Is(err, errLeaseExists) {
			if !l.host.clock.Sleep(ctx, lockPause, waitLeaseLock) {
				return ctx.Err()
			}
			continue
		}
		if err == nil {
			err = l.createLeases(ctx)
		}
		if err == nil {
			err = store.mark(ctx, info, 0)
		}
		return errors.Join(err, store.remove(ctx, lock))
	}
}

func (l *cosmosListener) createLeases(ctx context.Context) error {
	ranges, err := l.source.ranges(ctx)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if err := l.create(ctx, newLease(l.prefix, r, nil, l.host.clock.Now())); err != nil {
			return err
		}
	}
	return nil
}

// create makes a lease unless there is one.
func (l *cosmosListener) create(ctx context.Context, fresh lease) error {
	err := l.leases.store.create(ctx, fresh)
	if errors.Is(err, errLeaseExists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create lease of range %s: %w", fresh.LeaseToken, err)
	}
	l.event(Event{Kind: LeaseCreated, Range: fresh.LeaseToken})
	return nil
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
	all, err := l.leases.store.all(ctx, leaseID(l.prefix, ""))
	if err != nil {
		l.leaseProblem(ctx, "", err)
		return
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
	var gone *goneError
	if errors.As(err, &gone) {
		if err = l.split(ctx, mine, gone.continuation); err == nil {
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		l.event(Event{Kind: FeedError, Range: mine.LeaseToken, Text: feedErrorText(mine.LeaseToken, err), Err: err})
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

// goneError ends the reading of a range that was split.
type goneError struct{ continuation *string }

func (e *goneError) Error() string { return errRangeGone.Error() }

// split makes a lease for each child of a range, with the range's continuation, deletes the range's own and takes the
// children. Source: PartitionSynchronizerCore.cs, PartitionControllerCore.cs HandlePartitionGoneAsync.
func (l *cosmosListener) split(ctx context.Context, mine lease, continuation *string) error {
	ranges, err := l.source.ranges(ctx)
	if err != nil {
		return err
	}
	var children []lease
	for _, r := range ranges {
		if slices.Contains(r.Parents, mine.LeaseToken) {
			children = append(children, newLease(l.prefix, r, continuation, l.host.clock.Now()))
		}
	}
	if len(children) == 0 {
		return fmt.Errorf("range %s had split but we failed to find at least one child", mine.LeaseToken)
	}
	for _, child := range children {
		if err := l.create(ctx, child); err != nil {
			return err
		}
	}
	if err := l.leases.store.remove(ctx, mine.ID); err != nil && !errors.Is(err, errLeaseGone) {
		return err
	}
	l.event(Event{Kind: LeaseDeleted, Range: mine.LeaseToken})
	for _, child := range children {
		// another host may have been faster
		if stored, err := l.leases.read(ctx, child.ID); err == nil && stored.Owner == "" {
			l.take(ctx, stored)
		}
	}
	return nil
}

// errTooDeep is why the client cannot read a page with a document of maxLevels levels or more, the document itself
// counted. It throws before any invocation, so no retry policy sees it (docs/facts.md F45).
var errTooDeep = errors.New("the reader's MaxDepth of 64 has been exceeded") //nolint:gochecknoglobals // a sentinel

const maxLevels = 64

// levels is how deep a document's objects and lists are nested.
func levels(document []byte) int {
	deepest, depth := 0, 0
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '"':
			i = stringEnd(document, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// feedErrorText is what the extension writes when the reading of a range ends (CosmosDBTriggerHealthMonitor.cs).
func feedErrorText(token string, err error) string {
	switch {
	case errors.Is(err, errTooDeep):
		return "Lease " + token + " encountered an unhandled user exception during processing."
	case isTransient(err):
		return "Lease " + token + " experiencing transient connectivity issues."
	default:
		return "Lease " + token + " experienced an error during processing."
	}
}

func feedErrorLevel(err error) zerolog.Level {
	if errors.Is(err, errTooDeep) || isTransient(err) {
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}

func isTransient(err error) bool {
	var answer *feedStatus
	return errors.As(err, &answer) &&
		(answer.status == http.StatusRequestTimeout || answer.status == http.StatusServiceUnavailable)
}

// read dispatches page after page. reading ends with the lease; listening only with the listener: as in the extension,
// a batch that is being retried goes on being retried although its lease is lost, but it is never checkpointed then.
// Source: FeedProcessorCore.cs, AutoCheckpointer.cs, CosmosDBTriggerListener.cs ProcessChangesAsync.
func (l *cosmosListener) read(listening, reading context.Context, mine lease) error {
	at := position{rangeID: mine.LeaseToken, maxItems: l.trigger.maxItems}
	if mine.ContinuationToken != nil {
		at.continuation = *mine.ContinuationToken
	}
	for reading.Err() == nil {
		page, err := l.source.page(reading, at)
		if errors.Is(err, errRangeGone) {
			gone := &goneError{}
			if at.continuation != "" {
				gone.continuation = &at.continuation
			}
			return gone
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(page.items, func(item json.RawMessage) bool { return levels(item) >= maxLevels }) {
			return errTooDeep
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
