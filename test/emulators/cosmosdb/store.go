package cosmosdb

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// database has its containers by id. The server's lock guards it.
type database struct {
	id, rid, etag string
	ts            int64
	containers    map[string]*container
}

// container is one container. Its own lock guards everything below mu; what is above is fixed once made,
// but for props, which a replace of the container changes under the lock.
type container struct {
	id, rid, dbID, dbRID string
	pk                   pkDefinition
	now                  func() time.Time

	mu     sync.RWMutex
	props  jsonval.Value // as given at creation, with defaults, without system members
	etag   string
	ts     int64
	ttl    ttlSetting
	ranges []*pkRange         // in the order of their bounds
	slots  map[string]*slot   // by slotKey
	byID   map[string][]*slot // the same slots: an id is unique within a partition key only
	next   uint64             // number of the last document made
}

// ttlSetting is the container's defaultTtl: off, on without a default (-1), or seconds.
type ttlSetting struct {
	on      bool
	seconds int64
}

// pkRange is one physical partition: the documents whose effective partition key lies in [low, high).
type pkRange struct {
	index     int
	low, high string
	lsn       int64
	// parents are the ids of the ranges that it came from by splits, the oldest first.
	parents []string
	// slots are in order of creation; deleted ones stay as holes until they are half of the slice.
	slots []*slot
	holes int
	// feed is the log of writes in LSN order; an entry whose document has moved on is stale.
	feed  []feedEntry
	stale int
}

// id is the name of the range in pkranges and in x-ms-documentdb-partitionkeyrangeid.
func (r *pkRange) id() string { return strconv.Itoa(r.index) }

type feedEntry struct {
	lsn  int64
	slot *slot
}

// slot is the place of one document from its creation to its deletion.
type slot struct {
	number uint64
	key    string
	doc    *document // nil once deleted
}

// document is one version of a document; it never changes.
type document struct {
	id   string
	pk   partitionKey
	epk  string
	raw  string        // what a read returns
	val  jsonval.Value // raw, parsed
	etag string
	ts   int64 // whole seconds
	lsn  int64
	// ttl is the document's own time to live in seconds: 0 = none given, -1 = never expires.
	ttl int64
}

// systemMembers are what the service writes itself; a body's own are dropped.
func systemMembers() []string {
	return []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
}

func slotKey(pk partitionKey, id string) string { return pk.text + "\x00" + id }

// newRange makes the empty ranges of a container.
func newRanges(def pkDefinition, n int) []*pkRange {
	bounds := def.boundaries(n)
	out := make([]*pkRange, n)
	for i := range out {
		out[i] = &pkRange{index: i, low: bounds[i], high: bounds[i+1]}
	}
	return out
}

// rangeOf is the range that an effective partition key belongs to.
func (c *container) rangeOf(epk string) *pkRange {
	for _, r := range c.ranges[:len(c.ranges)-1] {
		if epk < r.high {
			return r
		}
	}
	return c.ranges[len(c.ranges)-1]
}

// get is the live document of a key, nil when there is none or its time to live is over.
func (c *container) get(key string) *document {
	s := c.slots[key]
	if s == nil || s.doc == nil || c.ttl.expired(s.doc, c.now()) {
		return nil
	}
	return s.doc
}

// expired reports whether a document's time to live is over. Its own ttl counts only while the container's
// is on, and a change of the container's default counts for all documents, old ones too.
func (t ttlSetting) expired(d *document, now time.Time) bool {
	seconds := t.seconds
	if d.ttl != 0 {
		seconds = d.ttl
	}
	return t.on && seconds > 0 && now.Unix() >= d.ts+seconds
}

// docRID is the _rid of a document: the container's eight bytes and the document's number.
func (c *container) docRID(number uint64) string {
	head, err := decodeRID(c.rid)
	if err != nil {
		head = make([]byte, 8)
	}
	return encodeRID(binary.LittleEndian.AppendUint64(head, number))
}

// Resource ids are base64 with '-' for '/'.
func encodeRID(b []byte) string {
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", "-")
}

func decodeRID(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.ReplaceAll(s, "-", "/"))
}

// isDatabaseRID reports whether a name has the form of a database's resource id: four bytes. No database with a name of
// that form can be addressed by it.
func isDatabaseRID(name string) bool {
	b, err := decodeRID(name)
	return err == nil && len(b) == 4
}

// newETag is a fresh entity tag: a GUID in double quotes, which are part of it.
func newETag() string { return `"` + newGUID() + `"` }

func newGUID() string {
	a, b := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

// newRID is the first four bytes of a resource id that no other resource has.
func newRID() uint32 { return rand.Uint32() | 1<<24 }

// finish turns a document's content into the version to store: system members written, size and ttl
// checked.
func (c *container) finish(content jsonval.Value, pk partitionKey, number uint64, lsn int64) (*document, *apiError) {
	now := c.now()
	d := &document{
		id: content.Get("id").Text(), pk: pk, epk: c.pk.effective(pk),
		etag: newETag(), ts: now.Unix(), lsn: lsn,
	}
	rid := c.docRID(number)
	full := content.Without(systemMembers()...)
	names, values := []string{}, []jsonval.Value{}
	for n, v := range full.Members() {
		names, values = append(names, n), append(values, v)
	}
	full = jsonval.OfObject(
		append(names, "_rid", "_self", "_etag", "_attachments", "_ts"),
		append(values, jsonval.OfString(rid),
			jsonval.OfString("dbs/"+c.dbRID+"/colls/"+c.rid+"/docs/"+rid+"/"),
			jsonval.OfString(d.etag), jsonval.OfString("attachments/"), jsonval.OfInt(d.ts)))
	return d, d.setContent(full.JSON())
}

// setContent keeps the text and its parsed form, whose strings share it, and reads the ttl.
func (d *document) setContent(raw string) *apiError {
	if len(raw) > MaxDocumentBytes {
		return tooLarge()
	}
	v, err := jsonval.Parse(raw)
	if err != nil {
		return badRequest("The request payload is invalid: %s.", err)
	}
	d.raw, d.val = raw, v
	own := v.Get("ttl")
	if own.IsUndefined() || own.Kind() == jsonval.Null {
		return nil
	}
	n, ok := own.Int()
	if !ok || n == 0 || n < -1 || n > math.MaxInt32 {
		return badRequest(
			"The input ttl '%s' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire.", own.JSON())
	}
	d.ttl = n
	return nil
}

// index makes a new slot known. The caller has the lock.
func (c *container) index(s *slot, d *document) {
	c.slots[s.key] = s
	c.byID[d.id] = append(c.byID[d.id], s)
}

// put makes d the version of its slot and appends it to the feed. The caller has the lock.
func (c *container) put(s *slot, d *document) {
	r := c.rangeOf(d.epk)
	if s.doc == nil {
		c.index(s, d)
		r.slots = append(r.slots, s)
	} else {
		r.stale++
	}
	s.doc = d
	r.feed = append(r.feed, feedEntry{d.lsn, s})
	r.tidy()
}

// drop deletes the document of a slot. The caller has the lock.
func (c *container) drop(s *slot) {
	r, id := c.rangeOf(s.doc.epk), s.doc.id
	s.doc = nil
	delete(c.slots, s.key)
	if c.byID[id] = slices.DeleteFunc(c.byID[id], func(o *slot) bool { return o == s }); len(c.byID[id]) == 0 {
		delete(c.byID, id)
	}
	r.holes++
	r.stale++
	r.tidy()
}

// tidy forgets holes and stale entries once they are the larger half, so that scans stay linear in the
// number of documents and writes stay O(1) on average.
func (r *pkRange) tidy() {
	if r.holes > 64 && r.holes > len(r.slots)/2 {
		r.slots = slices.DeleteFunc(r.slots, func(s *slot) bool { return s.doc == nil })
		r.holes = 0
	}
	if r.stale > 64 && r.stale > len(r.feed)/2 {
		r.feed = slices.DeleteFunc(r.feed, func(e feedEntry) bool { return !e.current() })
		r.stale = 0
	}
}

// current reports whether the entry is the document's latest version.
func (e feedEntry) current() bool { return e.slot.doc != nil && e.slot.doc.lsn == e.lsn }
