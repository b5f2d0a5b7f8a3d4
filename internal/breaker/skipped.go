package breaker

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

const (
	// skippedEvery is the shortest time between two updates of known names in Control.Skipped, and skippedExpiry when
	// one without new documents is dropped.
	skippedEvery  = time.Minute
	skippedExpiry = 7 * 24 * time.Hour
)

// NoteSkipped counts documents of other environments, by SysName; it sets the times. It writes a new name at once, and
// the counts of known ones at most once a minute. A call without documents writes what waits.
func (b *Breaker) NoteSkipped(ctx context.Context, found []Skipped) {
	c, _ := b.shared.cached()
	now := b.o.Now()
	for i := range found {
		found[i].SysName = fault.TruncateLine(found[i].SysName, fault.MaxForeign)
		found[i].Since, found[i].LastAt = now, now
	}
	b.mu.Lock()
	b.skipped = addSkipped(b.skipped, found, now)
	isNew := slices.ContainsFunc(b.skipped, func(s Skipped) bool {
		return !slices.ContainsFunc(c.Skipped, func(k Skipped) bool { return k.SysName == s.SysName })
	})
	wait := skippedEvery
	if isNew {
		wait = noteEvery
	}
	var waiting []Skipped
	if now.Sub(b.skippedAt) >= wait {
		waiting, b.skipped = b.skipped, nil
	}
	if len(waiting) > 0 {
		b.skippedAt = now
	}
	b.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	b.shared.change(context.WithoutCancel(ctx), func(c *Control) bool {
		c.Skipped = addSkipped(c.Skipped, waiting, now)
		return true
	})
}

// addSkipped adds counts, and drops names without documents for a week and the oldest ones beyond eight.
func addSkipped(all, found []Skipped, now time.Time) []Skipped {
	all = slices.DeleteFunc(slices.Clone(all), func(s Skipped) bool { return now.Sub(s.LastAt) > skippedExpiry })
	for _, f := range found {
		at := slices.IndexFunc(all, func(s Skipped) bool { return s.SysName == f.SysName })
		if at < 0 {
			all = append(all, f)
			continue
		}
		all[at].Documents += f.Documents
		if !f.LastAt.Before(all[at].LastAt) {
			all[at].LastAt, all[at].Sample = f.LastAt, f.Sample
		}
	}
	slices.SortStableFunc(all, func(a, b Skipped) int { return b.LastAt.Compare(a.LastAt) })
	return all[:min(len(all), maxNames)]
}
