package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

type reconciler func(ctx context.Context) (ops.Nightly, error)

func (r reconciler) StartReconcile(ctx context.Context) (ops.Nightly, error) { return r(ctx) }

func TestTheNightlyTickSaysWhichRunItStarted(t *testing.T) {
	w, log := invoke(t, Reconcile(reconciler(func(context.Context) (ops.Nightly, error) {
		return ops.Nightly{Run: "reconcile-2025-12-18-web", Did: "started"}, nil
	})), Options{}, strings.NewReader(timerBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "run reconcile-2025-12-18-web: started")
	require.Contains(t, log, `"event":"reconcile_started"`)
	require.Contains(t, log, `"run":"reconcile-2025-12-18-web"`)
	w, log = invoke(t, Reconcile(reconciler(func(context.Context) (ops.Nightly, error) {
		return ops.Nightly{Off: "shadow: nothing is compared"}, nil
	})), Options{}, strings.NewReader(timerBody))
	require.Contains(t, w.Body.String(), "shadow: nothing is compared")
	require.Contains(t, log, `"off":"shadow: nothing is compared"`)
}

// The host tries a tick again that failed: a failover at two costs no night.
func TestANightlyTickDuringAnOutageFails(t *testing.T) {
	w, _ := invoke(t, Reconcile(reconciler(func(context.Context) (ops.Nightly, error) {
		return ops.Nightly{}, fault.New(fault.Infrastructure, "test: sql", "refused", "no")
	})), Options{}, strings.NewReader(timerBody))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	text, err := os.ReadFile("../functions/Reconcile/function.json")
	require.NoError(t, err)
	var file struct {
		Retry struct {
			MaxRetryCount int
			DelayInterval string
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.Equal(t, 24, file.Retry.MaxRetryCount)
	require.Equal(t, "00:05:00", file.Retry.DelayInterval)
}
