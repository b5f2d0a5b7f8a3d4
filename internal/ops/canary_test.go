package ops_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// cage is a container that has canaries, with a feed that marks each after a time; never if that is zero.
type cage struct {
	*inmem.Documents
	marks time.Duration
	mark  commit.Seen
	// createErr, readErr and deleteErr are what the calls answer.
	createErr, readErr, deleteErr error
	// slow is how long it takes to delete. To create takes twice as long.
	slow time.Duration

	created time.Time
	id      string
}

func (c *cage) CreateCanary(_ context.Context, id, sysName string) error {
	time.Sleep(2 * c.slow)
	c.created, c.id = time.Now(), id
	return cmp.Or(c.Put(json.RawMessage(canaryOf(id, sysName))), c.createErr)
}

func canaryOf(id, sysName string) string {
	return fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":%q}}`, id, sysName)
}

func (c *cage) Read(ctx context.Context, id string) (json.RawMessage, error) {
	if c.marks > 0 && time.Since(c.created) >= c.marks {
		return json.Marshal(map[string]any{"id": id, "seen": c.mark})
	}
	raw, err := c.Documents.Read(ctx, id)
	return raw, cmp.Or(c.readErr, err)
}

func (c *cage) Delete(ctx context.Context, id string) error {
	time.Sleep(c.slow)
	if ctx.Err() == nil {
		c.Documents.Delete(id)
	}
	return c.deleteErr
}

// fill puts documents there, one of them an old canary, and gives the ids of the others. Another call may wait for a
// canary of two minutes.
func (c *cage) fill(t *testing.T) []string {
	t.Helper()
	c.Documents = inmem.NewDocuments(time.Now)
	put := func(id, sysName string, more ...string) string {
		doc := strings.TrimSuffix(canaryOf(id, sysName), "}") + strings.Join(more, "") + "}"
		require.NoError(t, c.Put(json.RawMessage(doc)))
		return id
	}
	put(commit.CanaryPrefix+"old", "canary:web")
	others := []string{
		put("other", "canary:web"), put(commit.CanaryPrefix+"dev", "canary:dev"), put(commit.CanaryPrefix+"web", "web"),
		put(commit.CanaryPrefix+"state", "canary:web", `,"sql_writer":{"status":"committed"}`),
		put(commit.CanaryPrefix+"line", "canary:web", `,"invoice_details_from_rpa":{"IVCE_DTL_UID":7}`),
		put(commit.CanaryPrefix+"lines", "canary:web", `,"post-processing":{"duplicate_detail_uids":[7]}`),
	}
	time.Sleep(70 * time.Second) // of the bubble
	others = slices.Insert(others, 1, put(commit.CanaryPrefix+"young", "canary:web"))
	time.Sleep(2 * time.Minute)
	return others
}

// left are the ids of the documents that are there.
func (c *cage) left(t *testing.T) (ids []string) {
	t.Helper()
	for _, sysName := range []string{"canary:web", "canary:dev", "web"} {
		page := must(c.Find(t.Context(), commit.Query{SysName: sysName, To: 1 << 40, Size: 9}, ""))(t)
		for _, d := range page.Documents {
			ids = append(ids, must(invoice.Reader{}.Read(json.RawMessage(d), time.Now()))(t).ID)
		}
	}
	return ids
}

// ops is an app that began at a time, by the clock of the test's bubble.
func (c *cage) ops(w *world, readOnly string, began time.Time) *ops.Ops {
	now := func() time.Time { return began }
	o := ops.New(ops.Ports{
		Breaker: w.breaker, Finder: c, Canaries: c,
		CanaryFailed: func(err error) ops.DoctorRow {
			return ops.DoctorRow{State: ops.RowWrong, Found: err.Error(), Do: "mend " + fault.CodeOf(err)}
		},
	}, ops.Options{SysName: "web", ReadOnly: readOnly, Now: func() time.Time { return now() }})
	now = time.Now
	return o
}

// look looks at the row of the feed.
func (c *cage) look(ctx context.Context, w *world, readOnly string, began time.Time) ops.DoctorRow {
	return ops.LookFeed(ctx, c.ops(w, readOnly, began))
}

func TestTheRowOfTheFeed(t *testing.T) {
	refused := fault.New(fault.Infrastructure, "test", "refused", "it says no")
	for name, c := range map[string]struct {
		cage             cage
		harm             func(t *testing.T, w *world)
		state, found, do string
		took             time.Duration
	}{
		"marked": {
			cage:  cage{marks: time.Second, mark: commit.Seen{Build: "v2", Instance: "b"}, readErr: refused},
			state: ops.RowOK, found: "seen after 900 ms, patched after 1000 ms by b, build v2", took: time.Second,
		},
		"not marked": {
			state: ops.RowWrong, found: "no mark within 30s, and nothing holds the feed", do: ops.Restart, took: 30 * time.Second,
		},
		"a batch waits": {
			harm:  func(t *testing.T, w *world) { w.breaker.NoteDependency(t.Context(), ops.DepSQL, refused) },
			state: ops.RowNotYet, found: "SQL fails since ", do: "sqlwriterctl explain refused",
			took: 200 * time.Millisecond,
		},
		"the breaker is open": {
			harm:  func(_ *testing.T, w *world) { w.open(fault.Quota, "9002") },
			state: ops.RowNotYet, found: "flow_stopped: ", do: "sqlwriterctl explain 9002",
		},
		"paused": {
			harm: func(t *testing.T, w *world) {
				require.NoError(t, w.breaker.Pause(t.Context(), "ann", "a migration"))
			},
			state: ops.RowNotLooked, found: "paused by ann since ", do: "sqlwriterctl flow resume --why TEXT",
		},
		"nobody can look at it": {
			cage:  cage{readErr: refused},
			state: ops.RowWrong, found: "it says no", do: "mend refused", took: 30 * time.Second,
		},
		"perhaps created": {
			cage: cage{createErr: refused}, state: ops.RowWrong, found: "it says no", do: "mend refused",
		},
		"it cannot be deleted": {
			cage:  cage{marks: time.Second, deleteErr: refused},
			state: ops.RowWrong, found: "it says no", do: "mend refused", took: time.Second,
		},
		"a key that no canary has": {
			cage:  cage{createErr: fault.New(fault.Document, "test", "partition_key", "not on /id/of")},
			state: ops.RowNotLooked, found: "not on /id/of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, kept := newWorld(t), c.cage.fill(t)
				w.clock = time.Now()
				if c.harm != nil {
					c.harm(t, w)
				}
				began := time.Now()
				c.cage.mark.At = began.Add(900 * time.Millisecond)
				row := c.cage.look(t.Context(), w, "", began.Add(-time.Hour))
				require.Equal(t, c.state, row.State, "%+v", row)
				require.Contains(t, row.Found, c.found)
				require.Equal(t, c.do, row.Do)
				require.Equal(t, c.took, time.Since(began))
				sent := c.took > 0 || c.cage.createErr != nil
				require.Equal(t, sent, strings.HasPrefix(c.cage.id, commit.CanaryPrefix))
				require.ElementsMatch(t, append(kept, commit.CanaryPrefix+"old"), c.cage.left(t), "its own is deleted")
			})
		})
	}
}

// What killed calls left is deleted, whatever the flow does. In a shadow it stays.
func TestOldCanariesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := cage{}, newWorld(t)
		kept := c.fill(t)
		require.NoError(t, w.breaker.Pause(t.Context(), "ann", "a migration"))
		require.NoError(t, c.ops(w, "MODE=shadow", time.Now()).DeleteCanaries(t.Context()))
		require.Contains(t, c.left(t), commit.CanaryPrefix+"old")
		c.deleteErr = fault.New(fault.Infrastructure, "test", "refused", "it says no")
		require.Equal(t, c.deleteErr, c.ops(w, "", time.Now()).DeleteCanaries(t.Context()))
		c.deleteErr = nil
		require.NoError(t, c.ops(w, "", time.Now()).DeleteCanaries(t.Context()))
		require.ElementsMatch(t, kept, c.left(t))
	})
}

// An app that has just begun waits longer, but the row ends in time for the others. A shadow sends nothing. A caller
// who goes away leaves nothing, and one whose mark is of a clock that is ahead is told no time that nobody waited.
func TestTheRowOfTheFeedInOtherCases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cage{marks: 80 * time.Second}
		c.fill(t)
		began := time.Now()
		c.mark.At = began.Add(time.Hour)
		row := c.look(t.Context(), newWorld(t), "", began)
		require.Contains(t, row.Found, "seen after 80000 ms, patched after 80000 ms")

		c = cage{slow: 7 * time.Second}
		c.fill(t)
		began = time.Now()
		row = c.look(t.Context(), newWorld(t), "", began)
		require.Contains(t, row.Found, "no mark within 1m30s")
		require.Equal(t, 97*time.Second, time.Since(began).Truncate(time.Second))

		row = c.look(t.Context(), newWorld(t), "MODE=shadow", began)
		require.Equal(t, ops.DoctorRow{State: ops.RowNotLooked, Found: "shadow: not sent, and none that is left is deleted"}, row)

		c.slow = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		c.look(ctx, newWorld(t), "", began)
		require.Equal(t, time.Second, time.Since(began))
		require.NotEmpty(t, c.id)
		require.NotContains(t, c.left(t), c.id)
	})
}
