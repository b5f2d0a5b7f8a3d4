package servicebus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Control controls a running emulator over HTTP, without AMQP.
type Control struct {
	url  string
	http *http.Client
}

// NewControl is for an emulator whose control address is url, http://HOST:PORT.
func NewControl(url string) *Control {
	return &Control{url: url, http: &http.Client{Transport: &http.Transport{}}}
}

func (c *Control) closeIdle() { c.http.CloseIdleConnections() }

// On says what goes wrong.
type On string

// What can go wrong.
const (
	// OnSend: a client sends a message or a batch.
	OnSend On = "send"
	// OnSettle: a client completes, abandons, releases or dead-letters over its link.
	OnSettle On = "settle"
	// OnAttach: a client opens a link to the queue or to its $management.
	OnAttach On = "attach"
)

// Then says how it goes wrong.
type Then string

// How it can go wrong.
const (
	// Reject answers with Condition. Sends and settlements.
	Reject Then = "reject"
	// Drop ends the connection without an answer.
	Drop Then = "drop"
	// Hang never answers. Not for links.
	Hang Then = "hang"
	// Detach ends the link with Condition, instead of an answer. Sends and settlements. Beware: with the conditions
	// amqp:resource-limit-exceeded, com.microsoft:server-busy and com.microsoft:entity-disabled an azservicebus Sender
	// never recovers from it.
	Detach Then = "detach"
	// LockLost takes the lock away and says so. Settlements.
	LockLost Then = "lock-lost"
	// Refuse refuses the link with Condition. Links.
	Refuse Then = "refuse"
)

// Fault is something that goes wrong, from the call of Fail on.
type Fault struct {
	// Queue is the path of the queue (or of its dead-letter sub-queue); empty: all of them.
	Queue string `json:"queue,omitempty"`
	On    On     `json:"on"`
	Then  Then   `json:"then"`
	// Condition is an AMQP error condition: com.microsoft:server-busy, amqp:resource-limit-exceeded, ...
	Condition string `json:"condition,omitempty"`
	// Apply: what was asked for is done all the same, and only the answer is spoiled. An ambiguous send is Drop with
	// Apply.
	Apply bool `json:"apply,omitempty"`
	// Skip is how many pass first; Every strikes only every n-th of the rest (0 and 1: each); Times is how often it
	// strikes (0: for ever).
	Skip  int `json:"skip,omitempty"`
	Every int `json:"every,omitempty"`
	Times int `json:"times,omitempty"`
}

// FaultState is a fault and what became of it.
type FaultState struct {
	Fault

	// Seen is how many could have been struck, Struck how many were.
	Seen   int `json:"seen"`
	Struck int `json:"struck"`
}

// Counts says what is in a queue.
type Counts struct {
	Name string `json:"name"`
	// Active messages are there to be received or are locked, as the service counts them; Locked are those of them that
	// are locked. Scheduled ones wait for their time.
	Active    int `json:"active"`
	Locked    int `json:"locked"`
	Scheduled int `json:"scheduled"`
	// DeadLetter counts the messages in the dead-letter sub-queue, DeadLetterLocked the locked ones of them.
	DeadLetter       int `json:"deadLetter"`
	DeadLetterLocked int `json:"deadLetterLocked"`
	// Stats and DeadLetterStats count what happened since the start of the process.
	Stats           Stats `json:"stats"`
	DeadLetterStats Stats `json:"deadLetterStats"`
}

// Stats counts what happened to a queue since the start of the process.
type Stats struct {
	// Sent were accepted and stored, scheduled ones too; Duplicates were accepted and dropped; Refused were not
	// accepted.
	Sent       int `json:"sent"`
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
	// Scheduled and Cancelled are scheduled messages that came and that were taken back.
	Scheduled int `json:"scheduled"`
	Cancelled int `json:"cancelled"`
	// Delivered counts deliveries, not messages.
	Delivered int `json:"delivered"`
	// Completed were completed, or received and deleted; Abandoned and Released were given back, with and without
	// counting the delivery; Expired are locks that ended or were taken away.
	Completed int `json:"completed"`
	Abandoned int `json:"abandoned"`
	Released  int `json:"released"`
	Expired   int `json:"expired"`
	// DeadLettered were moved to the dead-letter sub-queue.
	DeadLettered int `json:"deadLettered"`
	// TimeToLiveExpired were dropped because they were too old.
	TimeToLiveExpired int `json:"timeToLiveExpired"`
	// MaxDeliveries is the largest delivery count a receiver saw.
	MaxDeliveries int `json:"maxDeliveries"`
}

// Peeked is a message in a queue.
type Peeked struct {
	SequenceNumber int64 `json:"sequenceNumber"`
	// State is active or scheduled.
	State                string     `json:"state"`
	MessageID            string     `json:"messageId"`
	EnqueuedTime         time.Time  `json:"enqueuedTime"`
	ScheduledEnqueueTime *time.Time `json:"scheduledEnqueueTime"`
	// DeliveryCount counts the deliveries that came to nothing.
	DeliveryCount    int    `json:"deliveryCount"`
	DeadLetterSource string `json:"deadLetterSource"`
	// Properties are those of AMQP, by name: contentType, subject, correlationId, ...
	Properties            map[string]any `json:"properties"`
	ApplicationProperties map[string]any `json:"applicationProperties"`
	// BodyType is data, value, sequence or none; Body the bytes of a data body, the text of a value.
	BodyType string `json:"bodyType"`
	Body     []byte `json:"body"`
}

// Outgoing is a message for Send.
type Outgoing struct {
	MessageID     string `json:"messageId,omitempty"`
	CorrelationID string `json:"correlationId,omitempty"`
	ContentType   string `json:"contentType,omitempty"`
	Subject       string `json:"subject,omitempty"`
	// ApplicationProperties are strings, booleans and numbers.
	ApplicationProperties map[string]any `json:"applicationProperties,omitempty"`
	ScheduledEnqueueTime  *time.Time     `json:"scheduledEnqueueTime,omitempty"`
	Body                  []byte         `json:"body"`
	// BodyType is data (the default), or value: the body as an AMQP string, as the portal sends it.
	BodyType string `json:"bodyType,omitempty"`
}

// DeadLetterPath is the path of a queue's dead-letter sub-queue.
func DeadLetterPath(queue string) string { return queue + "/$DeadLetterQueue" }

// Fail adds a fault. Of several that strike at once the one that was added first counts.
func (c *Control) Fail(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPost, "/faults", f, nil)
}

// Faults gives all faults, in the order they were added.
func (c *Control) Faults(ctx context.Context) ([]FaultState, error) {
	var all []FaultState
	err := c.call(ctx, http.MethodGet, "/faults", nil, &all)
	return all, err
}

// Heal removes all faults. What hangs stays so.
func (c *Control) Heal(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/faults", nil, nil)
}

// Down ends all AMQP connections and refuses new ones; the clock goes on. Up reverts it.
func (c *Control) Down(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/down", nil, nil)
}

// Up accepts connections again, on the same port.
func (c *Control) Up(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/up", nil, nil)
}

// Disconnect drops all AMQP connections without a close. New ones are accepted.
func (c *Control) Disconnect(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/disconnect", nil, nil)
}

// Advance moves the clock of the emulator on: locks, scheduled messages, times to live and the window of duplicate
// detection go by it. When it returns, what became due has happened and has been handed to waiting receivers.
func (c *Control) Advance(ctx context.Context, d time.Duration) error {
	return c.call(ctx, http.MethodPost, "/clock/advance", map[string]int64{"ms": d.Milliseconds()}, nil)
}

// Now is the time of the emulator.
func (c *Control) Now(ctx context.Context) (time.Time, error) {
	var clock struct{ Now time.Time }
	err := c.call(ctx, http.MethodGet, "/clock", nil, &clock)
	return clock.Now, err
}

// Queues gives the counts of all queues.
func (c *Control) Queues(ctx context.Context) ([]Counts, error) {
	var all []Counts
	err := c.call(ctx, http.MethodGet, "/queues", nil, &all)
	return all, err
}

// Counts gives the counts of one queue, by its name as it was given at the start.
func (c *Control) Counts(ctx context.Context, queue string) (Counts, error) {
	all, err := c.Queues(ctx)
	if err != nil {
		return Counts{}, err
	}
	for _, q := range all {
		if q.Name == queue {
			return q, nil
		}
	}
	return Counts{}, fmt.Errorf("servicebus: there is no queue %s", queue)
}

// Peek gives up to n messages of a queue or of a DeadLetterPath, the oldest first, locked and scheduled ones too.
func (c *Control) Peek(ctx context.Context, path string, n int) ([]Peeked, error) {
	var all []Peeked
	err := c.call(ctx, http.MethodGet, "/queues/"+url.PathEscape(path)+"?count="+strconv.Itoa(n), nil, &all)
	return all, err
}

// Send puts a message into a queue, without the faults, and gives its sequence number.
func (c *Control) Send(ctx context.Context, queue string, m Outgoing) (int64, error) {
	var sent struct{ SequenceNumber int64 }
	err := c.call(ctx, http.MethodPost, "/queues/"+url.PathEscape(queue), m, &sent)
	return sent.SequenceNumber, err
}

// Purge removes all messages of a queue or of a DeadLetterPath, locked and scheduled ones too, and says how many.
func (c *Control) Purge(ctx context.Context, path string) (int, error) {
	var done struct{ Purged int }
	err := c.call(ctx, http.MethodDelete, "/queues/"+url.PathEscape(path), nil, &done)
	return done.Purged, err
}

// controlTimeout is for a call; nothing it can ask for takes long.
const controlTimeout = 30 * time.Second

func (c *Control) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("servicebus: %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return fmt.Errorf("servicebus: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("servicebus: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("servicebus: %s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct{ Error string }
		_ = json.Unmarshal(answer, &refusal) // the status says enough without it
		return fmt.Errorf("servicebus: %s %s: %d %s", method, path, resp.StatusCode, refusal.Error)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("servicebus: %s %s: %w", method, path, err)
	}
	return nil
}
