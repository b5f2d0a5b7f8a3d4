package cosmosdb

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"
)

// When is the moment at which a fault cuts or holds a request.
type When string

// Before the request is done (it then has no effect), or after it (only the answer is missing).
const (
	Before When = "before"
	After  When = "after"
)

// Rule makes requests fail. All conditions that are set must hold; what it does follows this order: hold
// before, cut before, status, the request itself, hold after, cut after.
type Rule struct {
	// ID names the rule; AddFault gives one when it is empty.
	ID string

	// Op chooses the kind of request, Method the verb, Container the container's id, Doc a pattern
	// (path.Match) for the document id. Empty matches all; a request without a document has the id "".
	Op        Op
	Method    string
	Container string
	Doc       string

	// Nth is the first matching request that is hit, counting from 1 (0 means 1); Times is how many are
	// hit from there on, 0 meaning all.
	Nth   int
	Times int

	// Hold keeps the request until Release, RemoveFault or ClearFaults. A client that goes away while its
	// request is held Before has not changed anything.
	Hold When
	// Cut closes the connection instead of answering.
	Cut When
	// Status is answered instead of doing the request, with Substatus and RetryAfterMS in their headers.
	Status       int
	Substatus    int
	RetryAfterMS int
}

// RuleState is a rule with what it has done.
type RuleState struct {
	Rule
	// Seen is how many requests matched, Hit how many of them it acted on, Held how many wait now.
	Seen int
	Hit  int
	Held int
	// Documents are the ids of the documents that the requests which wait now are about.
	Documents []string
}

// faults is the list of rules, oldest first; the first that is due acts.
type faults struct {
	mu      sync.Mutex
	rules   []*ruleEntry
	counter int
	changed chan struct{} // closed and replaced whenever held changes
	closed  chan struct{}
}

type ruleEntry struct {
	RuleState
	gate chan struct{} // closed to let held requests go
}

func newFaults() *faults {
	return &faults{changed: make(chan struct{}), closed: make(chan struct{})}
}

// fault is what one request meets; the zero fault is none.
type fault struct {
	faults *faults
	entry  *ruleEntry
	rule   Rule
	gate   chan struct{}
	status *apiError
	// document is the id of the document that the request is about.
	document string
}

// AddFault adds a rule and gives its id. It is an error when the rule does nothing, when a pattern or a
// moment is malformed, or when the id is taken.
func (s *Server) AddFault(r Rule) (string, error) {
	if _, err := path.Match(r.Doc, ""); err != nil {
		return "", fmt.Errorf("cosmosdb: fault rule: doc %q: %w", r.Doc, err)
	}
	for _, w := range []When{r.Hold, r.Cut} {
		if w != "" && w != Before && w != After {
			return "", fmt.Errorf("cosmosdb: fault rule: %q is neither %q nor %q", w, Before, After)
		}
	}
	if r.Hold == "" && r.Cut == "" && r.Status == 0 {
		return "", fmt.Errorf("cosmosdb: fault rule %q does nothing: set hold, cut or status", r.ID)
	}
	f := s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.ID == "" {
		f.counter++
		r.ID = "rule-" + strconv.Itoa(f.counter)
	}
	if f.find(r.ID) != nil {
		return "", fmt.Errorf("cosmosdb: fault rule: the id %q is taken", r.ID)
	}
	f.rules = append(f.rules, &ruleEntry{RuleState: RuleState{Rule: r}, gate: make(chan struct{})})
	return r.ID, nil
}

// RemoveFault removes a rule and lets the requests it holds go on; an unknown id does nothing.
func (s *Server) RemoveFault(id string) {
	f := s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.find(id); e != nil {
		close(e.gate)
		f.rules = slices.DeleteFunc(f.rules, func(r *ruleEntry) bool { return r == e })
	}
}

// ClearFaults removes every rule and lets all held requests go on.
func (s *Server) ClearFaults() {
	for _, r := range s.Faults() {
		s.RemoveFault(r.ID)
	}
}

// Faults are the rules with what they have done, oldest first.
func (s *Server) Faults() []RuleState {
	f := s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]RuleState, len(f.rules))
	for i, r := range f.rules {
		out[i] = r.RuleState
		out[i].Documents = slices.Clone(r.Documents)
	}
	return out
}

// Release lets the requests that a rule holds now go on, and returns their number; the rule stays.
func (s *Server) Release(id string) int {
	f := s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.find(id)
	if e == nil {
		return 0
	}
	close(e.gate)
	e.gate = make(chan struct{})
	return e.Held
}

// WaitHeld waits until a rule holds at least n requests, or for the context; its error is the context's,
// or says that there is no such rule.
func (s *Server) WaitHeld(ctx context.Context, id string, n int) error {
	f := s.faults
	for {
		f.mu.Lock()
		e, changed := f.find(id), f.changed
		held := 0
		if e != nil {
			held = e.Held
		}
		f.mu.Unlock()
		switch {
		case e == nil:
			return fmt.Errorf("cosmosdb: there is no fault rule %q", id)
		case held >= n:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cosmosdb: rule %q holds %d of %d requests: %w", id, held, n, ctx.Err())
		}
	}
}

func (f *faults) find(id string) *ruleEntry {
	for _, r := range f.rules {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// close lets every held request go, cut.
func (f *faults) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
}

// match finds the rule that acts on a request.
func (f *faults) match(req *request) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.rules {
		if !e.matches(req) {
			continue
		}
		e.Seen++
		if e.Seen < e.Nth || e.Times > 0 && e.Hit >= e.Times {
			continue
		}
		e.Hit++
		out := fault{faults: f, entry: e, rule: e.Rule, gate: e.gate, document: req.documentID}
		if e.Status != 0 {
			out.status = &apiError{status: e.Status, substatus: e.Substatus, message: faultMessage(e.Status)}
			if e.Status == 429 && e.Substatus == 0 {
				out.status.substatus = substatusThrottled
			}
		}
		return out
	}
	return fault{}
}

func faultMessage(status int) string {
	switch status {
	case 429:
		return "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"
	case 449:
		return "Conflicting request to resource has been attempted. Retry to avoid conflicts."
	default:
		return "A fault rule of the emulator answers this."
	}
}

func (e *ruleEntry) matches(req *request) bool {
	if e.Op != "" && e.Op != req.op || e.Method != "" && e.Method != req.method ||
		e.Container != "" && e.Container != req.containerID {
		return false
	}
	if e.Doc == "" {
		return true
	}
	ok, err := path.Match(e.Doc, req.documentID)
	return err == nil && ok
}

// before holds ahead of the request; false means the connection is to be cut.
func (f fault) before(ctx context.Context) bool {
	if f.faults == nil {
		return true
	}
	if f.rule.Hold == Before && !f.hold(ctx) {
		return false
	}
	return f.rule.Cut != Before
}

// after holds and cuts behind the request.
func (f fault) after(ctx context.Context) bool {
	if f.faults == nil {
		return true
	}
	if f.rule.Hold == After && !f.hold(ctx) {
		return false
	}
	return f.rule.Cut != After
}

// hold waits for the release; false when the client or the server went away first.
func (f fault) hold(ctx context.Context) bool {
	f.faults.begin(f.entry, f.document)
	defer f.faults.end(f.entry, f.document)
	select {
	case <-f.gate:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	case <-f.faults.closed:
		return false
	}
}

// begin counts a held request.
func (f *faults) begin(e *ruleEntry, document string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Held++
	if document != "" {
		e.Documents = append(e.Documents, document)
	}
	f.wake()
}

// end counts a released request.
func (f *faults) end(e *ruleEntry, document string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Held--
	if i := slices.Index(e.Documents, document); i >= 0 {
		e.Documents = slices.Delete(e.Documents, i, i+1)
	}
	f.wake()
}

// wake wakes the callers of WaitHeld. f.mu is held.
func (f *faults) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}
