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

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxDocument is how large a document may be, in bytes: the limit of Cosmos DB (docs/facts.md F68).
const maxDocument = 2 << 20

// Documents is a container of documents in memory, with the partition key /request_details/id. It implements
// commit.Documents and passes the same suite as the Cosmos adapter: etags that change with every write,
// compare-and-set, _ts in whole seconds, the limit of 2 MB. It is safe for concurrent use.
type Documents struct {
	now func() time.Time

	mu sync.Mutex
	// stored holds the members of each document as they were written, undecoded; slots are its keys, sorted. See
	// slotOf.
	stored map[string]map[string]json.RawMessage
	slots  []string
	// states is the index of the searches, so that they need not decode every document.
	states map[string]searched
	// writes numbers the etags.
	writes int64
}

// NewDocuments makes an empty container whose _ts come from now.
func NewDocuments(now func() time.Time) *Documents {
	return &Documents{now: now, stored: map[string]map[string]json.RawMessage{}, states: map[string]searched{}}
}

// Put writes a whole document, new or over an old one, as the programs that produce results do; _etag and _ts are set
// by the container. Errors by kind: document when the text is no object with an id that Cosmos DB accepts; condition
// TooLarge.
func (d *Documents) Put(doc json.RawMessage) error { return d.put("inmem: put", doc, true, true) }

// Submit implements ops.DocumentCreator.
func (d *Documents) Submit(ctx context.Context, doc json.RawMessage, replace bool) error {
	const op = "inmem: submit"
	if err := ended(ctx, op); err != nil {
		return err
	}
	return d.put(op, doc, replace, false)
}

// put writes a document. With twin it may have the id of another one.
func (d *Documents) put(op string, doc json.RawMessage, replace, twin bool) error {
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
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, `/\?#`) {
		return fault.New(fault.Document, op, "id", "id %q is empty, a place, or has one of / \\ ? #", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slot := slotOf(id, members)
	for _, other := range d.slotsOf(id) {
		switch {
		case other != slot && !twin:
			return fault.New(fault.Document, op, commit.CodeIDTwice,
				"a document with this id has another partition key")
		case other == slot && !replace:
			return fault.New(fault.Document, op, "409", "a document with this id exists")
		}
	}
	_, err = d.store(op, id, members)
	return err
}

// slotOf is where a document is: its id, and its partition key as it was written.
func slotOf(id string, members map[string]json.RawMessage) string {
	return id + "\x00" + string(object(members["request_details"])["id"])
}

// slotsOf lists where documents with an id are; the caller holds the lock.
func (d *Documents) slotsOf(id string) []string {
	from, _ := slices.BinarySearch(d.slots, id+"\x00")
	to := from
	for to < len(d.slots) && strings.HasPrefix(d.slots[to], id+"\x00") {
		to++
	}
	return d.slots[from:to]
}

// Delete deletes all documents with an id, as its owner or its time to live does.
func (d *Documents) Delete(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, slot := range slices.Clone(d.slotsOf(id)) {
		d.drop(slot)
	}
}

// DeleteUnder is Delete for the document under one partition key, a JSON value.
func (d *Documents) DeleteUnder(id, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(id + "\x00" + key)
}

func (d *Documents) drop(slot string) {
	delete(d.stored, slot)
	delete(d.states, slot)
	d.slots = slices.DeleteFunc(d.slots, func(other string) bool { return other == slot })
}

// Read gives one document by id. See commit.Documents.
func (d *Documents) Read(ctx context.Context, id string) (json.RawMessage, error) {
	const op = "inmem: read"
	if err := ended(ctx, op); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slots := d.slotsOf(id)
	switch {
	case len(slots) == 0:
		return nil, gone(op, id)
	case len(slots) > 1:
		return nil, fault.New(fault.Document, op, commit.CodeIDTwice, "%d documents have the id %q", len(slots), id)
	}
	return encode(d.stored[slots[0]]), nil
}

// ReadMany gives the documents with the ids, each once. See commit.Documents.
func (d *Documents) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	if err := ended(ctx, "inmem: read many"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var docs []json.RawMessage
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		for _, slot := range d.slotsOf(id) {
			docs = append(docs, encode(d.stored[slot]))
		}
	}
	return docs, nil
}

// Record sets sql_writer to state if the document still has the snapshot's etag, and answers the new etag. See
// commit.Documents.
func (d *Documents) Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	const op = "inmem: record"
	if err := ended(ctx, op); err != nil {
		return "", err
	}
	if doc.JSON() == nil {
		return "", fault.New(fault.Internal, op, fault.CodeBug, "document %s was not read whole", doc.ID)
	}
	id, slot := doc.ID, slotOf(doc.ID, object(doc.JSON()))
	value, err := json.Marshal(state)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, fault.CodeBug, "sql_writer cannot be written as JSON", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	members, ok := d.stored[slot]
	if slots := d.slotsOf(id); !ok && len(slots) == 1 { // it was put anew under another key: its etag decides
		members, ok = d.stored[slots[0]], true
	}
	if !ok {
		return "", gone(op, id)
	}
	if found := etagOf(members); found != doc.ETag {
		return "", &fault.Error{
			Kind: fault.Contention, Condition: fault.Changed, Code: "412", Op: op,
			Reason: fmt.Sprintf("the document is not the one that was read: etag %s, found %s", doc.ETag, found),
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
		return "", fault.Wrap(fault.Internal, op, fault.CodeBug, "the etag cannot be written as JSON", err)
	}
	members["_etag"] = quoted
	slot := slotOf(id, members)
	if before, there := d.stored[slot]; there {
		members["_rid"] = before["_rid"]
	} else {
		members["_rid"] = json.RawMessage(fmt.Sprintf(`"rid%d"`, d.writes+1))
	}
	members["_ts"] = json.RawMessage(fmt.Sprint(d.now().Unix()))
	if doc := encode(members); len(doc) > maxDocument {
		return "", &fault.Error{
			Kind: fault.Document, Condition: fault.TooLarge, Code: "413", Op: op,
			Reason: fmt.Sprintf("the document would have %d bytes, at most %d are allowed", len(doc), maxDocument),
		}
	}
	seen, err := searchedOf(id, members)
	if err != nil {
		return "", err
	}
	if at, found := slices.BinarySearch(d.slots, slot); !found {
		d.slots = slices.Insert(d.slots, at, slot)
	}
	d.writes++
	d.stored[slot], d.states[slot] = members, seen
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
	return &fault.Error{
		Kind: fault.Document, Condition: fault.Gone, Code: "404", Op: op, Reason: fmt.Sprintf("no document %q", id),
	}
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
