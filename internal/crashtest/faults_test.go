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
)

func kinds() []kind {
	return []kind{failBefore, failAfter, timeoutBefore, timeoutAfter, late, crashBefore, crashAfter, outage}
}

// outageFor is how long an outage lasts: the gate opens, and its first probe fails.
const outageFor = 150 * time.Second

// dependencyOf is what a port stands for: all ports of one dependency go away together.
func dependencyOf(port string) string {
	switch name, _, _ := strings.Cut(port, "."); name {
	case "sink", "journal", "store":
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

// err is what the caller is told, as the adapters would say it.
func (k kind) err(op string) error {
	switch k {
	case failBefore, failAfter, outage, down:
		return &fault.Error{Kind: fault.Infrastructure, Condition: fault.Broken, Op: op, Code: "eof", Reason: "the connection was cut"}
	case timeoutBefore, timeoutAfter:
		return &fault.Error{
			Kind: fault.Infrastructure, Condition: fault.Broken, Op: op, Code: "timeout", Reason: "no answer in time", Err: context.DeadlineExceeded,
		}
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
		if err != nil || !slices.Contains(kinds(), kind(name)) {
			return nil, fmt.Errorf("%q is none of STEP:KIND with a kind of %v", part, kinds())
		}
		p = append(p, injection{n, kind(name)})
	}
	return p, nil
}
