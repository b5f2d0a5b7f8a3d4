package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
)

// opening is an App on a store with the given check.
func opening(t *testing.T, mode string, store open.Store, check func(ctx context.Context) error) *App {
	t.Helper()
	a := bare(t)
	a.config.Mode, a.config.SysName = mode, "web"
	a.useSQL(&open.Database{Store: store}, check)
	a.useBreaker(
		open.Breaker(a.config, nil, watchedSink{a.sql, a.status.seen},
			breaker.Options{Instance: "i", Build: "v1", Log: zerolog.Nop()}))
	return a
}

func fine(context.Context) error { return nil }

// A server that accepts connections but does not answer stops the flow like one that refuses. Otherwise every instance
// would try again and again. The breaker knows the code, and then makes one probe a minute.
func TestAServerThatCannotBeOpenedStopsTheFlow(t *testing.T) {
	for code, check := range map[string]func(ctx context.Context) error{
		"timeout": func(ctx context.Context) error {
			<-ctx.Done()
			return fault.Wrap(fault.Infrastructure, "test: open", "timeout", "no answer", ctx.Err())
		},
		"ledger_not_adopted": func(context.Context) error {
			return fault.New(fault.Infrastructure, "app: open sql", "ledger_not_adopted",
				"nobody said what was written before")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			a := opening(t, config.ModeLive, nil, func(ctx context.Context) error {
				tries++
				return check(ctx)
			})
			err := a.openSQL(t.Context())
			require.Equal(t, code, fault.CodeOf(err))
			state := a.breaker.Seen().Control.Breaker
			require.Equal(t, []any{breaker.StoppedFlow, code}, []any{state.Flow(), state.Code})
			require.Contains(t, a.status.report().Problems[0], code, "Health says it from the first try on")
			require.Equal(t, 5, tries)
			err = a.openSQL(t.Context())
			require.True(t, breaker.IsRefusal(err), "%v", err)
			require.Equal(t, 5, tries)
			time.Sleep(2 * time.Minute) // the bubble's clock
			err = a.openSQL(t.Context())
			require.Equal(t, code, fault.CodeOf(err))
			require.Equal(t, 6, tries)
		})
	}
}

// beaten is a store that records its calls.
type beaten struct {
	open.Store
	asked []string
}

func (b *beaten) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	b.asked = append(b.asked, "heartbeat")
	return breaker.Heartbeat{}, nil
}

func (b *beaten) Apply(
	_ context.Context, items []commit.Item, mode commit.Mode, _ breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	b.asked = append(b.asked, string(mode))
	return make([]commit.DocumentOutcome, len(items)), nil
}

// During a pause SQL is opened but not written to, not even a heartbeat.
func TestBesideAPauseSQLIsOpenedWithoutAHeartbeat(t *testing.T) {
	b := &beaten{}
	a := opening(t, config.ModeShadow, b, fine)
	require.NoError(t, a.breaker.Pause(t.Context(), "kim", "x"))
	require.NoError(t, a.openSQL(t.Context()))
	require.Empty(t, b.asked)
}

// A shadow writes nothing, not even a heartbeat: it runs an empty preview.
func TestAShadowsHeartbeatIsAPreview(t *testing.T) {
	for mode, want := range map[string]string{config.ModeShadow: string(commit.Preview), config.ModeLive: "heartbeat"} {
		b := &beaten{}
		a := opening(t, mode, b, fine)
		require.NoError(t, a.breaker.Tick(t.Context()))
		require.Equal(t, []string{want}, b.asked)
	}
}
