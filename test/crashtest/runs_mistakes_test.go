package crashtest

import (
	"context"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Run stores and evidence with deliberate mistakes.

func runMistakes() []mistake {
	onRunStore := func(wrong func(s run.Store) run.Store) func(*world, ports) ports {
		return func(w *world, p ports) ports { w.runs.storeOrMistake = wrong(w.runs.storeOrMistake); return p }
	}
	onFindings := func(wrong func(f reconcile.Findings) reconcile.Findings) func(*world, ports) ports {
		return func(w *world, p ports) ports { w.runs.findings = wrong(w.runs.findings); return p }
	}
	return []mistake{
		{
			"a batch is taken from a worker that lives", "runs", takeOverPath(),
			onRunStore(func(s run.Store) run.Store { return greedy{s} }),
		},
		{
			"a run is taken from a manager that lives", "runs", handOffPath(),
			onRunStore(func(s run.Store) run.Store { return greedy{s} }),
		},
		{
			"the watermark is not kept", "runs", handOffPath(),
			onRunStore(func(s run.Store) run.Store { return unmarked{s} }),
		},
		{
			"an outcome is lost", "G1", handOffPath(),
			onRunStore(func(s run.Store) run.Store { return forgetfulStore{s} }),
		},
		{
			"a run is started without its entry in the audit log", "G8", replayPath(),
			onRunStore(func(s run.Store) run.Store { return silent{s} }),
		},
		{
			"the end of a batch has no entry in the audit log", "G8", handOffPath(),
			onRunStore(func(s run.Store) run.Store { return unaudited{s} }),
		},
		{
			"the batches of the dead are not found", "G1", leftBehindPath(),
			onRunStore(func(s run.Store) run.Store { return careless{s} }),
		},
		{
			"runs without a manager are not found", "G1", leftBehindPath(),
			onRunStore(func(s run.Store) run.Store { return blindToRuns{s} }),
		},
		{
			"an unsent message is counted", "G5", handOffPath(),
			onRunStore(func(s run.Store) run.Store { return counting{s} }),
		},
		{
			"what is no finding any more stays one", "findings", reconcilePath(),
			onFindings(func(f reconcile.Findings) reconcile.Findings { return undropped{f} }),
		},
		{"the evidence of a dead letter is lost", "G7", deadLetterPath(), func(_ *world, p ports) ports {
			p.evidence = lossyDeadLetters{p.evidence}
			return p
		}},
	}
}

type greedy struct{ run.Store }

func (s greedy) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, _ time.Duration, a run.Audit,
) (run.Claimed, error) {
	return s.Store.ClaimBatch(ctx, id, t, w, 0, a)
}

func (s greedy) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, _ time.Duration,
) (run.Run, bool, error) {
	return s.Store.ClaimRun(ctx, id, epoch, shown, w, 0)
}

type unmarked struct{ run.Store }

func (s unmarked) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	c.Watermark = ""
	return s.Store.AddChunk(ctx, l, c, audits...)
}

type forgetfulStore struct{ run.Store }

func (s forgetfulStore) SaveOutcomes(
	ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return s.Store.SaveOutcomes(ctx, h, outcomes[1:], details)
}

type unaudited struct{ run.Store }

func (s unaudited) FinishBatch(
	ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit,
) (run.BatchStats, error) {
	return s.Store.FinishBatch(ctx, h, func(n run.BatchStats) run.Audit {
		a := audit(n)
		a.Batch = ""
		return a
	})
}

type silent struct{ run.Store }

func (s silent) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	a.Action = "ANOTHER"
	return s.Store.StartRun(ctx, r, a)
}

type careless struct{ run.Store }

func (careless) Rescue(context.Context, string, time.Duration, time.Duration, int) (int, int, error) {
	return 0, 0, nil
}

type blindToRuns struct{ run.Store }

func (blindToRuns) OpenRuns(context.Context, string, int) ([]run.Run, error) { return nil, nil }

type counting struct{ run.Store }

func (s counting) MarkUnsent(
	ctx context.Context, stored []run.Batch, reason string, _ bool, audit func(run.Batch) run.Audit,
) (int, int, error) {
	return s.Store.MarkUnsent(ctx, stored, reason, true, audit)
}

type undropped struct{ reconcile.Findings }

func (f undropped) Save(ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, _ []reconcile.Key) error {
	return f.Findings.Save(ctx, c, put, nil)
}

type lossyDeadLetters struct{ commit.Evidence }

func (e lossyDeadLetters) Keep(ctx context.Context, name string, content []byte) error {
	if strings.HasSuffix(name, "/message.json") {
		return nil
	}
	return e.Evidence.Keep(ctx, name, content)
}
