package funchost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeCosmos is a container and a lease container in memory. A continuation is a position in a range's list of changes.
type fakeCosmos struct {
	mu      sync.Mutex
	in      []keyRange
	changes map[string][]string // by the id of a range
	leases  map[string]lease
	marks   map[string]int // other documents of the lease container, with their ttl
	marked  []string       // what was ever put there
	version int
	reads   int
	fail    error // of the next page
}

func newFakeCosmos(ranges int) *fakeCosmos {
	f := &fakeCosmos{changes: map[string][]string{}, leases: map[string]lease{}, marks: map[string]int{}}
	for i := range ranges {
		f.in = append(f.in, keyRange{ID: strconv.Itoa(i), Min: fmt.Sprintf("%02X", i), Max: fmt.Sprintf("%02X", i+1)})
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

func (f *fakeCosmos) put(in int, documents ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes[f.in[in].ID] = append(f.changes[f.in[in].ID], documents...)
}

// fakeName is what leases have in their ids; leasePrefix is that with the prefix of cosmosFunction.
const (
	fakeName    = "account_db_docs"
	leasePrefix = "p-" + fakeName
)

func (f *fakeCosmos) name() string { return fakeName }

func (f *fakeCosmos) ranges(context.Context) ([]keyRange, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.in), nil
}

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
	if !slices.ContainsFunc(f.in, func(r keyRange) bool { return r.ID == from.rangeID }) {
		return changes{}, errRangeGone
	}
	all := f.changes[from.rangeID]
	i, _ := strconv.Atoi(from.continuation)
	var out changes
	for ; i < len(all) && (from.maxItems == 0 || len(out.items) < int(from.maxItems)); i++ {
		out.items = append(out.items, json.RawMessage(all[i]))
	}
	out.continuation = strconv.Itoa(i)
	return out, nil
}

func (f *fakeCosmos) all(_ context.Context, prefix string) ([]lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []lease
	for _, id := range slices.Sorted(maps.Keys(f.leases)) {
		if strings.HasPrefix(id, prefix) {
			out = append(out, f.leases[id])
		}
	}
	return out, nil
}

func (f *fakeCosmos) exists(_ context.Context, id string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, there := f.marks[id]
	return there, nil
}

func (f *fakeCosmos) mark(_ context.Context, id string, ttl int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.marks[id]; there {
		return errLeaseExists
	}
	f.marks[id] = ttl
	f.marked = append(f.marked, strings.TrimPrefix(id, leasePrefix)+" "+strconv.Itoa(ttl))
	return nil
}

func (f *fakeCosmos) remove(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.marks, id)
	delete(f.leases, id)
	return nil
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
	l, err := f.read(t.Context(), leaseID(leasePrefix, f.in[in].ID))
	require.NoError(t, err)
	return l
}

// lend makes the lease of a range, owned by someone, as after an earlier start on the prefix.
func (f *fakeCosmos) lend(in int, owner string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := newLease(leasePrefix, f.in[in], nil, at)
	l.Owner = owner
	f.storeLocked(l)
	f.marks[leasePrefix+".info"] = 0
}

// rob gives a lease to another owner, as a host that takes it does.
func (f *fakeCosmos) rob(in int, owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[leaseID(leasePrefix, f.in[in].ID)]
	l.Owner = owner
	f.storeLocked(l)
}

func (f *fakeCosmos) readCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}
