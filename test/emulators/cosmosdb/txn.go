package cosmosdb

import (
	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// txn is a unit of writes to one container: a single operation, or a transactional batch. It sees its own
// writes; nothing is visible to others before commit. The container's write lock is held throughout.
type txn struct {
	c       *container
	rng     *pkRange
	lsn     int64
	changes []change
}

// change is a new version of a document, or its deletion.
type change struct {
	slot *slot
	doc  *document // nil = delete
}

// begin starts a unit of writes in the range of a partition key; all of them get one LSN, as the documents
// of a batch do in the service.
func (c *container) begin(pk partitionKey) *txn {
	rng := c.rangeOf(c.pk.effective(pk))
	return &txn{c: c, rng: rng, lsn: rng.lsn + 1}
}

// get is the document of a key as the unit of writes sees it.
func (t *txn) get(key string) *document {
	for i := len(t.changes) - 1; i >= 0; i-- {
		if t.changes[i].slot.key == key {
			return t.changes[i].doc
		}
	}
	return t.c.get(key)
}

// slotFor is the slot that a new version of a key goes to: a live document's own, else a new one. A slot
// whose document has expired is given up in the same unit.
func (t *txn) slotFor(key string) *slot {
	for i := len(t.changes) - 1; i >= 0; i-- {
		if ch := t.changes[i]; ch.slot.key == key {
			if ch.doc != nil {
				return ch.slot
			}
			return t.newSlot(key)
		}
	}
	if s := t.c.slots[key]; s != nil {
		if !t.c.ttl.expired(s.doc, t.c.now()) {
			return s
		}
		t.changes = append(t.changes, change{slot: s})
	}
	return t.newSlot(key)
}

func (t *txn) newSlot(key string) *slot {
	t.c.next++ // a number that an abandoned unit took is not used again
	return &slot{number: t.c.next, key: key}
}

// write stores new content for a key.
func (t *txn) write(content jsonval.Value, pk partitionKey) (*document, *apiError) {
	s := t.slotFor(slotKey(pk, content.Get("id").Text()))
	d, err := t.c.finish(content, pk, s.number, t.lsn)
	if err != nil {
		return nil, err
	}
	t.changes = append(t.changes, change{s, d})
	return d, nil
}

// remove deletes the document of a key, which get has shown to exist.
func (t *txn) remove(key string) {
	t.changes = append(t.changes, change{slot: t.slotFor(key)})
}

// commit makes the changes visible.
func (t *txn) commit() {
	if len(t.changes) == 0 {
		return
	}
	t.rng.lsn = t.lsn
	for _, ch := range t.net() {
		switch {
		case ch.doc != nil:
			t.c.put(ch.slot, ch.doc)
		case ch.slot.doc != nil:
			t.c.drop(ch.slot)
		}
	}
}

// net is the last change of each slot, in the order of the first changes: new slots stay in the order of
// their numbers, by which pages go on, and a deletion stays ahead of the slot that takes its key over.
func (t *txn) net() []change {
	var out []change
	at := make(map[*slot]int, len(t.changes))
	for _, ch := range t.changes {
		if i, seen := at[ch.slot]; seen {
			out[i] = ch
			continue
		}
		at[ch.slot] = len(out)
		out = append(out, ch)
	}
	return out
}
