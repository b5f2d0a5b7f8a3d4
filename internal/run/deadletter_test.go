package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// messageEvidence is message.json.
type messageEvidence struct {
	Queue         string            `json:"queue"`
	MessageID     string            `json:"message_id"`
	DeliveryCount int               `json:"delivery_count"`
	Reason        string            `json:"reason"`
	Properties    map[string]string `json:"properties"`
	BodyBytes     int               `json:"body_bytes"`
	BodyNote      string            `json:"body_note"`
}

// readEvidence reads the only evidence in the store.
func (w *world) readEvidence() (folder string, body []byte, l messageEvidence) {
	w.t.Helper()
	files := w.evidence.Files()
	require.Len(w.t, files, 2, "%v", slices.Collect(maps.Keys(files)))
	for name := range files {
		folder = name[:strings.LastIndex(name, "/")]
	}
	require.NoError(w.t, json.Unmarshal(files[folder+"/message.json"], &l))
	return folder, files[folder+"/body"], l
}

func (w *world) lastAudit() run.Audit {
	w.t.Helper()
	all := w.store.Audits()
	require.NotEmpty(w.t, all)
	return all[len(all)-1]
}

func TestAnUnusableMessageIsDeadLetteredAtOnce(t *testing.T) {
	t.Parallel()
	batch := strings.Repeat("0", 64)
	for name, c := range map[string]struct{ body, reason string }{
		"malformed": {`{"message_version":1`, "expected a JSON object, found 20 bytes"},
		"no text":   {"\xff\xfe\x00", "3 bytes that are not text"},
		"nothing":   {"", "found nothing"},
		"oversized": {
			`{"message_version":1,"x":"` + strings.Repeat("x", run.MaxBody) + `"}`, "at most 65536 bytes",
		},
		"unknown version": {`{"message_version":2,"message_kind":"batch"}`, "found 2"},
		"wrong kind": {
			`{"message_version":1,"message_kind":"run","sys_name":"web","run_id":"r"}`, `expected "batch", found "run"`,
		},
		"another environment": {
			`{"message_version":1,"message_kind":"batch","sys_name":"WEB","run_id":"r","batch_id":"` + batch + `"}`,
			`expected "web", found "WEB"`,
		},
		"unknown batch": {
			`{"message_version":1,"message_kind":"batch","sys_name":"web","run_id":"r","batch_id":"` + batch + `"}`,
			"expected a batch in the table batch, found none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				i := w.instance("w")
				in := run.Incoming{
					ID: "id/1 ü", Body: []byte(c.body), Count: 3, EnqueuedAt: time.Now(),
					Properties: map[string]string{"p": "v"},
				}
				h, err := i.workers.Receive(t.Context(), in)
				require.NoError(t, err, "it is done with")
				require.Equal(t, "dead_lettered", h.Did)
				require.Contains(t, h.Reason, c.reason)
				require.Equal(t, name == "another environment", h.Foreign, "Health counts it")
				folder, body, l := w.readEvidence()
				require.Equal(t, c.body, string(body))
				require.True(t, strings.HasPrefix(folder, "dead-letters/batches/2000-01-01/"), folder)
				require.Equal(t,
					messageEvidence{"batches", "id/1 ü", 3, h.Reason, map[string]string{"p": "v"}, len(c.body), ""}, l)
				a := w.lastAudit()
				require.Equal(t, []string{run.CodeDeadLetter, run.LevelWarn, "", ""},
					[]string{a.Action, a.Level, a.Run, a.Batch})
				require.Contains(t, a.Why, c.reason)
				require.Contains(t, string(a.Detail), folder)

				_, err = i.workers.Receive(t.Context(), in)
				require.NoError(t, err)
				again, _, _ := w.readEvidence()
				require.Equal(t, folder, again, "done twice it is the same")

				h, err = i.manager.Receive(t.Context(), in)
				require.NoError(t, err)
				require.Equal(t, "dead_lettered", h.Did)
				require.Len(t, w.evidence.Files(), 4, "the manager's too, in a folder of its own")
			})
		})
	}
}

// The sender of a dead letter writes its reason, of any length. All of it is in the evidence, one short line elsewhere.
func TestADeadLetterReasonIsTruncatedOutsideTheEvidence(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"a batch's message": "", "no message": "[]"} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				w.handedOff()
				var log bytes.Buffer
				w.log = zerolog.New(&log)
				in := w.batchMessage(1, run.FirstAttempt)
				if body != "" {
					in.Body = []byte(body)
				}
				long := "bell\a line\n\u202eodd \xff" + strings.Repeat("é", 5000) + "END"
				in.Properties = map[string]string{"DeadLetterReason": "Why\r\n", "DeadLetterErrorDescription": long}
				h, err := w.instance("l").batchDead.Receive(t.Context(), in)
				require.NoError(t, err)
				line := "Why??: bell? line??odd \ufffd" + strings.Repeat("é", 85) + "…"
				if body != "" {
					line += " (body: expected a JSON object or base64 of one, found a JSON array)"
				}
				require.Equal(t, line, h.Reason)
				require.Equal(t, "dead letter: "+line, w.lastAudit().Why)
				if body == "" {
					require.Equal(t, "dead letter: "+line, w.batchOf(1).Error)
				}
				require.NotContains(t, log.String(), "END")
				require.Less(t, log.Len(), 1000)
				_, _, l := w.readEvidence()
				require.Contains(t, l.Reason, strings.Repeat("é", 5000)+"END")
				require.Equal(t, strings.ToValidUTF8(long, "\ufffd"), l.Properties["DeadLetterErrorDescription"])
			})
		})
	}
}

// The host decodes a body as UTF-8 before it calls the app, so the body may not be as it was sent.
func TestEvidenceNotesReplacedBytes(t *testing.T) {
	t.Parallel()
	for body, note := range map[string]string{
		"{\"a\":\"\ufffd\"}": "the host replaced bytes that are not UTF-8 before the app received them",
		"{\"a\":\"ü\"}":      "", "\xff": "",
	} {
		simulate(t, func(t *testing.T, w *world) {
			_, err := w.instance("w").workers.Receive(t.Context(), run.Incoming{ID: "x", Body: []byte(body)})
			require.NoError(t, err)
			_, kept, l := w.readEvidence()
			require.Equal(t, body, string(kept))
			require.Equal(t, note, l.BodyNote)
		})
	}
}

func TestAMessageOfAnUnknownRunIsDeadLettered(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		m := run.RunPayload(run.Run{ID: "nobody's", SysName: sysName}).Outgoing(0)
		h, err := w.instance("m").manager.Receive(t.Context(), run.Incoming{ID: m.ID, Body: m.Body, Count: 1})
		require.NoError(t, err)
		require.Equal(t, "dead_lettered", h.Did)
		folder, _, _ := w.readEvidence()
		require.True(t, strings.HasPrefix(folder, "dead-letters/runs/undated/"), folder)
	})
}

// A message that always fails is a dead letter after ten deliveries. Its batch or run then fails with the reason.
func TestPoisonMessagesEndAsDeadLetters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op string
		b  func(w *world) *bus
	}{{"ClaimBatch", func(w *world) *bus { return w.batches }}, {"Run", func(w *world) *bus { return w.runs }}} {
		t.Run(c.op, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				w.onUse(func(_ context.Context, i *instance, op string) error {
					if op == c.op && i.name == "x" {
						return fault.New(fault.Internal, "test: store", "broken", "this always fails")
					}
					return nil
				})
				w.instance("x").manage().work()
				w.instance("l").deadLetters()
				w.instance("timer").tick()
				w.start(run.Run{}, run.Filter{})
				w.waitForEnd("run-1", 10*time.Minute)
				require.Equal(t, 10, c.b(w).MostDeliveries())
				_, _, l := w.readEvidence()
				require.Equal(t, "MaxDeliveryCountExceeded", l.Properties["DeadLetterReason"])
				require.Contains(t, l.Reason, "MaxDeliveryCountExceeded: Message could not be consumed")
				require.Equal(t, 10, l.DeliveryCount)
				r := w.run("run-1")
				if c.op == "Run" {
					require.Equal(t, run.RunFailed, r.Status)
					require.Contains(t, r.Error, "MaxDeliveryCountExceeded")
					require.Equal(t, []string{run.CodeRunStart, run.CodeDeadLetter}, w.codes("run-1", ""))
					return
				}
				require.Equal(t, run.RunCompletedWithFailures, r.Status)
				require.Equal(t, run.Failed, w.batchOf(1).Status)
				require.Contains(t, w.batchOf(1).Error, "MaxDeliveryCountExceeded")
				codes := w.codes("run-1", w.batchOf(1).ID)
				require.Equal(t, run.CodeDeadLetter, codes[len(codes)-1])
				w.checkTransitions()
			})
		})
	}
}

// deadLetter is a batch's message as the dead-letter queue delivers it.
func (w *world) deadLetter(n, attempt int) run.Incoming {
	in := w.batchMessage(n, attempt)
	in.Count, in.Properties = 11, map[string]string{"DeadLetterReason": "MaxDeliveryCountExceeded"}
	return in
}

func TestEvidenceComesBeforeState(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		i := w.instance("l")
		in := w.deadLetter(1, run.FirstAttempt)
		for n := 1; n <= 2; n++ { // neither file can be missing
			keeps := 0
			w.onUse(func(_ context.Context, _ *instance, op string) error {
				if op == "Keep" {
					if keeps++; keeps >= n {
						return fault.New(fault.Quota, "test: keep", "full", "the store is full")
					}
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, err := i.batchDead.Receive(ctx, in)
			cancel()
			require.True(t, fault.IsDependency(err))
			require.Equal(t, run.Queued, w.batchOf(1).Status)
		}
		w.onUse(nil)
		first := w.evidence.Files()
		_, err := i.batchDead.Receive(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, run.Failed, w.batchOf(1).Status)
		require.Equal(t, "dead letter: MaxDeliveryCountExceeded", w.batchOf(1).Error)
		require.Len(t, first, 1)
		w.readEvidence()
		require.Equal(t, run.CodeDeadLetter, w.lastAudit().Action)
		require.Equal(t, run.LevelError, w.lastAudit().Level)

		before := w.batchOf(1)
		_, err = i.batchDead.Receive(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, before, w.batchOf(1), "done twice it is the same")
		w.readEvidence()
		require.Equal(t, run.LevelWarn, w.lastAudit().Level, "the second entry says that nothing was changed")
	})
}

func TestARunsDeadLetterFailsItUnlessALaterManagerHasIt(t *testing.T) {
	t.Parallel()
	for _, handedOff := range []bool{false, true} {
		simulate(t, func(t *testing.T, w *world) {
			w.fakeWrites(100)
			w.start(run.Run{}, run.Filter{})
			in, ok := w.runs.Take()
			require.True(t, ok)
			if handedOff {
				_, err := w.instance("m").manager.Receive(t.Context(), in)
				require.NoError(t, err)
			}
			in.Properties = map[string]string{"DeadLetterReason": "TTLExpiredException"}
			_, err := w.instance("l").runDead.Receive(t.Context(), in)
			require.NoError(t, err)
			if handedOff {
				require.Equal(t, run.RunRunning, w.run("run-1").Status)
				return
			}
			require.Equal(t, run.RunFailed, w.run("run-1").Status)
			require.Equal(t, "dead letter: TTLExpiredException", w.run("run-1").Error)

			w.must(w.store.ResumeRun(t.Context(), "run-1", audit(run.CodeRunResume)))
			w.notify("run-1")
			w.instance("m").manage().work()
			w.waitForEnd("run-1", time.Minute)
			w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		})
	}
}

// A manager that could not go on has released the run and sent a later message.
func TestADeadLetterOfAnEarlierMessageFailsNoRun(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.start(run.Run{}, run.Filter{})
		in, _ := w.runs.Take()
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Page" {
				return fault.New(fault.Infrastructure, "test: page", "refused", "no answer")
			}
			return nil
		})
		done, err := w.instance("m").manager.Receive(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, "deferred", done.Did)
		_, err = w.instance("l").runDead.Receive(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, run.RunRunning, w.run("run-1").Status)
	})
}

// A dead-letter queue has no limit of deliveries. A letter that cannot be handled is held.
func TestADeadLetterIsHeldDuringAnOutage(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"blob storage", "SQL"} {
		t.Run(away, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				w.handedOff()
				var keeps atomic.Int64
				w.onUse(func(_ context.Context, _ *instance, op string) error {
					if op != "Keep" {
						return nil
					}
					if keeps.Add(1); away == "blob storage" {
						return fault.New(fault.Infrastructure, "test: keep", "refused", "no answer")
					}
					return nil
				})
				w.sql(away != "SQL")
				w.batches.PutLetter(w.deadLetter(1, run.FirstAttempt))
				i := w.instance("l").deadLetters()
				if away == "SQL" {
					w.instance("timer").tick() // whose heartbeats open the breaker
				}
				begin := time.Now()
				time.Sleep(time.Hour)
				calls := w.ended("BatchDeadLetter")
				require.InDelta(t, 15, len(calls), 1, "one in four minutes")
				for _, c := range calls {
					require.Equal(t, "held", c.done.Did)
					require.True(t, fault.IsDependency(c.err))
				}
				require.LessOrEqual(t, keeps.Load(), int64(4*60+20))
				if away == "SQL" {
					w.askedAtMostEveryMinute(begin.Add(6*time.Minute), time.Now())
				}
				require.Equal(t, run.Queued, w.batchOf(1).Status)
				w.onUse(nil)
				w.sql(true)
				w.until(6*time.Minute, "put aside", func() bool { return w.batchOf(1).Status == run.Failed })
				require.False(t, i.isOpen())
				w.readEvidence()
			})
		})
	}
}

func TestEvidenceNamesAreValidForAnyMessageID(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		i := w.instance("w")
		for k, id := range []string{"", ".", "..", "a/../b", strings.Repeat("é", 200), "x\x00y", "ends."} {
			_, err := i.workers.Receive(t.Context(), run.Incoming{ID: id, Body: []byte(fmt.Sprint(k))})
			require.NoError(t, err)
			require.Len(t, w.evidence.Files(), 2*(k+1))
		}
	})
}

// A lost race is retried, and the audit entry is that of the attempt that succeeded.
func TestADeadLetterAuditsItsLastAttempt(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		c, err := w.store.ClaimBatch(t.Context(), w.batchOf(1).ID, run.Ticket{},
			run.Worker{ID: "worker-00000001", Instance: "w"}, time.Minute, run.Audit{Action: run.CodeBatchStart})
		require.NoError(t, err)
		writes := 0
		w.onUse(func(ctx context.Context, _ *instance, op string) error {
			if op != "Write" {
				return nil
			}
			writes++
			require.NoError(t, w.store.ReleaseBatch(ctx, c.Lease, run.Audit{Action: run.CodeBatchReleased}))
			return fault.New(fault.Contention, "test: store", "1205", "a deadlock")
		})
		_, err = w.instance("l").batchDead.Receive(t.Context(), w.deadLetter(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, 1, writes, "it changed nothing at first: its worker was alive")
		require.Equal(t, run.Failed, w.batchOf(1).Status)
		require.Equal(t, []string{run.CodeDeadLetter, run.LevelError},
			[]string{w.lastAudit().Action, w.lastAudit().Level})
	})
}
