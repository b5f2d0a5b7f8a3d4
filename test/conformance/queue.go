package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// QueueHarness has the port under test and the functions that the suite needs around it.
type QueueHarness struct {
	// Queue is the port under test, with no messages.
	Queue run.Queue
	// Messages looks at the same queue. DeadLetter makes dead letters of the first n messages, not through either port.
	Messages   ops.Messages
	DeadLetter func(t testing.TB, n int)
	// Stored gives what the queue has, those that are not due yet too, in the order they came; not through Queue.
	Stored func(t testing.TB) []QueuedMessage
	// Now is the clock that a delay is added to.
	Now func() time.Time
	// Full makes the queue refuse everything, Busy makes it ask to slow down; Down makes it unreachable; LoseAnswers
	// makes it store what it is sent and never say so. Each until Mend, which must leave nothing of it behind.
	Full, Busy, Down, LoseAnswers, Mend func(t testing.TB)
	// Bound is how long a Send may take at most that cannot reach the queue.
	Bound time.Duration
}

// QueuedMessage is a message that a queue has.
type QueuedMessage struct {
	ID   string
	Body []byte
	// Due is when it becomes visible; the zero time or one that has passed means that it is.
	Due time.Time
}

// TestQueue checks an implementation of run.Queue against the port's contract. open makes a new one per test.
func TestQueue(t *testing.T, open func(t *testing.T) QueueHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, QueueHarness)
	}{
		{"messages arrive as they were sent, in their order", messagesArrive},
		{"no messages are no error", noMessages},
		{"a delayed message is there and not yet visible", delayedMessages},
		{"a thousand messages in one call", manyMessages},
		{"messages that do not fit together are sent all the same", largeMessages},
		{"a message that is too large fails alone", tooLargeMessages},
		{"an id that is none fails alone", impossibleIDs},
		{"the caller's bytes remain the caller's", callersBodies},
		{"a full queue is quota, and nothing is stored", fullQueue},
		{"a busy queue is throttled, and nothing is stored", busyQueue},
		{"a queue that is down is infrastructure, in bounded time", downQueue},
		{"an answer that is lost is an error, and a repetition is allowed", lostAnswers},
		{"a send whose context has ended is infrastructure, and the next succeeds", cancelledSend},
		{"a send ends with its context", deadlineOfSend},
		{"of 20 concurrent sends nothing is lost", concurrentSends},
		{"messages are counted by looking at them, and none is taken", countedMessages},
		{"what cannot be counted is an error, in bounded time", uncountedMessages},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// queueMessages makes messages with the ids prefix-1, prefix-2, ...
func queueMessages(prefix string, n int) []run.Outgoing {
	all := make([]run.Outgoing, n)
	for i := range all {
		id := fmt.Sprintf("%s-%d", prefix, i+1)
		all[i] = run.Outgoing{ID: id, Body: []byte(`{"of":"` + id + `"}`)}
	}
	return all
}

// send sends messages that must all be accepted.
func (h QueueHarness) send(t *testing.T, messages ...run.Outgoing) {
	t.Helper()
	errs := h.Queue.Send(t.Context(), messages)
	require.Len(t, errs, len(messages), "one answer for each message")
	for i, m := range messages {
		require.NoError(t, errs[i], m.ID)
	}
}

// holds requires that the queue has these messages and no others, in this order.
func (h QueueHarness) holds(t *testing.T, want ...run.Outgoing) {
	t.Helper()
	got := h.Stored(t)
	ids := func() (all []string) {
		for _, m := range got {
			all = append(all, m.ID)
		}
		return all
	}
	require.Len(t, got, len(want), "%q", ids())
	for i, m := range want {
		require.Equal(t, m.ID, got[i].ID)
		require.True(t, bytes.Equal(m.Body, got[i].Body), "%s: %d bytes that are not the %d sent", m.ID,
			len(got[i].Body), len(m.Body))
	}
}

// fails requires that every message gets an error of the kind.
func (h QueueHarness) fails(t *testing.T, kind fault.Kind, messages []run.Outgoing) {
	t.Helper()
	errs := h.Queue.Send(t.Context(), messages)
	require.Len(t, errs, len(messages), "one answer for each message")
	for i, err := range errs {
		require.Error(t, err, messages[i].ID)
		require.Equal(t, kind, fault.KindOf(err), "%s: %v", messages[i].ID, err)
		require.NoError(t, repeatsBody(err, messages[i]))
	}
}

// repeatsBody finds the content of a message in an error.
func repeatsBody(err error, m run.Outgoing) error {
	if len(m.Body) > 0 && strings.Contains(err.Error(), string(m.Body)) {
		return fmt.Errorf("the error repeats the body of %s", m.ID)
	}
	return nil
}

func messagesArrive(t *testing.T, h QueueHarness) {
	require.Empty(t, h.Stored(t), "the harness sees no messages before there are any")
	odd := run.Outgoing{ID: "batch:1:0:0 \u00fc", Body: []byte("{\"text\":\"\u00fc\U0001f600\"}\r\n\x00\xff")}
	empty := run.Outgoing{ID: strings.Repeat("x", 128)}
	messages := append(queueMessages("m", 3), odd, empty)
	h.send(t, messages...)
	h.holds(t, messages...)
	for _, m := range h.Stored(t) {
		require.False(t, m.Due.After(h.Now()), "%s has no delay", m.ID)
	}
	more := queueMessages("n", 2)
	h.send(t, more[0])
	h.send(t, more[1])
	h.holds(t, append(messages, more...)...)
}

func noMessages(t *testing.T, h QueueHarness) {
	require.Empty(t, h.Queue.Send(t.Context(), nil))
	require.Empty(t, h.Queue.Send(t.Context(), []run.Outgoing{}))
	h.holds(t)
}

func delayedMessages(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 3)
	messages[0].Delay, messages[2].Delay = time.Hour, 90*time.Second
	before := h.Now()
	h.send(t, messages...)
	after := h.Now()
	due := map[string]time.Time{}
	for _, m := range h.Stored(t) {
		due[m.ID] = m.Due
	}
	require.Len(t, due, 3)
	require.False(t, due["m-2"].After(after))
	const rounding = time.Millisecond // of a service that counts them
	for i, delay := range map[int]time.Duration{0: time.Hour, 2: 90 * time.Second} {
		require.WithinRange(t, due[messages[i].ID], before.Add(delay-rounding),
			after.Add(delay+rounding), messages[i].ID)
	}
}

func manyMessages(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 1000)
	h.send(t, messages...)
	h.holds(t, messages...)
}

func largeMessages(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 12)
	for i := range messages {
		messages[i].Body = bytes.Repeat([]byte{byte('a' + i)}, run.MaxBody-i)
	}
	h.send(t, messages...)
	h.holds(t, messages...)
}

func tooLargeMessages(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 5)
	for _, i := range []int{0, 2, 4} {
		messages[i].Body = bytes.Repeat([]byte("x"), run.MaxBody+1)
	}
	errs := h.Queue.Send(t.Context(), messages)
	require.Len(t, errs, 5)
	for i, err := range errs {
		if i%2 == 1 {
			require.NoError(t, err, "its neighbours go on")
			continue
		}
		require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
		require.Equal(t, "too_large", fault.CodeOf(err))
		require.NoError(t, repeatsBody(err, messages[i]))
	}
	h.holds(t, messages[1], messages[3])
}

func impossibleIDs(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 3)
	messages[0].ID, messages[2].ID = "", strings.Repeat("x", 129)
	errs := h.Queue.Send(t.Context(), messages)
	require.Len(t, errs, 3)
	require.Equal(t, fault.Internal, fault.KindOf(errs[0]), "%v", errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, fault.Internal, fault.KindOf(errs[2]), "%v", errs[2])
	h.holds(t, messages[1])
}

func callersBodies(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 2)
	kept := []byte(string(messages[0].Body))
	h.send(t, messages...)
	copy(messages[0].Body, "changed")
	require.Equal(t, kept, h.Stored(t)[0].Body)
	require.NotEqual(t, kept, messages[0].Body)
}

func fullQueue(t *testing.T, h QueueHarness) {
	first, second := queueMessages("a", 1), queueMessages("b", 3)
	h.send(t, first...)
	h.Full(t)
	h.fails(t, fault.Quota, second)
	h.fails(t, fault.Quota, second)
	h.holds(t, first...)
	h.Mend(t)
	h.send(t, second...)
	h.holds(t, append(first, second...)...)
}

func busyQueue(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 3)
	h.Busy(t)
	h.fails(t, fault.Throttled, messages)
	h.holds(t)
	h.Mend(t)
	h.send(t, messages...)
	h.holds(t, messages...)
}

func downQueue(t *testing.T, h QueueHarness) {
	first, second := queueMessages("a", 2), queueMessages("b", 2)
	h.send(t, first...)
	h.Down(t)
	for range 2 {
		began := time.Now()
		h.fails(t, fault.Infrastructure, second)
		require.Less(t, time.Since(began), h.Bound)
	}
	h.Mend(t)
	h.send(t, second...)
	h.holds(t, append(first, second...)...)
}

func lostAnswers(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 3)
	h.LoseAnswers(t)
	began := time.Now()
	h.fails(t, fault.Infrastructure, messages)
	require.Less(t, time.Since(began), h.Bound)
	require.NotEmpty(t, h.Stored(t), "the harness stores what it is sent")
	h.Mend(t)
	h.send(t, messages...)
	seen := map[string]bool{}
	for _, m := range h.Stored(t) {
		seen[m.ID] = true
	}
	require.Len(t, seen, len(messages), "each once or more")
}

func cancelledSend(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 2)
	ctx := lateContext(t)
	for i, err := range h.Queue.Send(ctx, messages) {
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s: %v", messages[i].ID, err)
	}
	h.holds(t)
	h.send(t, messages...)
	h.holds(t, messages...)
}

func deadlineOfSend(t *testing.T, h QueueHarness) {
	messages := queueMessages("m", 2)
	h.Down(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	for i, err := range h.Queue.Send(ctx, messages) {
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s: %v", messages[i].ID, err)
	}
	require.Less(t, time.Since(began), 5*time.Second)
	h.Mend(t)
	h.send(t, messages...)
}

func concurrentSends(t *testing.T, h QueueHarness) {
	const senders, each = 20, 15
	answers, _ := atOnce(senders, func(i int) ([]error, error) {
		return h.Queue.Send(t.Context(), queueMessages(fmt.Sprintf("s%d", i), each)), nil
	})
	for _, errs := range answers {
		require.Len(t, errs, each)
		require.NoError(t, errors.Join(errs...))
	}
	seen := map[string]int{}
	for _, m := range h.Stored(t) {
		seen[m.ID]++
	}
	require.Len(t, seen, senders*each)
}

func countedMessages(t *testing.T, h QueueHarness) {
	count := func(most int, active, dead ops.Count) {
		t.Helper()
		a, d, err := h.Messages.Count(t.Context(), most)
		require.NoError(t, err)
		for _, c := range []*ops.Count{&a, &d} {
			require.Equal(t, c.Documents == 0, c.Since.IsZero())
			c.Since = time.Time{}
		}
		require.Equal(t, []ops.Count{active, dead}, []ops.Count{a, d})
	}
	count(10, ops.Count{}, ops.Count{})
	messages := queueMessages("m", 300) // more than one look
	messages[0].Delay = time.Hour
	h.send(t, messages...)
	count(1000, ops.Count{Documents: 299}, ops.Count{})
	h.DeadLetter(t, 2)
	for range 2 {
		count(1000, ops.Count{Documents: 297}, ops.Count{Documents: 2})
	}
	active, _, err := h.Messages.Count(t.Context(), 2)
	require.NoError(t, err)
	require.True(t, active.AtLeast && active.Documents <= 2, "two were looked at")
	require.Len(t, h.Stored(t), 298)
}

func uncountedMessages(t *testing.T, h QueueHarness) {
	_, _, err := h.Messages.Count(lateContext(t), 10)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	h.Down(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err = h.Messages.Count(ctx, 10)
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	require.Less(t, time.Since(began), 5*time.Second)
	h.Mend(t)
	_, _, err = h.Messages.Count(t.Context(), 10)
	require.NoError(t, err)
}
