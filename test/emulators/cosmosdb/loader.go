package cosmosdb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// loader turns journal records back into the server's state.
type loader struct {
	server *Server
	byRID  map[string]*loading
}

// loading is a container with its documents by number.
type loading struct {
	c       *container
	numbers map[uint64]*slot
}

var errBadRecord = errors.New("not a record of this emulator")

func (l *loader) apply(text string) error {
	rec, err := jsonval.Parse(text)
	if err != nil {
		return err
	}
	switch kind := rec.Get("t").Text(); kind {
	case recDatabase:
		ts, _ := rec.Get("ts").Int()
		l.server.databases[rec.Get("id").Text()] = &database{
			id: rec.Get("id").Text(), rid: rec.Get("rid").Text(), etag: rec.Get("etag").Text(), ts: ts,
			containers: map[string]*container{},
		}
		return nil
	case recDropDatabase:
		if db := l.server.databases[rec.Get("id").Text()]; db != nil {
			for _, c := range db.containers {
				delete(l.byRID, c.rid)
			}
			delete(l.server.databases, db.id)
		}
		return nil
	case recContainer, recReplaceContainer, recDropContainer:
		return l.container(kind, rec)
	case recDocuments:
		return l.documents(rec)
	case recSplit:
		return l.split(rec)
	default:
		return fmt.Errorf("%w: type %q", errBadRecord, kind)
	}
}

func (l *loader) container(kind string, rec jsonval.Value) error {
	db := l.server.databases[rec.Get("db").Text()]
	if db == nil {
		return fmt.Errorf("%w: container of an unknown database %q", errBadRecord, rec.Get("db").Text())
	}
	id, rid := rec.Get("id").Text(), rec.Get("rid").Text()
	if kind == recDropContainer {
		if c := db.containers[id]; c != nil {
			delete(l.byRID, c.rid)
			delete(db.containers, id)
		}
		return nil
	}
	if kind == recReplaceContainer {
		old := db.containers[id]
		if old == nil {
			return fmt.Errorf("%w: unknown container %q", errBadRecord, id)
		}
		if e := old.setProps(rec.Get("props")); e != nil {
			return e
		}
		old.etag = rec.Get("etag").Text()
		old.ts, _ = rec.Get("ts").Int()
		return nil
	}
	c, e := l.server.newContainer(db, id, rid, rec.Get("props"))
	if e != nil {
		return e
	}
	c.etag = rec.Get("etag").Text()
	c.ts, _ = rec.Get("ts").Int()
	next, _ := rec.Get("next").Int()
	c.next = uint64(next)
	for _, v := range rec.Get("ranges").Elements() {
		index, _ := v.Get("r").Int()
		r := &pkRange{index: int(index), low: v.Get("low").Text(), high: v.Get("high").Text()}
		r.lsn, _ = v.Get("lsn").Int()
		for _, p := range v.Get("parents").Elements() {
			r.parents = append(r.parents, p.Text())
		}
		c.ranges = append(c.ranges, r)
	}
	if len(c.ranges) == 0 {
		return fmt.Errorf("%w: container %q has no ranges", errBadRecord, id)
	}
	db.containers[id] = c
	l.byRID[rid] = &loading{c: c, numbers: map[uint64]*slot{}}
	return nil
}

func (l *loader) documents(rec jsonval.Value) error {
	in, r, err := l.rangeOf(rec)
	if err != nil {
		return err
	}
	lsn, ok := rec.Get("lsn").Int()
	if !ok {
		return fmt.Errorf("%w: lsn %s", errBadRecord, rec.Get("lsn").JSON())
	}
	r.lsn = max(r.lsn, lsn)
	for _, n := range rec.Get("del").Elements() {
		number, _ := n.Int()
		delete(in.numbers, uint64(number))
	}
	for _, p := range rec.Get("put").Elements() {
		number, _ := p.Get("n").Int()
		d, e := in.c.restore(p.Get("doc"), lsn)
		if e != nil {
			return e
		}
		in.c.next = max(in.c.next, uint64(number))
		in.numbers[uint64(number)] = &slot{number: uint64(number), key: slotKey(d.pk, d.id), doc: d}
	}
	return nil
}

func (l *loader) split(rec jsonval.Value) error {
	in, r, err := l.rangeOf(rec)
	if err == nil {
		in.c.split(r, rec.Get("at").Text())
	}
	return err
}

// rangeOf is the container and the range that a record names.
func (l *loader) rangeOf(rec jsonval.Value) (*loading, *pkRange, error) {
	in := l.byRID[rec.Get("c").Text()]
	if in == nil {
		return nil, nil, fmt.Errorf("%w: unknown container %q", errBadRecord, rec.Get("c").Text())
	}
	r := in.c.rangeByID(rec.Get("r").JSON())
	if r == nil {
		return nil, nil, fmt.Errorf("%w: unknown range %s", errBadRecord, rec.Get("r").JSON())
	}
	return in, r, nil
}

// restore makes a stored document from its record in the journal.
func (c *container) restore(content jsonval.Value, lsn int64) (*document, error) {
	pk, e := c.pk.of(content)
	if e != nil {
		return nil, e
	}
	d := &document{
		id: content.Get("id").Text(), pk: pk, epk: c.pk.effective(pk), etag: content.Get("_etag").Text(), lsn: lsn,
	}
	d.ts, _ = content.Get("_ts").Int()
	if e := d.setContent(content.JSON()); e != nil {
		return nil, e
	}
	return d, nil
}

// finish puts the documents into their ranges, in the order of their creation, and the feed in LSN order.
func (l *loader) finish() {
	for _, in := range l.byRID {
		for _, s := range in.numbers {
			r := in.c.rangeOf(s.doc.epk)
			in.c.index(s, s.doc)
			r.slots = append(r.slots, s)
			r.feed = append(r.feed, feedEntry{s.doc.lsn, s})
		}
		for _, r := range in.c.ranges {
			slices.SortFunc(r.slots, func(a, b *slot) int { return cmp.Compare(a.number, b.number) })
			slices.SortFunc(r.feed, func(a, b feedEntry) int {
				return cmp.Or(cmp.Compare(a.lsn, b.lsn), cmp.Compare(a.slot.number, b.slot.number))
			})
		}
	}
}
