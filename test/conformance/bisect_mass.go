package conformance

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// massCases: many documents that fail alike.
func massCases() []sinkCase {
	return []sinkCase{
		{
			"bisect: a column made NOT NULL in mid-drain stops nothing and is proof of nothing",
			[]string{"NotNull"},
			notNullInMidDrain,
		},
		{
			"bisect: a column narrowed in mid-drain fails the documents that do not fit, until it is wide again",
			[]string{"Narrow"},
			narrowedInMidDrain,
		},
		{"bisect: 100 bad documents among 400 good ones stop nothing", []string{"Refuse"}, manyBadOnes},
	}
}

func notNullInMidDrain(s *sinkTest) {
	const total, batch, before = 500, 100, 200
	b := newBisect(s, total)
	list := papers(total)
	b.put(list...)
	require.NoError(b, b.offer(0, list[:batch]...))
	require.NoError(b, b.offer(0, list[batch:before]...))
	restore := s.h.NotNull(s)
	for hour := range 8 {
		b.clock = b.clock.Add(time.Hour)
		for from := before; from < total; from += batch {
			require.NoError(b, b.offerAs(commit.FromTimer, list[from:from+batch]...), "the feed goes on")
		}
		for _, p := range list[before:] {
			st := b.read(p).State
			require.Equal(b, []any{invoice.RetryScheduled, min(hour+1, commit.MaxRetries), hour >= commit.MaxRetries},
				[]any{st.Status, st.RetryCount, st.Postponed}, "%s in hour %d", p.id(), hour)
		}
	}
	restore()
	b.clock = b.clock.Add(2 * time.Hour)
	for from := before; from < total; from += batch {
		require.NoError(b, b.offerAs(commit.FromTimer, list[from:from+batch]...))
	}
	for i, p := range list {
		require.Equal(b, invoice.Committed, b.read(p).State.Status, "document %d", i)
	}
}

func narrowedInMidDrain(s *sinkTest) {
	const total, batch, to = 300, 100, 20
	b := newBisect(s, total)
	list := papers(total)
	wide := []*paper{&list[150], &list[250]}
	for _, p := range wide {
		p.name = strings.Repeat("x", to+1)
	}
	b.put(list...)
	require.NoError(b, b.offer(0, list[:batch]...))
	widen := s.h.Narrow(s, to)
	for from := batch; from < total; from += batch {
		b.requests.taken()
		require.NoError(b, b.offer(0, list[from:from+batch]...))
		taken := b.requests.taken()
		s.Logf("%d requests", taken)
		require.LessOrEqual(b, taken, mostRequests(batch, 1))
	}
	for _, p := range wide {
		b.blamed(*p)
	}
	widen()
	b.clock = b.clock.Add(time.Hour)
	require.NoError(b, b.offerAs(commit.FromTimer, *wide[0], *wide[1]))
	for i, p := range list {
		require.Equal(b, invoice.Committed, b.read(p).State.Status, "document %d", i)
	}
}

func manyBadOnes(s *sinkTest) {
	const total, batch = 500, 100
	b := newBisect(s, total)
	s.h.Refuse(s, refusedName)
	list := papers(total)
	bad := map[int]bool{}
	for i := range total {
		if i%5 == 2 && i < 250 || i >= 300 && i < 350 { // scattered, and one block of 50
			list[i].name, bad[i] = refusedName, true
		}
	}
	require.Len(b, bad, 100)
	b.put(list...)
	for from := 0; from < total; from += batch {
		require.NoError(b, b.offer(0, list[from:from+batch]...))
	}
	for i, p := range list {
		d := b.read(p)
		if bad[i] {
			require.Equal(b, b.clock.Unix()+132, b.blamed(p).RetryAfter, "2 minutes plus half of 20 %%")
		} else {
			require.Equal(b, invoice.Committed, d.State.Status, "%s", p.id())
		}
	}
}
