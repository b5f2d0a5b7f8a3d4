package conformance

import (
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// bisectCases: what the use case makes of a database that names no document.
func bisectCases() []sinkCase {
	refuse, constrain := []string{"Refuse"}, []string{"Constrain"}
	cases := []sinkCase{
		{"bisect: a clean batch of 100 is one request", nil, badOnes(100)},
		{"bisect: one bad document, the first of 100", refuse, badOnes(100, 0)},
		{"bisect: one bad document, in the middle of 100", refuse, badOnes(100, 50)},
		{"bisect: one bad document, the last of 100", refuse, badOnes(100, 99)},
		{"bisect: 3 bad documents of 100, far from each other", refuse, badOnes(100, 7, 49, 91)},
		{"bisect: 3 bad documents of 100, side by side", refuse, badOnes(100, 49, 50, 51)},
		{"bisect: all of 19 bad", refuse, badOnes(19, places(19)...)},
		{"bisect: a bad document alone", refuse, badOnes(1, 0)},
		{"bisect: a bad document that is mended is written", refuse, mendedIsWritten},
		{"bisect: two documents on one line, the newer one bad: the older one is written", refuse, newerBad},
		{
			"bisect: two documents on one line, the newer one missing a row: the older one is written", nil,
			newerLacksRow,
		},
		{"bisect: two documents on one line, the newer one good: the older one is superseded", nil, newerIsGood},
		{"bisect: a bad document beside a newer good one on its line", refuse, olderBad},
		{
			"bisect: a tracking row from somebody in between costs one more request and blames nobody",
			[]string{"During"},
			trackingFromSomebody,
		},
		{"bisect: a unique index of the user's is the document's that breaks it", constrain, uniqueIsTheDocuments},
		{"bisect: a foreign key of the user's is the document's that breaks it", constrain, ruledDocument(ForeignKey)},
		{
			"bisect: a trigger of the user's that rolls back is the document's that meets it", constrain,
			ruledDocument(TriggerRollsBack),
		},
		{
			"bisect: a missing table costs no document a retry, and all are written when it is back",
			[]string{"Hide"},
			missingTable,
		},
		{
			"bisect: a lost acknowledgement ends with every document recorded and written once",
			[]string{"LoseReply", "CountWrites"},
			lostReplyOfBatch,
		},
		{"bisect: a document on a locked line waits alone, uncounted", []string{"Lock", "RowLocks"}, lockedDocument},
	}
	for _, c := range cases {
		cases = append(cases, sinkCase{c.name + " (four parts at once)", c.needs, func(s *sinkTest) {
			s.partsAtOnce = 4
			c.run(s)
		}})
	}
	return append(cases, massCases()...)
}

// places are 0 to n-1.
func places(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// badOnes is a case: n documents of a line each, those at some places refused by the database.
func badOnes(n int, bad ...int) func(*sinkTest) {
	return func(s *sinkTest) {
		b := newBisect(s, n)
		list := papers(n)
		if len(bad) > 0 {
			s.h.Refuse(s, refusedName)
		}
		isBad := map[int]bool{}
		for _, i := range bad {
			isBad[i], list[i].name = true, refusedName
		}
		requests := b.run(list...)
		for i, p := range list {
			if isBad[i] {
				b.blamed(p)
			} else {
				b.committed(p, invoice.OutcomeApplied)
			}
		}
		s.Logf("%d requests", requests)
		require.LessOrEqual(s, requests, mostRequests(n, len(bad)), "%d bad of %d", len(bad), n)
	}
}

func mendedIsWritten(s *sinkTest) {
	b := newBisect(s, 4)
	s.h.Refuse(s, refusedName)
	list := papers(4)
	list[2].name = refusedName
	b.run(list...)
	b.blamed(list[2])
	list[2].name = "mended"
	require.Equal(s, 1, b.run(list[2]))
	b.committed(list[2], invoice.OutcomeApplied)
}

// pairs tries a batch of 8 in which two documents want one line. The two stand where halving parts them early and late,
// in either order, each time on lines of their own.
func pairs(s *sinkTest, change func(older, newer *paper), holds func(b *bisect, older, newer paper, requests int)) {
	const size = 8
	arrangements := [][2]int{{0, 7}, {7, 0}, {4, 5}, {5, 4}}
	b := newBisect(s, len(arrangements)*size)
	for n, at := range arrangements {
		list := papers(size)
		for i := range list {
			list[i].line = int64(n*size + i + 1)
		}
		older, newer := &list[at[0]], &list[at[1]]
		older.minute, newer.minute = 20, 30
		older.line, newer.line = int64(n*size+1+min(at[0], at[1])), int64(n*size+1+min(at[0], at[1]))
		change(older, newer)
		requests := b.run(list...)
		holds(b, *older, *newer, requests)
		for i, p := range list {
			if i != at[0] && i != at[1] {
				b.committed(p, invoice.OutcomeApplied)
			}
		}
	}
}

func newerBad(s *sinkTest) {
	s.h.Refuse(s, refusedName)
	pairs(s, func(_, newer *paper) { newer.name = refusedName }, func(b *bisect, older, newer paper, requests int) {
		b.blamed(newer)
		b.committed(older, invoice.OutcomeApplied)
		require.LessOrEqual(s, requests, mostRequests(8, 1))
		newer.name = "mended"
		b.run(newer)
		b.committed(newer, invoice.OutcomeApplied)
	})
}

func newerLacksRow(s *sinkTest) {
	pairs(s, func(_, newer *paper) {
		newer.duplicates = []int64{9999}
	}, func(b *bisect, older, newer paper, requests int) {
		require.Contains(s, b.blamed(newer).LastError, "9999", "the document says which line")
		b.committed(older, invoice.OutcomeApplied)
		require.Equal(s, 1, requests, "the database says whose it is")
	})
}

func newerIsGood(s *sinkTest) {
	pairs(s, func(_, _ *paper) {}, func(b *bisect, older, newer paper, requests int) {
		b.committed(newer, invoice.OutcomeApplied)
		b.supersededBy(older, newer)
		require.Equal(s, 1, requests)
	})
}

func olderBad(s *sinkTest) {
	s.h.Refuse(s, refusedName)
	pairs(s, func(older, _ *paper) { older.name = refusedName }, func(b *bisect, older, newer paper, requests int) {
		b.committed(newer, invoice.OutcomeApplied)
		b.supersededBy(older, newer)
		require.Equal(s, 1, requests, "what is not written is not refused")
	})
}

func trackingFromSomebody(s *sinkTest) {
	b := newBisect(s, 8)
	list := papers(8)
	s.h.During(s, StepTrackingUpdate, func(in Inside) { require.NoError(s, in.AddTracking(5)) })
	require.Equal(s, 2, b.run(list...), "the whole request once more")
	for _, p := range list {
		b.committed(p, invoice.OutcomeApplied)
	}
}

func uniqueIsTheDocuments(s *sinkTest) {
	b := newBisect(s, 8)
	s.h.Constrain(s, invoice.Tracking, Unique)
	list := papers(8)
	for i := range list {
		list[i].code = string(rune('1' + i))
	}
	list[6].code = list[1].code
	const again = 2 // the whole request is tried three times, its parts once
	require.LessOrEqual(s, b.run(list...), mostRequests(8, 1)+again)
	blamed := 6 // the earlier one of the two is written first
	if s.partsAtOnce > 1 && b.read(list[1]).State.Status != invoice.Committed {
		blamed = 1 // either may be the first
	}
	for i, p := range list {
		if i == blamed {
			b.blamed(p)
		} else {
			b.committed(p, invoice.OutcomeApplied)
		}
	}
}

// ruledDocument is a case: one document of 8 breaks a rule of the user's.
func ruledDocument(rule Rule) func(*sinkTest) {
	return func(s *sinkTest) {
		b := newBisect(s, 8)
		s.h.Constrain(s, invoice.Detail, rule)
		list := papers(8)
		list[3].code = RefusedCode
		require.LessOrEqual(s, b.run(list...), mostRequests(8, 1))
		for i, p := range list {
			if i == 3 {
				b.blamed(p)
			} else {
				b.committed(p, invoice.OutcomeApplied)
			}
		}
	}
}

func missingTable(s *sinkTest) {
	b := newBisect(s, 8)
	list := papers(8)
	b.put(list...)
	restore := s.hide(invoice.Tracking, "")
	require.NoError(s, b.offer(0, list...))
	for _, p := range list {
		st := b.read(p).State
		require.Equal(s, []any{invoice.RetryScheduled, 0, string(fault.Infrastructure), false},
			[]any{st.Status, st.RetryCount, st.LastErrorKind, st.Postponed},
			"put off: the database answers, and nobody is charged")
	}
	b.clock = b.clock.Add(time.Minute)
	late := paper{minute: 8, line: 8, name: "maker", code: AllowedCode}
	b.put(late)
	require.NoError(s, b.offer(0, late), "so few failures are no outage yet")
	restore()
	b.clock = b.clock.Add(10 * time.Minute)
	require.NoError(s, b.offerAs(commit.FromTimer, append(list[:7:7], late)...))
	for _, p := range list[:7] {
		b.committed(p, invoice.OutcomeApplied)
	}
}

func lostReplyOfBatch(s *sinkTest) {
	b := newBisect(s, 8)
	list := papers(8)
	b.put(list...)
	before := b.texts(list)
	writes := s.h.CountWrites(s)
	s.h.LoseReply(s)
	// Where the adapter says that the connection broke while the database answers others, the same request is made
	// again at once.
	if err := b.offer(0, list...); err != nil {
		require.True(s, fault.IsDependency(err), "%v", err)
		require.Equal(s, before, b.texts(list), "nothing is recorded of what nobody knows")
		require.NoError(s, b.offer(1, list...))
	}
	for _, p := range list {
		b.committed(p, invoice.OutcomeUnchanged)
		detail, tracking := writes(p.line)
		require.Equal(s, []int{1, 1}, []int{detail, tracking})
	}
}

func lockedDocument(s *sinkTest) {
	b := newBisect(s, 2)
	list := papers(2)
	unlock := s.lock(list[1].line)
	b.run(list...)
	unlock()
	b.committed(list[0], invoice.OutcomeApplied)
	st := b.read(list[1]).State
	require.Equal(s, []any{invoice.RetryScheduled, 0, string(fault.Contention)},
		[]any{st.Status, st.RetryCount, st.LastErrorKind})
	b.unwritten(list[1])
	b.clock = time.Unix(st.RetryAfter, 0)
	require.NoError(s, b.offerAs(commit.FromTimer, list[1]))
	b.committed(list[1], invoice.OutcomeApplied)
}
