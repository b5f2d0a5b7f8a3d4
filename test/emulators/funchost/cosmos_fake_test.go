package funchost

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeCosmos is a container and a lease container in memory. A continuation is a position in a range's list of changes.
type fakeCosmos struct {
	mu      sync.Mutex
	in      []feedRange
	changes map[feedRange][]change
	leases  map[string]lease
	version int
	reads   int
	fail    error // of the next page
}

type change struct {
	at   time.Time
	text string
}

func newFakeCosmos(ranges int) *fakeCosmos {
	f := &fakeCosmos{changes: map[feedRange][]change{}, leases: map[string]lease{}}
	for i := range ranges {
		f.in = append(f.in, feedRange{Min: fmt.Sprintf("%02X", i), Max: fmt.Sprintf("%02X", i+1)})
	}
	return f
}

// uses makes a host read from f.
func (f *fakeCosmos) uses() func(*Host, *Options) {
	return func(h *Host, _ *Options) {
		if h != nil {
			h.openCosmos = func(context.Context, *cosmosTrigger) (changeSource, leaseStore, func(), error) {
				return f, f, func() {}, nil
			}
		}
	}
}

func (f *fakeCosmos) put(in int, at time.Time, documents ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range documents {
		f.changes[f.in[in]] = append(f.changes[f.in[in]], change{at, d})
	}
}

func (f *fakeCosmos) ranges(context.Context) ([]feedRange, error) { return f.in, nil }

func (f *fakeCosmos) page(ctx context.Context, from position) (changes, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return changes{}, err
	}
	f.reads++
	if err := f.fail; err != nil {
		f.fail = nil
		return changes{}, err
	}
	all := f.changes[from.in]
	i, _ := strconv.Atoi(from.continuation)
	if from.continuation == "" && from.start != nil {
		for i < len(all) && all[i].at.Before(*from.start) {
			i++
		}
	}
	var out changes
	for ; i < len(all) && (from.maxItems == 0 || len(out.items) < int(from.maxItems)); i++ {
		out.items = append(out.items, json.RawMessage(all[i].text))
	}
	out.continuation = strconv.Itoa(i)
	return out, nil
}

func (f *fakeCosmos) create(_ context.Context, l lease) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.leases[l.ID]; there {
		return errLeaseExists
	}
	f.storeLocked(l)
	return nil
}

func (f *fakeCosmos) storeLocked(l lease) lease {
	f.version++
	l.etag = strconv.Itoa(f.version)
	f.leases[l.ID] = l
	return l
}

func (f *fakeCosmos) read(_ context.Context, id string) (lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, there := f.leases[id]
	if !there {
		return lease{}, errLeaseGone
	}
	return l, nil
}

func (f *fakeCosmos) replace(ctx context.Context, l lease) (lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease{}, err
	}
	stored, there := f.leases[l.ID]
	if !there {
		return lease{}, errLeaseGone
	}
	if stored.etag != l.etag {
		return lease{}, errLeaseMoved
	}
	return f.storeLocked(l), nil
}

// lease returns the stored lease of a range under the prefix of cosmosFunction.
func (f *fakeCosmos) lease(t *testing.T, in int) lease {
	t.Helper()
	l, err := f.read(t.Context(), leaseID("p-", "db", "docs", f.in[in]))
	require.NoError(t, err)
	return l
}

// rob gives a lease to another owner, as a host that takes it does.
func (f *fakeCosmos) rob(in int, owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[leaseID("p-", "db", "docs", f.in[in])]
	l.Owner = owner
	f.storeLocked(l)
}

func (f *fakeCosmos) readCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}
