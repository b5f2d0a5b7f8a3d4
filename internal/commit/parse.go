package commit

import (
	"encoding/json"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// parser is the first stage: it reads the snapshots of a batch.
type parser struct {
	reader   invoice.Reader
	now      func() time.Time
	delivery Delivery
	sysName  string
	tally    *tally
}

// parse reads the snapshots, and gives the oldest _ts in epoch seconds; 0 without one. An element without an id cannot
// be recorded: its place is logged and it is skipped. A document that occurs twice is taken once, with its newest
// snapshot.
func (p parser) parse(raws []json.RawMessage) (docs []invoice.Snapshot, oldest int64) {
	docs = make([]invoice.Snapshot, 0, len(raws))
	at := make(map[string]int, len(raws))
	for i, raw := range raws {
		d, err := p.read(raw)
		if err != nil {
			p.tally.count("", invoice.OutcomeUnreadable, fault.KindOf(err))
			p.tally.log.Write(events.DocumentUnreadable, events.Fields{Index: i + 1}.Of(err))
			continue
		}
		if p.delivery.Purpose == FromFeed && IsCanary(d, p.sysName) {
			p.tally.passOver(d)
			continue
		}
		if d.TS > 0 && (oldest == 0 || d.TS < oldest) {
			oldest = d.TS
		}
		if j, twice := at[d.Identity()]; twice {
			p.tally.count("", invoice.OutcomeSkipped, "") // OnResult is called for the snapshot that is taken
			if d.TS >= docs[j].TS {
				docs[j] = d
			}
			continue
		}
		at[d.Identity()] = len(docs)
		docs = append(docs, d)
	}
	return docs, oldest
}

// read reads one snapshot. A panic in it must not stop the other documents of the batch.
func (p parser) read(raw json.RawMessage) (d invoice.Snapshot, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.tally.log.Panic("commit: read", events.Fields{}, r)
		}
	}()
	return p.reader.ReadSnapshot(raw, p.now())
}
