package open_test

import (
	"context"
	"testing"
	"time"

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

func (p *previewed) Apply(
	_ context.Context, items []commit.Item, mode commit.Mode, _ breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if len(items) == 0 && mode == commit.Preview {
		p.previews++
	}
	return nil, nil
}

// untouched is a control document that counts its uses.
type untouched struct{ uses int }

func (u *untouched) Load(context.Context) (breaker.Control, string, error) {
	u.uses++
	return breaker.Control{}, "", nil
}

func (u *untouched) Store(context.Context, breaker.Control, string) (string, error) {
	u.uses++
	return "e", nil
}

func (u *untouched) LoadStatuses(context.Context, time.Time) ([]breaker.Status, error) {
	u.uses++
	return nil, nil
}

func (u *untouched) StoreStatus(context.Context, breaker.Status) error {
	u.uses++
	return nil
}

// With ONE_WRITER an instance makes one request at a time.
func TestOneWriterMakesOneRequestAtATime(t *testing.T) {
	for setting, parallel := range map[string]bool{"": true, "false": true, "true": false} {
		c := config.Of(func(name string) string { return map[string]string{config.OneWriter: setting}[name] })
		require.Equal(t, parallel, open.Breaker(c, nil, &previewed{}, breaker.Options{}).Parallel(), setting)
	}
}

// The app and the operators' tools make their breaker here: in a shadow neither writes a heartbeat or changes the live
// app's breaker.
func TestAShadowsBreakerWritesNoHeartbeat(t *testing.T) {
	for mode, want := range map[string][2]int{config.ModeLive: {1, 0}, config.ModeShadow: {0, 1}} {
		sink := &previewed{}
		control := &untouched{}
		b := open.Breaker(config.Config{Mode: mode, SysName: "web"}, control, sink,
			breaker.Options{Instance: "i", Log: zerolog.Nop()})
		require.NoError(t, b.Tick(t.Context()), mode)
		b.View(t.Context())
		b.Tell(t.Context())
		require.Equal(t, want, [2]int{sink.n, sink.previews}, mode)
		require.Equal(t, mode == config.ModeShadow, control.uses == 0, mode)
	}
}
