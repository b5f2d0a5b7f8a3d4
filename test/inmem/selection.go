package inmem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Selection implements run.Selection over documents in memory. It keeps nothing of its own: another one of the same
// documents goes on where this one stopped.
type Selection struct {
	docs     *Documents
	pageSize int
}

// Selection finds documents by looking at pageSize of the environment's for each page, at most 1,000 and 1,000 for 0. Pages are thus as
// full as it happens, empty ones among them, as they come from a service.
func (d *Documents) Selection(pageSize int) Selection {
	const most = 1000
	if pageSize <= 0 || pageSize > most {
		pageSize = most
	}
	return Selection{docs: d, pageSize: pageSize}
}

// Page implements run.Selection.
func (s Selection) Page(ctx context.Context, q run.Query, continuation string) (found []commit.PendingDoc, next string, err error) {
	const op = "inmem: page"
	if err := ended(ctx, op); err != nil {
		return nil, "", err
	}
	concerns := func(e candidate) bool { return e.between(q.SysName, q.From, q.To) }
	return s.docs.search(op, q, continuation, s.pageSize, s.pageSize, concerns, func(e candidate) bool { return e.is(q.Statuses...) })
}

// search gives the documents that fit, at most most of them, among the next look that it concerns, in the order of their
// ids. A continuation is the slot that was looked at last, behind a mark of the query.
func (d *Documents) search(op string, q any, continuation string, most, look int, concerns, fits func(candidate) bool) (found []commit.PendingDoc, next string, err error) {
	mark, err := markOf(op, q)
	if err != nil {
		return nil, "", err
	}
	after := ""
	if continuation != "" {
		if after, err = placeOf(op, mark, continuation); err != nil {
			return nil, "", err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := slices.BinarySearch(d.slots, after)
	if known {
		at++
	}
	for ; at < len(d.slots); at++ {
		e := d.pending[d.slots[at]]
		if !concerns(e) {
			continue
		}
		if look == 0 || len(found) == most {
			return found, mark + hex.EncodeToString([]byte(after)), nil
		}
		after, look = d.slots[at], look-1
		if fits(e) {
			found = append(found, e.PendingDoc)
		}
	}
	return found, "", nil
}

// markOf begins the continuations of one query.
func markOf(op string, q any) (string, error) {
	value, err := json.Marshal(q)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "marshal", "the query cannot be written as JSON", err)
	}
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:8]) + ":", nil
}

// placeOf gives the slot in a continuation.
func placeOf(op, mark, continuation string) (string, error) {
	place, ours := strings.CutPrefix(continuation, mark)
	id, err := hex.DecodeString(place)
	if !ours || err != nil || len(id) == 0 {
		return "", noContinuation(op)
	}
	return string(id), nil
}

// noContinuation is the error for a continuation that this container did not give.
func noContinuation(op string) error {
	return fault.New(fault.Document, op, "continuation", "the continuation does not belong to this search")
}
