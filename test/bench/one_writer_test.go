package bench

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"sqlwriter/test/sqlservertest"
)

// TestOneWriterCosts measures ONE_WRITER beside without it: one batch after the other, and three instances at once.
// SQLWRITER_ROUNDS=7 measures in earnest.
func TestOneWriterCosts(t *testing.T) {
	sqlservertest.Server(t)
	const instances, alone, together = 3, "one instance", "three at once"
	e, l := newServer(t), lane{requests: &atomic.Int64{}}
	with := func(name string, on bool) string { return name + ", ONE_WRITER=" + strconv.FormatBool(on) }
	for _, on := range []bool{false, true} {
		var writes []func(ctx context.Context, docs []doc) error
		for range instances {
			writes = append(writes, ours(openStore(t, e.dsn, on), 0, 1, func(int) {}))
		}
		l.ways = append(l.ways, way{name: with(alone, on), call: 100, write: writes[0]},
			way{name: with(together, on), call: instances * 100, write: func(ctx context.Context, docs []doc) error {
				batches, ctx := errgroup.WithContext(ctx)
				for i, write := range writes {
					batches.Go(func() error { return write(ctx, docs[i*100:(i+1)*100]) })
				}
				return batches.Wait()
			}})
	}
	f := effort{rounds: 1}
	if rounds, err := strconv.Atoi(os.Getenv("SQLWRITER_ROUNDS")); err == nil {
		f = effort{rounds: rounds, slice: time.Second}
	}
	run := laneRun{l, measure(t, e, l, f)}
	for _, name := range []string{alone, together} {
		for _, k := range []kind{first, repeat} {
			off, on := run.rate(with(name, false), k), run.rate(with(name, true), k)
			require.Positive(t, off)
			t.Logf("%s, %s: %s documents a second, with ONE_WRITER %s: %s of it", name, k, round(off), round(on), round(on/off))
		}
	}
}
