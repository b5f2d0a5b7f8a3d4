package inmem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// Selection implements run.Selection over documents in memory. It keeps nothing of its own: another one of the same
// documents goes on where this one stopped.
type Selection struct {
	docs     *Documents
	pageSize int
}

// Selection finds documents by looking at pageSize of the environment's for each page, at most 1,000 and 1,000 for 0. Pages
// are thus as full as it happens, empty ones among them, as they come from a service.
func (d *Documents) Selection(pageSize int) Selection {
	const most = 1000
	if pageSize <= 0 || pageSize > most {
		pageSize = most
	}
	return Selection{docs: d, pageSize: pageSize}
}

// Page implements run.Selection. A continuation is the id that was looked at last, behind a mark of the query.
func (s Selection) Page(ctx context.Context, q run.Query, continuation string) (found []writer.Waiting, next string, err error) {
	const op = "inmem: page"
	if err := ended(ctx, op); err != nil {
		return nil, "", err
	}
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
	docs, last, err := s.docs.page(q, after, s.pageSize)
	if err != nil {
		return nil, "", err
	}
	for _, doc := range docs {
		w, ok, err := waiting(doc, q.Statuses)
		if err != nil {
			return nil, "", err
		}
		if ok {
			found = append(found, w)
		}
	}
	if last != "" {
		next = mark + hex.EncodeToString([]byte(last))
	}
	return found, next, nil
}

// page lists up to n documents of a window whose ids come after an id, and the last of them; "" when there are no more.
func (d *Documents) page(q run.Query, after string, n int) (found []json.RawMessage, last string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(d.byID)) {
		members := d.byID[id]
		if id <= after || !inWindow(members, q) {
			continue
		}
		if len(found) == n {
			return found, last, nil
		}
		doc, err := encode(members)
		if err != nil {
			return nil, "", err
		}
		found, last = append(found, doc), id
	}
	return found, "", nil
}

// inWindow reports whether a document is of the environment and the time that a query asks for.
func inWindow(members map[string]json.RawMessage, q run.Query) bool {
	var ts int64
	if json.Unmarshal(members["_ts"], &ts) != nil || ts < q.From || ts >= q.To {
		return false
	}
	name, ok := text(object(members["request_details"])["sys_name"])
	return ok && name == q.SysName
}

// markOf begins the continuations of one query.
func markOf(op string, q run.Query) (string, error) {
	value, err := json.Marshal(q)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "marshal", "the query cannot be written as JSON", err)
	}
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:8]) + ":", nil
}

// placeOf gives the id in a continuation.
func placeOf(op, mark, continuation string) (string, error) {
	place, ours := strings.CutPrefix(continuation, mark)
	id, err := hex.DecodeString(place)
	if !ours || err != nil || len(id) == 0 {
		return "", fault.New(fault.Document, op, "continuation", "the place where the search stopped is none of this search")
	}
	return string(id), nil
}
