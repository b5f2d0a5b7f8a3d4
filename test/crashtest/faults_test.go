package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
)

// kind is what happens to one call of a port.
type kind string

const (
	failBefore    kind = "fail-before"
	failAfter     kind = "fail-after"
	timeoutBefore kind = "timeout-before"
	timeoutAfter  kind = "timeout-after"
	late          kind = "late"
	crashBefore   kind = "crash-before"
	crashAfter    kind = "crash-after"
	// outage: what the port stands for goes away at this call, and comes back after outageFor.
	outage kind = "outage"
	// down is no fault by itself: the call falls into an outage.
	down kind = "down"
	// The shortages: from this call on, for shortageFor, SQL answers all the calls alike that one hits, and the others
	// as ever. denied: every request for documents fails like an outage, and heartbeats are committed.
	denied kind = "denied"
	// full: nothing can be written; throttling: SQL asks for less of everything.
	full       kind = "full"
	throttling kind = "throttling"
	// in before a shortage is no fault by itself: the call falls into it.
	in kind = "in-"
)

func kinds() []kind {
	return []kind{failBefore, failAfter, timeoutBefore, timeoutAfter, late, crashBefore, crashAfter, outage}
}

// shortages leave a breaker behind that is not an outage's, or none.
func shortages() []kind { return []kind{denied, full, throttling} }

// kindsAt are the kinds of faults that a port of a path can meet.
func (p *path) kindsAt(port string) []kind {
	all := kinds()
	for _, k := range shortages() {
		if k.hits(port) {
			all = append(all, k)
		}
	}
	return all
}

// hits reports whether a shortage is answered by a port.
func (k kind) hits(port string) bool {
	name, method, _ := strings.Cut(port, ".")
	switch k { //nolint:exhaustive // the others are no shortages
	case denied:
		return port == "sink.Apply"
	case full:
		return name == "sink" || ((name == "store" || name == "findings") && !slices.Contains(readOnly(), method))
	default:
		return dependencyOf(port) == "SQL"
	}
}

// readOnly are the calls of the run store and of the findings that write nothing.
func readOnly() []string {
	return []string{
		"Run", "ListRuns", "Stats", "BatchCounts", "Known", "Batch", "ListBatches", "Items", "Unsent",
		"ToSend", "OnTheWay", "OpenRuns",
		"List", "Counts", "Next", "Last", "AdoptedAt", "Marks",
	}
}

// shortageFor is how long a shortage lasts: the breaker opens, and its first probe fails.
const shortageFor = 6 * time.Minute

// outageFor is how long an outage lasts: the breaker opens, and its first probe fails.
const outageFor = 150 * time.Second

// dependencyOf is what a port stands for: all ports of one dependency go away together.
func dependencyOf(port string) string {
	switch name, _, _ := strings.Cut(port, "."); name {
	case "sink", "store", "rows", "findings":
		return "SQL"
	case "runs", "batches":
		return "Service Bus"
	case "evidence":
		return "blobs"
	}
	return "Cosmos"
}

// done reports whether the call is carried out all the same.
func (k kind) done() bool {
	return k == "" || k == failAfter || k == timeoutAfter || k == late || k == crashAfter
}

// takes is how long the call takes.
func (k kind) takes() time.Duration {
	switch k {
	case timeoutBefore, timeoutAfter:
		return 30 * time.Second
	case late:
		return 5 * time.Minute
	default:
		return 20 * time.Millisecond
	}
}

// err is the error that the caller gets, as an adapter would return it.
func (k kind) err(op string) error {
	switch k {
	case failBefore, failAfter, outage, down:
		return &fault.Error{Kind: fault.Infrastructure, Op: op, Code: "eof", Reason: "the connection was cut"}
	case timeoutBefore, timeoutAfter:
		return &fault.Error{
			Kind: fault.Infrastructure, Op: op, Code: "timeout", Reason: "no answer in time",
			Err: context.DeadlineExceeded,
		}
	case denied, in + denied:
		return fault.New(fault.Infrastructure, op, "229", "the table may not be written")
	case full, in + full:
		return fault.New(fault.Quota, op, "9002", "the log is full")
	case throttling, in + throttling:
		return fault.New(fault.Throttled, op, "40501", "the service is busy")
	default:
		return nil
	}
}

// injection is a fault at a step: the number of the call, from 1, counted over all instances of a run.
type injection struct {
	step int
	kind kind
}

// plan is what is to happen in a run. Its text is what -faults takes.
type plan []injection

func (p plan) at(step int) kind {
	for _, in := range p {
		if in.step == step {
			return in.kind
		}
	}
	return ""
}

func (p plan) String() string {
	parts := make([]string, len(p))
	for i, in := range p {
		parts[i] = fmt.Sprintf("%d:%s", in.step, in.kind)
	}
	return strings.Join(parts, ",")
}

func parsePlan(text string) (plan, error) {
	var p plan
	for part := range strings.SplitSeq(text, ",") {
		step, name, _ := strings.Cut(part, ":")
		n, err := strconv.Atoi(step)
		all := append(kinds(), shortages()...)
		if err != nil || !slices.Contains(all, kind(name)) {
			return nil, fmt.Errorf("%q is not STEP:KIND with a kind of %v", part, all)
		}
		p = append(p, injection{n, kind(name)})
	}
	return p, nil
}
