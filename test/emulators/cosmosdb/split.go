package cosmosdb

import (
	"fmt"
	"slices"
)

// Split divides a range of a container at the middle of its hashes, as the service does when a range grows, and gives
// the ids of the two children. From then on the parent answers 410 with substatus 1002, and continuations of its feed
// and of queries go on in the children. Errors: no such container or range, a range too narrow to divide.
func (s *Server) Split(database, containerID, rangeID string) (children []string, err error) {
	c, apiErr := s.container(database, containerID)
	if apiErr != nil {
		return nil, fmt.Errorf("cosmosdb: there is no container %q in database %q", containerID, database)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rangeByID(rangeID)
	if r == nil {
		return nil, fmt.Errorf("cosmosdb: container %q has no range %q", containerID, rangeID)
	}
	at, ok := c.pk.middle(r.low, r.high)
	if !ok {
		return nil, fmt.Errorf("cosmosdb: range %q of container %q is too narrow to divide", rangeID, containerID)
	}
	for _, child := range c.split(r, at) {
		children = append(children, child.id())
	}
	return children, nil
}

// split puts two ranges in the place of r. They go on with its LSN, so that a continuation of r is behind the same
// writes in both. The caller has the lock.
func (c *container) split(r *pkRange, at string) []*pkRange {
	next := c.nextRange()
	parents := append(slices.Clone(r.parents), r.id())
	low := &pkRange{index: next, low: r.low, high: at, lsn: r.lsn, parents: parents}
	high := &pkRange{index: next + 1, low: at, high: r.high, lsn: r.lsn, parents: parents}
	half := func(s *slot) *pkRange {
		if s.doc.epk < at {
			return low
		}
		return high
	}
	for _, s := range r.slots {
		if s.doc != nil {
			half(s).slots = append(half(s).slots, s)
		}
	}
	for _, e := range r.feed {
		if e.current() {
			half(e.slot).feed = append(half(e.slot).feed, e)
		}
	}
	i := slices.Index(c.ranges, r)
	c.ranges = slices.Replace(slices.Clone(c.ranges), i, i+1, low, high)
	return []*pkRange{low, high}
}

// nextRange is the number of the next range made: the last two ranges made are always there.
func (c *container) nextRange() int {
	next := 0
	for _, r := range c.ranges {
		next = max(next, r.index+1)
	}
	return next
}

// middle is the bound that halves a range; ok is false when there is none in between.
func (d pkDefinition) middle(low, high string) (at string, ok bool) {
	from, to := d.position(low), d.position(high)
	half := (to - from) / 2
	return d.bound(from + half), half > 0
}
