package inmem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxDocument is how large a document may be, in bytes: the limit of Cosmos DB (docs/facts.md F68).
const maxDocument = 2 << 20

// Documents is a container of documents in memory. It implements commit.Documents and passes the same suite as the
// Cosmos adapter: etags that change with every write, compare-and-set, _ts in whole seconds, the limit of 2 MB.
// It is safe for concurrent use.
type Documents struct {
	now func() time.Time

	mu sync.Mutex
	// byID holds the members of each document as they were written, undecoded; ids are its keys, sorted.
	byID map[string]map[string]json.RawMessage
	ids  []string
	// pending is the index of the searches, so that they need not decode every document.
	pending map[string]candidate
	// writes numbers the etags.
	writes int64
}

// NewDocuments makes an empty container whose _ts come from now.
func NewDocuments(now func() time.Time) *Documents {
	return &Documents{now: now, byID: map[string]map[string]json.RawMessage{}, pending: map[string]candidate{}}
}

// Put writes a whole document, new or over an old one, as the programs that produce results do; _etag and _ts are set
// by the container. Errors by kind: document when the text is no object with an id that Cosmos DB accepts; condition
// TooLarge.
func (d *Documents) Put(doc json.RawMessage) error { return d.put("inmem: put", doc, true) }

// Submit implements ops.DocumentCreator.
func (d *Documents) Submit(ctx context.Context, doc json.RawMessage, replace bool) error {
	const op = "inmem: submit"
	if err := ended(ctx, op); err != nil {
		return err
	}
	return d.put(op, doc, replace)
}

func (d *Documents) put(op string, doc json.RawMessage, replace bool) error {
	var members map[string]json.RawMessage
	var compact bytes.Buffer
	err := json.Compact(&compact, doc)
	if err == nil {
		err = json.Unmarshal(compact.Bytes(), &members)
	}
	if err != nil {
		return fault.Wrap(fault.Document, op, "json", "the document is not a JSON object", err)
	}
	var id string
	if err := json.Unmarshal(members["id"], &id); err != nil {
		return fault.Wrap(fault.Document, op, "id", "the document has no text \"id\"", err)
	}
	if id == "" || strings.ContainsAny(id, `/\?#`) {
		return fault.New(fault.Document, op, "id", "id %q is empty or has one of / \\ ? #", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.byID[id]; there && !replace {
		return fault.New(fault.Document, op, "409", "a document with this id exists")
	}
	_, err = d.store(op, id, members)
	return err
}

// Delete deletes a document, as its owner or its time to live does.
func (d *Documents) Delete(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, id)
	delete(d.pending, id)
	d.ids = slices.DeleteFunc(d.ids, func(other string) bool { return other == id })
}

// Read gives one document by id. See commit.Documents.
func (d *Documents) Read(ctx context.Context, id string) (json.RawMessage, error) {
	const op = "inmem: read"
	if err := ended(ctx, op); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	members, ok := d.byID[id]
	if !ok {
		return nil, gone(op, id)
	}
	return encode(members), nil
}

// ReadMany gives the documents that exist among ids, each once. See commit.Documents.
func (d *Documents) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	if err := ended(ctx, "inmem: read many"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var docs []json.RawMessage
	seen := map[string]bool{}
	for _, id := range ids {
		members, ok := d.byID[id]
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		docs = append(docs, encode(members))
	}
	return docs, nil
}

// Window gives the documents of one environment by their _ts, a few at a time. See adopt.Documents.
func (d *Documents) Window(ctx context.Context, sysName string, from, to int64, page func([]json.RawMessage) (more bool, err error)) error {
	const pageSize = 100
	if err := ended(ctx, "inmem: window"); err != nil {
		return err
	}
	found, err := d.between(sysName, from, to)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(found, pageSize) {
		if err := ended(ctx, "inmem: window"); err != nil {
			return err
		}
		if more, err := page(chunk); err != nil || !more {
			return err
		}
	}
	return nil
}

// between lists the documents of a window, in the order of their ids.
func (d *Documents) between(sysName string, from, to int64) ([]json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []json.RawMessage
	for _, id := range d.ids {
		if !d.pending[id].between(sysName, from, to) {
			continue
		}
		found = append(found, encode(d.byID[id]))
	}
	return found, nil
}

// Record sets sql_writer to state if the document still has etag, and answers the new etag. See commit.Documents.
func (d *Documents) Record(ctx context.Context, id, etag string, state invoice.State) (string, error) {
	const op = "inmem: record"
	if err := ended(ctx, op); err != nil {
		return "", err
	}
	value, err := json.Marshal(state)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "marshal", "sql_writer cannot be written as JSON", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	members, ok := d.byID[id]
	if !ok {
		return "", gone(op, id)
	}
	if found := etagOf(members); found != etag {
		return "", &fault.Error{
			Kind: fault.Contention, Condition: fault.Changed, Code: "412", Op: op,
			Reason: fmt.Sprintf("the document is not the one that was read: etag %s, found %s", etag, found),
		}
	}
	changed := make(map[string]json.RawMessage, len(members)+1)
	for name, v := range members {
		changed[name] = v
	}
	changed["sql_writer"] = value
	return d.store(op, id, changed)
}

// store stamps and keeps a document; the caller holds the lock. It answers the new etag.
func (d *Documents) store(op, id string, members map[string]json.RawMessage) (string, error) {
	// Quoted, as Cosmos DB writes them: a comparison of etags needs the quotes.
	etag := fmt.Sprintf("%q", fmt.Sprintf("%08x-0000", d.writes+1))
	quoted, err := json.Marshal(etag)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "marshal", "the etag cannot be written as JSON", err)
	}
	members["_etag"] = quoted
	members["_ts"] = json.RawMessage(fmt.Sprint(d.now().Unix()))
	if doc := encode(members); len(doc) > maxDocument {
		return "", &fault.Error{
			Kind: fault.Document, Condition: fault.TooLarge, Code: "413", Op: op,
			Reason: fmt.Sprintf("the document would have %d bytes, at most %d are allowed", len(doc), maxDocument),
		}
	}
	seen, err := candidateOf(id, members)
	if err != nil {
		return "", err
	}
	if at, found := slices.BinarySearch(d.ids, id); !found {
		d.ids = slices.Insert(d.ids, at, id)
	}
	d.writes++
	d.byID[id], d.pending[id] = members, seen
	return etag, nil
}

// ended answers what a call with an ended context answers everywhere: infrastructure.
func ended(ctx context.Context, op string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Infrastructure, op, "timeout", "no answer within the deadline", err)
	default:
		return fault.Wrap(fault.Infrastructure, op, "cancelled", "the caller gave up", err)
	}
}

func gone(op, id string) error {
	return &fault.Error{Kind: fault.Document, Condition: fault.Gone, Code: "404", Op: op, Reason: fmt.Sprintf("no document %q", id)}
}

func etagOf(members map[string]json.RawMessage) string {
	var etag string
	if err := json.Unmarshal(members["_etag"], &etag); err != nil {
		return ""
	}
	return etag
}

// object gives the members of a value under their exact names; nil when it is no object.
func object(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// text gives a value that is a text, "" for any other.
func text(value json.RawMessage) string {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return ""
	}
	return *s
}

// encode writes a document with its members as they stand, numbers and signs like < included. They are JSON already: an
// Encoder would check them each time, which was a sixth of the time of the simulated worlds.
func encode(members map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	names := json.NewEncoder(&b)
	names.SetEscapeHTML(false)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		b.WriteByte(',')
		_ = names.Encode(name) // a text always can be
		b.Truncate(b.Len() - 1)
		b.WriteByte(':')
		b.Write(members[name])
	}
	b.WriteByte('}')
	if len(members) == 0 {
		return json.RawMessage("{}")
	}
	doc := b.Bytes()
	doc[0] = '{'
	return doc
}
