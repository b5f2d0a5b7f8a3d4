package inmem

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Queue keeps messages in memory. It implements run.Queue, gives the messages that are due (Take), and can be made to
// fail. It is safe for concurrent use.
type Queue struct {
	now func() time.Time

	mu       sync.Mutex
	messages []QueuedMessage
	sequence int64
	// window is for how long an ID is known; 0 means that duplicates come twice. seen says until when each is.
	window time.Duration
	// dead counts the dead letters.
	dead   ops.Count
	seen   map[string]time.Time
	plan   []QueueFault
	always *QueueFault
	sends  int
}

var (
	_ run.Queue    = (*Queue)(nil)
	_ ops.Messages = (*Queue)(nil)
)

// QueuedMessage is a message that the queue has.
type QueuedMessage struct {
	ID   string
	Body []byte
	// Due is when it can be taken.
	Due time.Time
	// Delivered is how often it was taken and put back.
	Delivered int

	sequence int64
}

// QueueFault is how one Send fails. Of the messages that could be sent, Accepted are stored and confirmed, the next
// Unconfirmed are stored, and get Err like all the rest.
type QueueFault struct {
	Accepted, Unconfirmed int
	Err                   error
}

// All is a number of messages larger than any queue.
const All = int(^uint(0) >> 1)

// QueueDown is a queue that cannot be reached.
func QueueDown() QueueFault {
	return QueueFault{Err: fault.New(fault.Infrastructure, "inmem: send", "down", "the queue cannot be reached")}
}

// QueueFull is a queue that takes nothing more.
func QueueFull() QueueFault {
	return QueueFault{Err: fault.New(fault.Quota, "inmem: send", "full", "the queue is full")}
}

// QueueBusy is a queue that asks to slow down.
func QueueBusy() QueueFault {
	return QueueFault{Err: fault.New(fault.Throttled, "inmem: send", "busy", "the queue asks to slow down")}
}

// QueueLosesAnswer is a queue that stores everything and whose answer is lost.
func QueueLosesAnswer() QueueFault {
	return QueueFault{
		Unconfirmed: All,
		Err: fault.New(fault.Infrastructure, "inmem: send", "lost",
			"the answer was lost; the messages may have been sent"),
	}
}

// NewQueue makes an empty queue. now is its clock; nil stands for time.Now.
func NewQueue(now func() time.Time) *Queue {
	if now == nil {
		now = time.Now
	}
	return &Queue{now: now, seen: map[string]time.Time{}}
}

// DetectDuplicates drops messages whose ID was sent within the window, from now on.
func (q *Queue) DetectDuplicates(window time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.window = window
}

// Plan makes the next calls of Send fail, one fault each; a fault without an Err lets one pass. Later ones go
// as Always says.
func (q *Queue) Plan(faults ...QueueFault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.plan = append(q.plan, faults...)
}

// Always makes every call of Send fail in this way, until Mend.
func (q *Queue) Always(f QueueFault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.always = &f
}

// Mend forgets all faults.
func (q *Queue) Mend() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.plan, q.always = nil, nil
}

// Send sends messages. See run.Queue; internal, code "message_id", for an ID that cannot be one.
func (q *Queue) Send(ctx context.Context, messages []run.Outgoing) []error {
	const op = "inmem: send"
	errs := make([]error, len(messages))
	gone := ended(ctx, op)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sends++
	f := q.next()
	for i, m := range messages {
		switch {
		case m.ID == "" || len(m.ID) > 128:
			errs[i] = fault.New(fault.Internal, op, "message_id",
				"a message's id has 1 to 128 characters, not %d", len(m.ID))
		case len(m.Body) > run.MaxBody:
			errs[i] = fault.New(fault.Document, op, "too_large", "a body has at most %d bytes, not %d",
				run.MaxBody, len(m.Body))
		case gone != nil:
			errs[i] = gone
		case f.Err == nil:
			q.store(m)
		case f.Accepted > 0:
			f.Accepted--
			q.store(m)
		default:
			if f.Unconfirmed > 0 {
				f.Unconfirmed--
				q.store(m)
			}
			errs[i] = f.Err
		}
	}
	return errs
}

// next is the fault of this call. The caller has the lock.
func (q *Queue) next() QueueFault {
	if len(q.plan) > 0 {
		f := q.plan[0]
		q.plan = q.plan[1:]
		return f
	}
	if q.always != nil {
		return *q.always
	}
	return QueueFault{}
}

// store adds a message, unless it is a duplicate. The caller has the lock.
func (q *Queue) store(m run.Outgoing) {
	now := q.now()
	if until, known := q.seen[m.ID]; q.window > 0 && known && now.Before(until) {
		return
	}
	q.seen[m.ID] = now.Add(q.window)
	q.sequence++
	q.messages = append(q.messages, QueuedMessage{
		ID: m.ID, Body: bytes.Clone(m.Body), Due: now.Add(max(0, m.Delay)), sequence: q.sequence,
	})
}

// DeadLetter makes dead letters of the first n messages that are due.
func (q *Queue) DeadLetter(n int) {
	for range n {
		if m, due := q.Take(); due {
			q.mu.Lock()
			q.dead.Add(m.EnqueuedAt)
			q.mu.Unlock()
		}
	}
}

// Count implements ops.Messages.
func (q *Queue) Count(ctx context.Context, most int) (active, deadLettered ops.Count, err error) {
	if err := ended(ctx, "inmem: count"); err != nil {
		return ops.Count{}, ops.Count{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.always; f != nil && f.Err != nil {
		return ops.Count{}, ops.Count{}, f.Err
	}
	for _, m := range q.messages[:min(most, len(q.messages))] {
		if !m.Due.After(q.now()) {
			active.Add(m.Due)
		}
	}
	active.AtLeast = len(q.messages) >= most
	deadLettered = q.dead
	deadLettered.Documents, deadLettered.AtLeast = min(deadLettered.Documents, most), deadLettered.Documents >= most
	return active, deadLettered, nil
}

// Take takes the message out of the queue that has been due longest; false when none is due.
func (q *Queue) Take() (run.Incoming, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
	if len(q.messages) == 0 || q.messages[0].Due.After(q.now()) {
		return run.Incoming{}, false
	}
	m := q.messages[0]
	q.messages = q.messages[1:]
	return run.Incoming{Body: m.Body, ID: m.ID, Count: m.Delivered + 1, EnqueuedAt: m.Due}, true
}

// PutBack gives a message back that could not be handled, or whose handling is not known to have ended: it comes again
// at once, with a higher count.
func (q *Queue) PutBack(d run.Incoming) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sequence++
	q.messages = append(q.messages,
		QueuedMessage{ID: d.ID, Body: d.Body, Due: d.EnqueuedAt, Delivered: d.Count, sequence: q.sequence})
}

// Lose drops every message that the queue has, and answers how many.
func (q *Queue) Lose() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.messages)
	q.messages = nil
	return n
}

// Messages gives what the queue has, by due time: a copy, whose bodies must not be changed.
func (q *Queue) Messages() []QueuedMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
	return slices.Clone(q.messages)
}

// NextDue is when the next message can be taken; false when there is none.
func (q *Queue) NextDue() (time.Time, bool) {
	if m := q.Messages(); len(m) > 0 {
		return m[0].Due, true
	}
	return time.Time{}, false
}

// Sends is how often Send was called.
func (q *Queue) Sends() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sends
}

// sort orders messages by due time, and those of one time as they came. The caller has the lock.
func (q *Queue) sort() {
	slices.SortFunc(q.messages, func(a, b QueuedMessage) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.sequence, b.sequence))
	})
}
