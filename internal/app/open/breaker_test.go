package open_test

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
)

// previewed counts heartbeats and empty previews.
type previewed struct {
	beaten
	previews int
}

func (p *previewed) Apply(_ context.Context, items []commit.Item, mode commit.Mode, _ breaker.Heartbeat) ([]commit.Outcome, error) {
	if len(items) == 0 && mode == commit.Preview {
		p.previews++
	}
	return nil, nil
}

// The app and the operators' tools make their breaker here: neither writes a heartbeat in a shadow.
func TestAShadowsBreakerWritesNoHeartbeat(t *testing.T) {
	for mode, want := range map[string][2]int{config.ModeLive: {1, 0}, config.ModeShadow: {0, 1}} {
		sink := &previewed{}
		b := open.Breaker(config.Config{Mode: mode, SysName: "web"}, nil, sink, breaker.Options{Instance: "i", Log: zerolog.Nop()})
		require.NoError(t, b.Tick(t.Context()), mode)
		require.Equal(t, want, [2]int{sink.n, sink.previews}, mode)
	}
}
