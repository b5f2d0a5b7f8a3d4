package storybook

import (
	"fmt"
	"net/url"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// counts are those of the last tick.
func counts() *ops.Counts {
	return &ops.Counts{
		At: Ago(3 * time.Minute), EverySeconds: 300, Due: 2, PoisonLastHour: 1,
		Depth: map[invoice.Status]ops.Count{
			invoice.Pending: {Documents: 12_403, AtLeast: true}, invoice.RetryScheduled: {Documents: 51},
			invoice.Failed: {Documents: 3}, invoice.Processing: {},
		},
		Oldest: &ops.Oldest{ID: waitingDocument, Status: invoice.Pending, Since: Ago(4 * time.Minute), AgeSeconds: 240},
		Groups: []ops.Group{
			{
				Status: invoice.RetryScheduled, Kind: "document", Code: "validation.too_long",
				Documents: ops.Count{Documents: 31}, First: Ago(33 * time.Minute), Last: Ago(2 * time.Minute),
				Sample: waitingDocument, Line: 1421549, Retry: "sqlwriterctl document retry ...",
			},
			{
				Status: invoice.RetryScheduled, Kind: "document", Code: "missing_detail_row",
				Documents: ops.Count{Documents: 12}, First: Ago(2 * time.Hour), Last: Ago(3 * time.Minute),
				Sample: waitingDocument, Line: 1421702, Retry: "sqlwriterctl document retry ...",
			},
			{
				Status: invoice.RetryScheduled, Kind: "infrastructure", Code: "refused",
				Documents: ops.Count{Documents: 8}, First: Ago(4 * time.Minute), Last: Ago(time.Minute),
				Sample: waitingDocument, Line: 1421720,
			},
			{
				Status: invoice.Failed, Kind: "document", Code: "2628", Documents: ops.Count{Documents: 3},
				First: Ago(5 * time.Hour), Last: Ago(30 * time.Minute), Sample: waitingDocument,
				Retry: "sqlwriterctl document retry ...",
			},
		},
		Queues: []ops.QueueCount{
			{Queue: "sqlwriter-web-runs"}, {Queue: "sqlwriter-web-batches", DeadLettered: ops.Count{Documents: 1}},
		},
		Findings: &ops.Found{
			Says: "1 open (1 stale); people edited 2 lines, as of 2026-11-22T02:00:09-06:00", Open: 1, Edited: 2,
		},
	}
}

// well is a status when all is well.
func well() ops.Status {
	s := ops.Status{
		SysName: "web", At: Now(),
		Flow: ops.FlowView{State: breaker.Running, Says: "running", Since: Ago(9 * time.Hour)},
		Feed: &ops.Feed{LagSeconds: 1, At: Ago(10 * time.Second)}, Counts: counts(),
	}
	for _, name := range []string{ops.DepCosmos, ops.DepSQL, ops.DepServiceBus, ops.DepBlob, ops.DepTimer} {
		s.Dependencies = append(s.Dependencies,
			ops.DependencyView{Name: name, State: ops.DepOK, SeenAt: Ago(20 * time.Second)})
	}
	s.Counts.Depth = map[invoice.Status]ops.Count{
		invoice.Pending: {Documents: 4}, invoice.RetryScheduled: {}, invoice.Failed: {},
	}
	s.Counts.Groups, s.Counts.Due, s.Counts.PoisonLastHour, s.Counts.Findings = []ops.Group{}, 0, 0, nil
	s.Counts.Oldest = &ops.Oldest{
		ID: waitingDocument, Status: invoice.Pending, Since: Ago(3*time.Minute + 3*time.Second), AgeSeconds: 183,
	}
	return s
}

// stoppedStatus is a status while SQL is away.
func stoppedStatus() ops.Status {
	s := well()
	s.Counts = counts()
	s.Flow = ops.FlowView{
		State: breaker.StoppedFlow,
		Says:  "stopped since 2026-11-22T03:12:05-06:00 (infrastructure refused: connection refused by sql-prod-01), next probe in 38s", Kind: fault.Infrastructure,
		Code: "refused", Reason: "connection refused by sql-prod-01", Since: Ago(62 * time.Second),
		NextProbe: Now().Add(38 * time.Second), HeldBy: "instance 7f3a",
	}
	s.Dependencies[1] = ops.DependencyView{
		Name: ops.DepSQL, State: ops.DepFailing, Kind: fault.Infrastructure, Code: "refused",
		Reason: "connection refused by sql-prod-01", Since: Ago(62 * time.Second),
	}
	s.Attention = []ops.Attention{
		{Code: "flow_stopped", Says: "the flow is " + s.Flow.Says, Page: "The flow"},
		{Code: "poison", Says: "1 document failed for good in the last 60 minutes", Page: "Try failed documents again"},
	}
	s.RunsUnknown = "SQL is not asked while the flow is stopped since 2026-11-22T03:12:05-06:00"
	return s
}

// busyStatus has the most that a page shows.
func busyStatus() ops.Status {
	s := stoppedStatus()
	s.Counts.Groups = nil
	for i := range 20 {
		s.Counts.Groups = append(s.Counts.Groups, ops.Group{
			Status: invoice.Failed, Kind: "document", Code: fmt.Sprintf("validation.code_%02d", i),
			Documents: ops.Count{Documents: 5000 - i*13, AtLeast: i == 0}, First: Ago(48 * time.Hour),
			Last: Ago(time.Duration(i) * time.Minute), Sample: waitingDocument, Line: 1421549 + int64(i),
			Retry: "sqlwriterctl document retry ...",
		})
	}
	s.RunsUnknown = ""
	for i := range 20 {
		s.Runs = append(s.Runs,
			ops.RunState{
				ID: fmt.Sprintf("drain-20261122-0858%02d-4049a34e", i), Kind: run.Drain, Status: run.RunRunning,
				State: ops.RunWaits, Says: "it goes on when SQL answers again", Done: i * 100, Known: 40_000,
			})
	}
	return s
}

// pausedStatus is while an operator has paused the flow.
func pausedStatus() ops.Status {
	paused := stoppedStatus()
	paused.Flow = ops.FlowView{
		State: breaker.PausedFlow, Says: "paused by a.lopez since 2026-11-22T03:00:00-06:00: maintenance of SQL",
		Code: breaker.CodePaused, Reason: "maintenance of SQL, INC-4711", Since: Ago(13 * time.Minute),
		HeldBy: "a.lopez@example.com (1-2-3)",
	}
	paused.Dependencies, paused.RunsUnknown = well().Dependencies, "SQL is not asked while the flow is paused"
	paused.Attention = []ops.Attention{
		{Code: "flow_paused", Says: "the flow is " + paused.Flow.Says, Page: "Hold everything"},
	}
	return paused
}

func overviewStories() []Story {
	answers := func(s ops.Status, audit any) map[string]any {
		today := day()
		s.Day = &today
		return map[string]any{"status.get": s, "audit.list": audit}
	}
	withGaps, noSamples := gaps(), ops.Day{At: Now()}
	withRuns := well()
	withRuns.Runs = []ops.RunState{
		{
			ID: replayRun, Kind: run.Replay, Status: run.RunRunning, State: ops.RunWorks,
			Says: "batch 1 is with a worker", Done: 12, Known: 31,
		},
	}
	paused := pausedStatus()
	refused := stoppedStatus()
	refused.Flow.Code, refused.Flow.Reason = breaker.CodeWentBack,
		"the database's heartbeat is 1763800325000 (2026-11-22T08:32:05Z); the control document knows 1763802725000 (2026-11-22T09:12:05Z)"
	refused.Attention = []ops.Attention{
		{Code: "database_refused", Says: "the flow is " + refused.Flow.Says, Page: "The database went back"},
	}
	ramping := well()
	ramping.Flow = ops.FlowView{State: breaker.RampingUp, Says: "ramping up", Since: Ago(20 * time.Second), Limit: 25}
	lost := ops.Status{
		SysName: "web", At: Now(),
		Flow:          ops.FlowView{State: breaker.Running, Says: "running, as this instance remembers", Lost: true},
		CountsUnknown: "unknown: Cosmos DB does not answer",
		Dependencies: []ops.DependencyView{
			{
				Name: ops.DepCosmos, State: ops.DepFailing, Kind: fault.Infrastructure, Code: "refused",
				Reason: "connection refused", Since: Ago(40 * time.Second),
			},
			{Name: ops.DepSQL, State: ops.DepUnknown},
			{Name: ops.DepServiceBus, State: ops.DepUnknown},
			{Name: ops.DepBlob, State: ops.DepUnknown},
			{Name: ops.DepTimer, State: ops.DepUnknown, Reason: "Cosmos DB does not answer"},
		},
		Attention: []ops.Attention{
			{
				Code: "dependency_failing",
				Says: "cosmos fails since 2026-11-22T03:12:27-06:00 (infrastructure refused): connection refused",
				Page: "A dependency fails",
			},
		},
	}
	silent := well()
	silent.Counts.At, silent.CountsUnknown = Ago(17*time.Minute),
		"unknown: the timer is silent since 2026-11-22T02:56:07-06:00"
	silent.Dependencies[4] = ops.DependencyView{
		Name: ops.DepTimer, State: ops.DepSilent, Reason: "the timer is silent since 2026-11-22T02:56:07-06:00",
		Since: Ago(17 * time.Minute),
	}
	silent.Attention = []ops.Attention{
		{
			Code: "timer_silent",
			Says: "the timer is silent since 2026-11-22T02:56:07-06:00: retries, postponed documents and what the feed missed wait for it", Page: "The timer is silent",
		},
	}
	first := ops.Status{
		SysName: "web", At: Now(), Flow: ops.FlowView{State: breaker.Running, Says: "running"},
		CountsUnknown: "unknown: the timer has not counted yet",
	}
	first.Day = &noSamples
	silentDay := well()
	silentDay.Day = &withGaps
	for _, d := range well().Dependencies {
		first.Dependencies = append(first.Dependencies, ops.DependencyView{Name: d.Name, State: ops.DepUnknown})
	}
	foreign := well()
	foreign.Skipped = []ops.Skipped{
		{SysName: "wbe", Documents: 120, Since: Ago(time.Hour), LastAt: Ago(time.Minute), Sample: waitingDocument},
	}
	hostile := busyStatus()
	hostile.Flow.Reason, hostile.Flow.Says, hostile.Flow.HeldBy, hostile.Flow.Code = Hostile, Hostile, Hostile, Hostile
	hostile.Attention = []ops.Attention{{Code: Hostile, Says: Hostile, Page: Hostile}}
	hostile.Dependencies[1].Reason, hostile.Dependencies[1].Code = Hostile, Hostile
	hostile.Counts.Groups = []ops.Group{{Status: invoice.Failed, Kind: Hostile, Code: Hostile, Sample: Hostile}}
	hostile.Runs = []ops.RunState{{ID: Hostile, Kind: Hostile, Status: Hostile, State: Hostile, Says: Hostile}}
	hostile.Skipped, hostile.CountsUnknown = []ops.Skipped{{SysName: Hostile, Sample: Hostile}}, Hostile
	bad := ops.AuditPage{Audits: []run.Audit{{Action: Hostile, By: Hostile, Why: Hostile}}}
	why := url.Values{"why": {"maintenance of SQL, INC-4711"}}
	return []Story{
		{Name: "overview-flowing", Says: "All is well.", Answers: answers(withRuns, audits())},
		{Name: "overview-stopped", Says: "SQL does not answer.", Answers: answers(stoppedStatus(), SQLAway())},
		{Name: "overview-refused", Says: "SQL is an older copy.", Answers: answers(refused, audits())},
		{
			Name: "overview-gaps", Says: "The timer was silent, and the flow stopped often.",
			Answers: map[string]any{"status.get": silentDay, "audit.list": audits()},
		},
		{Name: "overview-paused", Says: "Somebody paused the flow.", Answers: answers(paused, audits())},
		{Name: "overview-ramping", Says: "SQL is back.", Answers: answers(ramping, audits())},
		{
			Name: "overview-cosmos-away", Says: "Cosmos DB does not answer.",
			Answers: map[string]any{"status.get": lost, "audit.list": audits()},
		},
		{Name: "overview-stale", Says: "The timer is silent.", Answers: answers(silent, audits())},
		{
			Name: "overview-first-start", Says: "Nothing happened yet.",
			Answers: map[string]any{"status.get": first, "audit.list": ops.AuditPage{}},
		},
		{
			Name: "overview-foreign", Says: "Documents of another environment came.", Role: opsapi.Reader,
			Answers: answers(foreign, audits()),
		},
		{Name: "overview-shadow", Says: "A shadow.", Mode: "shadow", Answers: answers(well(), audits())},
		{Name: "overview-busy", Says: "The most that a page shows.", Answers: answers(busyStatus(), audits())},
		{Name: "overview-hostile", Says: "Texts are texts.", Answers: answers(hostile, bad)},
		{Name: "problem-not-found", Says: "A page that is not there.", Path: "nothing"},
		{Name: "pause-asked", Says: "Before the flow is paused.", Path: "pause", Answers: answers(well(), nil)},
		{
			Name: "pause-done", Says: "The browser goes to the overview.", Path: "pause", Form: why,
			Answers: map[string]any{"flow.pause": ops.FlowChange{}},
		},
		{Name: "pause-reader", Says: "A reader may not.", Path: "pause", Role: opsapi.Reader},
		{Name: "resume-asked", Says: "Before the flow is resumed.", Path: "resume", Answers: answers(paused, nil)},
		{
			Name: "resume-conflict", Says: "Another database needs a decision.", Path: "resume", Form: why,
			Answers: map[string]any{
				"status.get": stoppedStatus(),
				"flow.resume": &ops.RequestError{
					Refusal: ops.Conflict,
					Message: "SQL is not the database that was written to last: --force accepts it",
				},
			},
		},
	}
}
