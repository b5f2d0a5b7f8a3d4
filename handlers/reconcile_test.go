package handlers

import (
	"context"
	"net/http"
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

func TestANightlyTickDuringAnOutageFails(t *testing.T) {
	w, _ := invoke(t, Reconcile(reconciler(func(context.Context) (ops.Nightly, error) {
		return ops.Nightly{}, fault.New(fault.Infrastructure, "test: sql", "refused", "no")
	})), Options{}, strings.NewReader(timerBody))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
}
