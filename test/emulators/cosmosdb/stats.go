package cosmosdb

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Stat counts the requests of one kind to one container.
type Stat struct {
	Op        Op     `json:"op"`
	Container string `json:"container"`
	Requests  int    `json:"requests"`
	// Statuses counts them by HTTP status; 0 is a connection that a fault cut.
	Statuses map[int]int `json:"statuses"`
}

type statKey struct {
	op        Op
	container string
}

type stats struct {
	mu     sync.Mutex
	counts map[statKey]map[int]int
}

func newStats() *stats { return &stats{counts: map[statKey]map[int]int{}} }

func (s *stats) count(op Op, container string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := statKey{op, container}
	if s.counts[key] == nil {
		s.counts[key] = map[int]int{}
	}
	s.counts[key][status]++
}

// Stats are the counters since the start or the last ResetStats, by container and kind. A request is
// counted when it is answered, just before the answer is written.
func (s *Server) Stats() []Stat {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	out := make([]Stat, 0, len(s.stats.counts))
	for key, statuses := range s.stats.counts {
		stat := Stat{Op: key.op, Container: key.container, Statuses: maps.Clone(statuses)}
		for _, n := range statuses {
			stat.Requests += n
		}
		out = append(out, stat)
	}
	slices.SortFunc(out, func(a, b Stat) int {
		return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Op, b.Op))
	})
	return out
}

// Count is the number of answered requests of a kind to a container; an empty container counts all.
func (s *Server) Count(op Op, container string) int {
	n := 0
	for _, stat := range s.Stats() {
		if stat.Op == op && (container == "" || stat.Container == container) {
			n += stat.Requests
		}
	}
	return n
}

// ResetStats sets all counters to zero.
func (s *Server) ResetStats() {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	clear(s.stats.counts)
}
