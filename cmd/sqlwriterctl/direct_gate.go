package main

import (
	"context"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/writer"
)

const (
	// gateWithin bounds the first look at the control document: what is only read from SQL does not wait for Cosmos DB longer.
	gateWithin = 10 * time.Second
	// gateAgain is how long a look that failed stands for the next ones.
	gateAgain = time.Minute
)

// lazyGate loads the gate when it is first needed. While it cannot be loaded, what reads SQL goes on without it, said once on stderr,
// and everything else fails with the reason. Once loaded it is a writer.Gate, which goes by what it saw last when the control
// document is lost (docs/adr/0024). It implements ops.Gate.
type lazyGate struct {
	*app
	// load makes the gate and says which build it speaks for.
	load func(ctx context.Context) (*writer.Gate, string, error)

	mu      sync.Mutex
	gate    *writer.Gate
	version string
	// err is why there is none, since failed.
	err    error
	failed time.Time
	said   bool
}

var _ ops.Gate = (*lazyGate)(nil)

// get loads it.
func (g *lazyGate) get(ctx context.Context) (*writer.Gate, string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if g.gate != nil || (g.err != nil && now().Sub(g.failed) < gateAgain) {
		return g.gate, g.version, g.err
	}
	ctx, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	g.gate, g.version, g.err = g.load(ctx)
	g.failed = now()
	return g.gate, g.version, g.err
}

// View implements ops.Gate.
func (g *lazyGate) View(ctx context.Context) writer.View {
	gate, _, err := g.get(ctx)
	if err != nil {
		return writer.View{Lost: true}
	}
	return gate.View(ctx)
}

// Seen implements ops.Gate.
func (g *lazyGate) Seen() writer.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gate == nil {
		return writer.View{Lost: true}
	}
	return g.gate.Seen()
}

// Guard implements ops.Gate.
func (g *lazyGate) Guard(ctx context.Context, writes bool, use func(context.Context) error) error {
	gate, _, err := g.get(ctx)
	switch {
	case err == nil:
		return gate.Guard(ctx, writes, use)
	case writes:
		return unseen(err)
	}
	g.mu.Lock()
	say := !g.said
	g.said = true
	g.mu.Unlock()
	if say {
		g.notef("the gate cannot be looked at, SQL is read without it: %v", err)
	}
	return use(ctx)
}

// unseen is why nothing is done while the gate cannot be looked at.
func unseen(err error) error {
	e := fault.As(err)
	if e == nil {
		return err
	}
	said := *e
	said.Reason = "the gate cannot be looked at: " + e.Reason
	return &said
}

// Pause implements ops.Gate.
func (g *lazyGate) Pause(ctx context.Context, by, why string) error {
	gate, _, err := g.get(ctx)
	if err != nil {
		return err
	}
	return gate.Pause(ctx, by, why)
}

// Resume implements ops.Gate.
func (g *lazyGate) Resume(ctx context.Context, by string) error {
	gate, _, err := g.get(ctx)
	if err != nil {
		return err
	}
	return gate.Resume(ctx, by)
}

// lazyCommit is made when it is first needed: it goes through a lazyGate, and speaks for the same build. It implements ops.Committer.
type lazyCommit struct {
	gate *lazyGate
	make func(gate *writer.Gate, version string) ops.Committer

	mu   sync.Mutex
	made ops.Committer
}

// Run implements ops.Committer.
func (c *lazyCommit) Run(ctx context.Context, b writer.Batch) (writer.Report, error) {
	commit, err := c.get(ctx)
	if err != nil {
		return writer.Report{}, err
	}
	return commit.Run(ctx, b)
}

func (c *lazyCommit) get(ctx context.Context) (ops.Committer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		gate, version, err := c.gate.get(ctx)
		if err != nil {
			return nil, unseen(err)
		}
		c.made = c.make(gate, version)
	}
	return c.made, nil
}
