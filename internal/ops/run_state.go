package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/run"
)

// The states of a run in RunState, RunProgress and RunSummary.
const (
	// RunWorks: it goes on. RunEnded: it has ended.
	RunWorks = "works"
	RunEnded = "ended"
	// RunDeferred: it waits for its rate, or for a manager or a worker that a message brings.
	RunDeferred = "deferred"
	// RunSilent: its manager has not been heard, or none has it for long.
	RunSilent = "silent"
	// RunCancelled: it is to end, and its batches under way finish.
	RunCancelled = "cancelled"
	// RunPaused and RunWaits: the flow is paused or stopped.
	RunPaused = "paused"
	RunWaits  = "waits for SQL"
)

// maxRunsShown bounds the runs of a Status.
const maxRunsShown = 20

// openRuns reads the running runs from SQL; unknown says why it could not. It does not ask while the breaker is open:
// probes are the breaker's.
func (o *Ops) openRuns(ctx context.Context, view breaker.View) (all []RunState, unknown string) {
	all = []RunState{}
	flow := view.Control.Breaker
	if flow.Name == breaker.Open {
		return all, "SQL is not asked while the flow is " + o.describe(flow)
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	err := o.withStores(ctx, func(ctx context.Context, s Stores) error {
		rows, err := s.Runs.OpenRuns(ctx, o.o.SysName, maxRunsShown)
		if err != nil {
			return err
		}
		for _, row := range rows {
			batches, err := s.Runs.BatchCounts(ctx, row.ID)
			if err != nil {
				return err
			}
			known, _ := row.Known()
			r := RunState{ID: row.ID, Kind: row.Kind, Status: row.Status, Done: doneBatches(row, batches), Known: known}
			r.State, r.Says = o.runState(row, batches, flow)
			if r.Since, err = o.standsSince(ctx, s.Runs, row, r.State, batches); err != nil {
				return err
			}
			all = append(all, r)
		}
		return nil
	})
	if err != nil {
		return []RunState{}, errorText(err)
	}
	return all, ""
}

// standsSince is RunState.Since.
func (o *Ops) standsSince(
	ctx context.Context, runs RunStore, r run.Run, state string, batches map[run.BatchStatus]int,
) (since time.Time, err error) {
	switch {
	case state == RunSilent:
		return o.in(o.o.Now().Add(-r.Silent)), nil
	case state != RunWorks && state != RunDeferred:
		return time.Time{}, nil
	}
	for _, status := range []run.BatchStatus{run.PendingQueue, run.PendingRetry, run.Queued} {
		if batches[status] == 0 {
			continue
		}
		first, err := runs.ListBatches(ctx, r.ID, status, "", 1)
		if err != nil {
			return time.Time{}, err
		}
		for _, b := range first { // what was sent again waits since then
			last := slices.MaxFunc([]time.Time{b.CreatedAt, b.QueuedAt, b.StartedAt}, time.Time.Compare)
			if since.IsZero() || last.Before(since) {
				since = last
			}
		}
	}
	return o.in(since), nil
}

// doneBatches is the number of documents in batches that have ended: it counts no documents, because there may be
// millions.
func doneBatches(r run.Run, batches map[run.BatchStatus]int) int {
	if r.Batches == 0 { // a run without batches counts its documents itself
		return r.Documents
	}
	return r.Documents * (batches[run.Completed] + batches[run.Failed]) / r.Batches
}

// runState says what a run is doing, and why it does not go on. batches are its batches by status.
func (o *Ops) runState(r run.Run, batches map[run.BatchStatus]int, flow breaker.State) (state, says string) {
	busy := batches[run.Processing]
	waiting := batches[run.PendingQueue] + batches[run.PendingRetry] + batches[run.Queued]
	switch {
	case r.Status != run.RunRunning:
		return RunEnded, strings.ReplaceAll(string(r.Status), "_", " ")
	case r.Cancel && busy > 0:
		return RunCancelled, "cancelled: " + numberOfBatches(busy) + " still under way"
	case r.Cancel:
		return RunCancelled, "cancelled: the recovery timer ends it at its next tick"
	case flow.Name == breaker.Paused:
		return RunPaused, "the flow is " + o.describe(flow)
	case flow.Name == breaker.Open || flow.Name == breaker.HalfOpen:
		return RunWaits, "waits for SQL: the flow is " + o.describe(flow)
	case r.HandedOffAt.IsZero():
		return o.handOffState(r)
	case busy > 0:
		return RunWorks,
			fmt.Sprintf("workers have %s, %d %s", numberOfBatches(busy), waiting, Plural(waiting, "waits", "wait"))
	case waiting > 0:
		return RunDeferred,
			fmt.Sprintf("no worker has one of the %s that %s: a message brings it", numberOfBatches(waiting),
				Plural(waiting, "waits", "wait"))
	}
	return RunWorks, "all batches have ended: the recovery timer ends the run at its next tick"
}

// handOffState is runState of a run that is not handed off, while the flow is running.
func (o *Ops) handOffState(r run.Run) (state, says string) {
	const beats = time.Minute // two heartbeats
	silent, handedOff := r.Silent.Round(time.Second), documents(r.Documents)+" handed off"
	switch {
	case r.Owner != "" && r.Silent >= run.ManagerStale:
		return RunSilent,
			fmt.Sprintf("manager silent for %.0f s: another takes it over with the next message", silent.Seconds())
	case r.Owner != "" && r.Silent > beats:
		return RunSilent,
			fmt.Sprintf("manager silent for %.0f s, taken over at %.0f s", silent.Seconds(), run.ManagerStale.Seconds())
	case r.NextIn > 0:
		return RunDeferred,
			fmt.Sprintf("deferred until %s by its rate, %s", o.clock(o.o.Now().Add(r.NextIn)), handedOff)
	case r.Owner != "":
		return RunWorks, "its manager works: " + handedOff
	case r.Silent >= run.RunSilent:
		return RunSilent,
			fmt.Sprintf("no manager has it for %s: the recovery timer sends for one at its next tick", ago(r.Silent))
	}
	return RunDeferred, fmt.Sprintf("no manager has it for %s: a message brings one", ago(r.Silent))
}
