package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// ReplyLoser is a sink whose acknowledgement of a write can be lost after the work is done: for implementations without
// a wire. Where there is one, a harness cuts the wire instead. It is safe for concurrent use.
type ReplyLoser struct {
	commit.Sink
	lose atomic.Bool
}

// LoseReply makes the next write that succeeds answer infrastructure.
func (l *ReplyLoser) LoseReply(testing.TB) { l.lose.Store(true) }

// Apply implements commit.Sink.
func (l *ReplyLoser) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	out, err := l.Sink.Apply(ctx, items, mode, known)
	if err == nil && mode != commit.Preview && l.lose.CompareAndSwap(true, false) {
		return nil,
			fault.New(fault.Infrastructure, "conformance: apply", "reply_lost",
				"the write is committed, and the reply is lost")
	}
	return out, err
}

// replyCases: the work was done and the answer was lost. The same request again returns the stored outcome.
func replyCases() []sinkCase {
	lose := []string{"LoseReply"}
	return []sinkCase{
		{"lost acknowledgement: the same request again answers unchanged", lose, lostReply},
		{
			"lost acknowledgement: no row is written a second time",
			[]string{"LoseReply", "CountWrites"},
			lostReplyCounted,
		},
		{"lost acknowledgement of a request with every outcome in it", lose, lostReplyOfMixed},
		{"lost acknowledgement, then a newer result: superseded", lose, lostReplyThenNewer},
		{"lost acknowledgement, then a person's correction: it stays", lose, lostReplyThenEdit},
	}
}

// loses makes a request whose acknowledgement is lost.
func (s *sinkTest) loses(items ...commit.Item) {
	s.Helper()
	s.h.LoseReply(s)
	s.fails(fault.Infrastructure, commit.Write, items...)
}

func lostReply(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 3)
	s.loses(a, b)
	s.holds(a)
	s.holds(b)
	s.givesIn(commit.Write, []string{"unchanged(unchanged unchanged)", "unchanged(unchanged)"}, a, b)
	s.holds(a)
	s.holds(b)
}

func lostReplyCounted(s *sinkTest) {
	s.h.AddLines(s, 1)
	writes := s.h.CountWrites(s)
	a := doc("a", 10, 5, "x", 1)
	s.loses(a)
	for range 3 {
		s.gives(a, "unchanged(unchanged)")
	}
	detail, tracking := writes(1)
	require.Equal(s, []int{1, 1}, []int{detail, tracking})
}

func lostReplyOfMixed(s *sinkTest) {
	items := s.mixed()
	foretold := s.apply(commit.Preview, items...)
	s.loses(items...)
	for i, o := range s.apply(commit.Write, items...) {
		want := inShort(foretold[i])
		if !items[i].FailureMark { // a mark has no content to be recognised by: it is written again
			want = strings.ReplaceAll(want, "applied", "unchanged")
		}
		require.Equal(s, want, inShort(o), items[i].DocumentID)
	}
}

func lostReplyThenNewer(s *sinkTest) {
	s.h.AddLines(s, 1)
	a, newer := doc("a", 10, 5, "x", 1), doc("new", 11, 5, "y", 1)
	s.loses(a)
	s.gives(newer, "applied(applied)")
	require.Equal(s, "new", s.gives(a, "superseded(superseded)").SupersededBy)
	s.holds(newer)
}

func lostReplyThenEdit(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.loses(a)
	edited := s.edit(1)
	s.gives(a, "unchanged(unchanged)")
	require.Equal(s, edited, s.h.Row(s, 1))
}
