package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Deviation is the different behaviour of an engine other than SQL Server in one case. It is not an exemption: the case
// is run all the same, it must fail, and its failure must show Seen.
type Deviation struct {
	// Seen is a part of the case's failure as it was seen on the engine. The sink's last answer stands in every failure
	// as "the sink's last answer: document 3930", so that an error number is "document 3930" and nothing looser.
	Seen string
	// Because says for readers what the engine lacks.
	Because string
}

// sinkCase is one named promise.
type sinkCase struct {
	name string
	// needs are the capabilities without which the case cannot be shown.
	needs []string
	run   func(*sinkTest)
}

// lacks answers which of the needed capabilities a harness does not have.
func (h SinkHarness) lacks(needs []string) []string {
	has := map[string]bool{
		"Refuse": h.Refuse != nil, "NotNull": h.NotNull != nil, "Narrow": h.Narrow != nil,
		"OddColumns": h.OddColumns != nil, "BetweenReadAndWrite": h.BetweenReadAndWrite != nil,
		"Constrain": h.Constrain != nil, "Hide": h.Hide != nil, "ReadOnly": h.ReadOnly != nil,
		"CountWrites": h.CountWrites != nil, "LockHeartbeat": h.LockHeartbeat != nil, "Lock": h.Lock != nil,
		"RowLocks":  h.Lock != nil && h.RowLocks,
		"FailAfter": h.FailAfter != nil, "During": h.During != nil, "LoseReply": h.LoseReply != nil,
	}
	return slices.DeleteFunc(slices.Clone(needs), func(n string) bool { return has[n] })
}

// runCases runs every case over a harness of its own and prints a summary.
func runCases(t *testing.T, open func(t testing.TB) SinkHarness, cases []sinkCase) {
	var r report
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			r.saw(t, h)
			s := &sinkTest{T: t, h: h, answer: &lastAnswer{sink: h.Sink}}
			s.h.Sink = s.answer
			d, listed := h.Deviations[c.name]
			if !listed || h.RealServer {
				s.try(c, &r)
				return
			}
			r.deviations = append(r.deviations, fmt.Sprintf("%s: %s (seen: %s)", c.name, d.Because, d.Seen))
			if wrong := d.judge(s.observe(func(s *sinkTest) { s.try(c, &r) })); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	r.print(t, len(cases))
}

// try runs a case, if the harness can show it.
func (s *sinkTest) try(c sinkCase, r *report) {
	missing := s.h.lacks(c.needs)
	if len(missing) == 0 {
		c.run(s)
		return
	}
	what := strings.Join(missing, ", ")
	if s.h.Strict {
		s.Fatalf("the harness lacks %s, and nothing may be left out here", what)
	}
	r.absent = append(r.absent, fmt.Sprintf("%s (needs %s)", c.name, what))
	s.Skipf("not shown here: needs %s", what)
}

// judge compares the failure of a case ("" when it passed) with the deviation that was listed; "" means as listed.
func (d Deviation) judge(failure string) string {
	switch {
	case d.Seen == "" || d.Because == "":
		return "a deviation names what was seen and why"
	case failure == "":
		return "deviation no longer needed: the engine does as the case asks"
	case !strings.Contains(failure, d.Seen):
		return fmt.Sprintf(
			"deviates in another way than listed: expected %q in the failure, found:\n%s", d.Seen, failure)
	default:
		return ""
	}
}

// report gathers what a run of a suite has shown.
type report struct {
	ran                int
	real               bool
	engine             string
	listed             map[string]Deviation
	absent, deviations []string
}

// saw takes in what a harness says of itself.
func (r *report) saw(t *testing.T, h SinkHarness) {
	if h.Engine == "" {
		t.Error("the harness does not name its engine")
	}
	r.ran++
	r.engine, r.real, r.listed = h.Engine, h.RealServer, h.Deviations
}

// print prints the summary and refuses deviations that are not allowed.
func (r *report) print(t *testing.T, cases int) {
	if r.ran == 0 {
		return // none was asked for
	}
	names := map[string]bool{}
	for _, c := range slices.Concat(sinkCases(), bisectCases(), rowsCases()) {
		names[c.name] = true
	}
	for name := range r.listed {
		if r.real {
			t.Errorf("deviation %q: SQL Server itself may deviate in nothing", name)
		}
		if !names[name] {
			t.Errorf("deviation %q names no case", name)
		}
	}
	t.Logf("engine: %s\n%d of %d cases, %d deviations, %d not shown%s%s", r.engine, r.ran, cases,
		len(r.deviations), len(r.absent),
		inLines("deviation: ", r.deviations), inLines("not shown: ", r.absent))
}

func inLines(prefix string, list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString("\n  " + prefix + s)
	}
	return b.String()
}

// sinkTest is a case at work. It stands for its *testing.T towards testify, rapid and the harness, so that the failure
// of a case that is listed as a deviation can be looked at instead of counted.
type sinkTest struct {
	*testing.T
	h      SinkHarness
	answer *lastAnswer
	// partsAtOnce is how many parts of a refused request the use case sends at once; 0 means one.
	partsAtOnce int
	// observed takes failures in while a deviating case runs; nil otherwise.
	observed *failures
}

// failures collects the messages of a case that failed.
type failures struct {
	mu   sync.Mutex
	text []string
}

func (f *failures) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, text)
}

// observe runs f and answers its failure instead of failing, "" when there is none.
func (s *sinkTest) observe(f func(*sinkTest)) string {
	s.observed = &failures{}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine that runs a case, as testing's own does
		defer close(done)
		f(s)
	}()
	<-done
	text := s.observed.text
	s.observed = nil
	if len(text) == 0 {
		return ""
	}
	return strings.Join(append(text, "the sink's last answer: "+s.answer.String()), "\n")
}

// Errorf notes a failure.
func (s *sinkTest) Errorf(format string, args ...any) {
	s.Helper()
	s.note(fmt.Sprintf(format, args...))
}

// Error notes a failure.
func (s *sinkTest) Error(args ...any) {
	s.Helper()
	s.note(fmt.Sprintln(args...))
}

// Fatalf notes a failure and ends the case.
func (s *sinkTest) Fatalf(format string, args ...any) {
	s.Helper()
	s.note(fmt.Sprintf(format, args...))
	s.FailNow()
}

// Fatal notes a failure and ends the case.
func (s *sinkTest) Fatal(args ...any) {
	s.Helper()
	s.note(fmt.Sprintln(args...))
	s.FailNow()
}

// Fail marks the case as failed.
func (s *sinkTest) Fail() {
	if s.observed == nil {
		s.T.Fail()
		return
	}
	s.observed.add("failed")
}

// FailNow marks the case as failed and ends it.
func (s *sinkTest) FailNow() {
	if s.observed == nil {
		s.T.FailNow()
	}
	if !s.Failed() {
		s.Fail()
	}
	runtime.Goexit()
}

// Failed reports whether the case has failed.
func (s *sinkTest) Failed() bool {
	if s.observed == nil {
		return s.T.Failed()
	}
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	return len(s.observed.text) > 0
}

func (s *sinkTest) note(text string) {
	s.Helper()
	if s.observed == nil {
		s.T.Errorf("%s\nthe sink's last answer: %s", text, s.answer)
		return
	}
	s.observed.add(text)
}

// lastAnswer is the sink under test, with what it answered last.
type lastAnswer struct {
	sink commit.Sink

	mu  sync.Mutex
	out []commit.DocumentOutcome
	err error
}

// Apply implements commit.Sink.
func (a *lastAnswer) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	out, err := a.sink.Apply(ctx, items, mode, known)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out, a.err = out, err
	return out, err
}

// Heartbeat implements commit.Sink.
func (a *lastAnswer) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.raise(a.sink.Heartbeat(ctx, known))
}

// TakeOver implements commit.Sink.
func (a *lastAnswer) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return a.raise(a.sink.TakeOver(ctx, known))
}

// raise takes in a heartbeat that failed. One that did not says nothing of the case: the breaker makes it whenever
// something was applied.
func (a *lastAnswer) raise(row breaker.Heartbeat, err error) (breaker.Heartbeat, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.out, a.err = nil, err
	}
	return row, err
}

// String gives the last answer in short: "document 547", or "applied(applied applied)" for each item, not too many.
func (a *lastAnswer) String() string {
	const most = 10
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return fmt.Sprintf("%s %s", fault.KindOf(a.err), fault.CodeOf(a.err))
	}
	if len(a.out) == 0 {
		return "none"
	}
	short := make([]string, 0, most)
	for _, o := range a.out[:min(most, len(a.out))] {
		if len(o.Rows) > most {
			o.Rows = o.Rows[:most]
		}
		short = append(short, inShort(o))
	}
	return strings.Join(short, ", ")
}

// CaseFailure runs one case of TestSink by its name and answers its failure instead of failing, "" when it passes. It
// is for showing that a rule's removal is noticed, by which case. Listed deviations are not looked at.
func CaseFailure(t *testing.T, h SinkHarness, name string) string {
	t.Helper()
	for _, c := range sinkCases() {
		if c.name != name {
			continue
		}
		s := &sinkTest{T: t, h: h, answer: &lastAnswer{sink: h.Sink}}
		s.h.Sink = s.answer
		if missing := h.lacks(c.needs); len(missing) > 0 {
			t.Fatalf("%s needs %s", name, strings.Join(missing, ", "))
		}
		return s.observe(c.run)
	}
	t.Fatalf("no case %q", name)
	return ""
}
