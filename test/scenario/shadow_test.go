package scenario

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/commit"
)

// shadow is another app beside the live one: its own leases, so it sees every change; the same container and database.
type shadow struct {
	feed          []*feedRange
	run           func(ctx context.Context, b commit.Delivery) (commit.Report, error)
	looked, wrote int
}

// shadowed starts a shadow.
func (w *world) shadowed() {
	s := &shadow{}
	for range w.feed {
		s.feed = append(s.feed, newFeedRange())
	}
	i := &instance{w: w, name: "shadow", build: build{version: "v1"}}
	s.run = newShadow(i)
	w.mu.Lock()
	w.shadow = s
	w.mu.Unlock()
	for n := range s.feed {
		w.group.Go(func() { w.shadowServe(s, n) })
	}
}

func (w *world) shadowServe(s *shadow, n int) {
	for w.ctx.Err() == nil {
		ids := s.feed[n].take(batchSize)
		if len(ids) == 0 {
			_ = pause(w.ctx, pollDelay)
			continue
		}
		var batch []json.RawMessage
		for _, id := range ids {
			if raw, err := w.docs.Read(w.ctx, id); err == nil {
				batch = append(batch, raw)
			}
		}
		for retry := 0; w.ctx.Err() == nil; retry++ {
			ctx, cancel := context.WithTimeout(w.ctx, deadline)
			_, err := s.run(ctx, commit.Delivery{Documents: batch, Received: time.Now(), RetryCount: retry})
			cancel()
			if err == nil {
				break
			}
			_ = pause(w.ctx, hostPause)
		}
	}
}

// changed puts a document on the feed, and on the shadow's.
func (w *world) changed(rng int, id string) {
	w.feed[rng].changed(id)
	w.mu.Lock()
	s := w.shadow
	w.mu.Unlock()
	if s != nil {
		s.feed[rng].changed(id)
	}
}
