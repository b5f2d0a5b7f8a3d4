package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// lease is a lease document (DocumentServiceLeaseCore.cs; docs/facts.md F44): the owner of a range, and its
// continuation.
type lease struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	// LeaseToken is the id of the range.
	LeaseToken        string            `json:"LeaseToken"`
	FeedRange         feedRange         `json:"FeedRange"`
	Owner             string            `json:"-"` // null when it is free
	ContinuationToken *string           `json:"ContinuationToken"`
	Mode              string            `json:"Mode"`
	Properties        map[string]string `json:"properties"`
	Timestamp         time.Time         `json:"timestamp"`

	etag string
}

// feedRange is a range of effective partition keys.
type feedRange struct {
	Range struct {
		Min string `json:"min"`
		Max string `json:"max"`
	}
}

// newLease is the lease of a range that nobody has read; continuation is nil, or that of the range's parent.
func newLease(prefix string, r keyRange, continuation *string, now time.Time) lease {
	l := lease{
		ID: leaseID(prefix, r.ID), LeaseToken: r.ID, ContinuationToken: continuation,
		Mode: "Incremental Feed", Properties: map[string]string{}, Timestamp: now.UTC(),
	}
	l.FeedRange.Range.Min, l.FeedRange.Range.Max = r.Min, r.Max
	return l
}

// leaseID names the lease of a range. The prefix is what separates one reader of a container from another: two hosts
// with the same one share the ranges, with different ones each sees every change (docs/facts.md F39).
func leaseID(prefix, rangeID string) string { return prefix + ".." + rangeID }

type ownedLease struct {
	plainLease
	Owner *string `json:"Owner"`
}

type plainLease lease

func (l lease) MarshalJSON() ([]byte, error) {
	out := ownedLease{plainLease: plainLease(l)}
	if l.Owner != "" {
		out.Owner = &l.Owner
	}
	return json.Marshal(out)
}

func (l *lease) UnmarshalJSON(text []byte) error {
	var in struct {
		ownedLease
		ETag string `json:"_etag"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*l = lease(in.plainLease)
	l.etag = in.ETag
	if in.Owner != nil {
		l.Owner = *in.Owner
	}
	return nil
}

// errLeaseLost means that another host owns the lease now, or that it is gone.
var errLeaseLost = errors.New("the lease is lost")

// leaseManager changes leases on behalf of one owner (DocumentServiceLeaseManagerCosmos.cs).
type leaseManager struct {
	store leaseStore
	owner string
	now   func() time.Time
}

// conflictRetries is how often an update is tried again after someone else changed the document.
const conflictRetries = 5

// update applies change to the lease as known and writes it; when someone changed the document meanwhile, change is
// applied to the stored one. change returns false to give up with errLeaseLost. Source:
// DocumentServiceLeaseUpdaterCosmos.cs.
func (m *leaseManager) update(ctx context.Context, known lease, change func(*lease) bool) (lease, error) {
	l := known
	for range conflictRetries + 1 {
		if !change(&l) {
			return lease{}, fmt.Errorf("%w: %q has it", errLeaseLost, l.Owner)
		}
		l.Timestamp = m.now().UTC()
		written, err := m.store.replace(ctx, l)
		if err == nil {
			return written, nil
		}
		if errors.Is(err, errLeaseGone) {
			return lease{}, fmt.Errorf("%w: %w", errLeaseLost, err)
		}
		if !errors.Is(err, errLeaseMoved) {
			return lease{}, err
		}
		if l, err = m.read(ctx, known.ID); err != nil {
			return lease{}, err
		}
	}
	return lease{}, fmt.Errorf("%w: changed by others %d times in a row", errLeaseLost, conflictRetries+1)
}

func (m *leaseManager) read(ctx context.Context, id string) (lease, error) {
	l, err := m.store.read(ctx, id)
	if errors.Is(err, errLeaseGone) {
		return lease{}, fmt.Errorf("%w: %w", errLeaseLost, err)
	}
	return l, err
}

// acquire takes the lease from the owner that it was seen with.
func (m *leaseManager) acquire(ctx context.Context, l lease) (lease, error) {
	from := l.Owner
	return m.update(ctx, l, func(stored *lease) bool {
		if stored.Owner != from {
			return false
		}
		stored.Owner = m.owner
		return true
	})
}

// renew shows that the owner lives. It reads the document first, because checkpoints have changed it since.
func (m *leaseManager) renew(ctx context.Context, id string) error {
	l, err := m.read(ctx, id)
	if err != nil {
		return err
	}
	_, err = m.update(ctx, l, func(stored *lease) bool { return stored.Owner == m.owner })
	return err
}

// checkpoint records that everything up to continuation is done with.
func (m *leaseManager) checkpoint(ctx context.Context, l lease, continuation string) (lease, error) {
	return m.update(ctx, l, func(stored *lease) bool {
		stored.ContinuationToken = &continuation
		return stored.Owner == m.owner
	})
}

// release gives the lease back.
func (m *leaseManager) release(ctx context.Context, id string) error {
	l, err := m.read(ctx, id)
	if err != nil {
		return err
	}
	_, err = m.update(ctx, l, func(stored *lease) bool {
		if stored.Owner != m.owner {
			return false
		}
		stored.Owner = ""
		return true
	})
	return err
}

// leasesToTake decides which leases an owner goes for now: its share is the number of leases divided by the number of
// owners, rounded up; free and expired ones first, else one is taken from the owner that has the most, when that has
// more than its share. Source: EqualPartitionsBalancingStrategy.cs.
func leasesToTake(all []lease, owner string, now time.Time, expire time.Duration) []lease {
	owned := map[string]int{owner: 0}
	order := []string{} // of first appearance: the last of equals is robbed, as in the original
	var free []lease
	for _, l := range all {
		if l.Owner == "" || l.Timestamp.Add(expire).Before(now) {
			free = append(free, l)
			continue
		}
		if owned[l.Owner] == 0 {
			order = append(order, l.Owner)
		}
		owned[l.Owner]++
	}
	if len(all) == 0 {
		return nil
	}
	share := 1
	if len(all) > len(owned) {
		share = (len(all) + len(owned) - 1) / len(owned)
	}
	need := share - owned[owner]
	if need <= 0 {
		return nil
	}
	if len(free) > 0 {
		return free[:min(need, len(free))]
	}
	richest := ""
	for _, name := range order {
		if owned[name] >= owned[richest] {
			richest = name
		}
	}
	limit := share
	if need > 1 {
		limit--
	}
	if owned[richest] <= limit {
		return nil
	}
	for _, l := range all {
		if l.Owner == richest {
			return []lease{l}
		}
	}
	return nil
}
