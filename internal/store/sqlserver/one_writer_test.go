package sqlserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/fill"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

// Without a server, too: the lock is the first statement of the transactions that write the user's tables, and of no
// other.
func TestTheLockOfTheOneWriterIsTheFirstOfItsTransaction(t *testing.T) {
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	var locks []string
	for name, p := range set {
		for i, s := range p.Steps {
			if s.Name == "one_writer" {
				locks = append(locks, name)
				require.Equal(t, "transaction", p.Steps[i-1].Name)
			}
		}
	}
	slices.Sort(locks)
	require.Equal(t, []string{"apply", "rewrite"}, locks)
}

// withOneWriter is the database with a store of an instance that has ONE_WRITER.
func (d *database) withOneWriter(t testing.TB, dsn string) *database {
	t.Helper()
	other := *d
	var err error
	other.store, err = sqlserver.Open(context.Background(), dsn,
		sqlserver.Options{Mapping: mapping.InUse(), LockTimeout: lockTimeout, OneWriter: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.store.Close()) })
	return &other
}

// refuseTwo refuses a transaction that writes IVCE_DTL while another one does.
func (d *database) refuseTwo(t testing.TB) {
	t.Helper()
	d.spy.Exec(t, `CREATE TRIGGER dbo.refuse_two ON dbo.IVCE_DTL AFTER UPDATE AS
		BEGIN
			DECLARE @alone int;
			EXEC @alone = sp_getapplock
				@Resource = N'test.refuse_two', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 0;
			IF @alone < 0 THROW 50001, N'another transaction writes', 1;
		END`)
}

// takeTurn is the lock of another session that writes.
const takeTurn = `DECLARE @granted int;
EXEC @granted = sp_getapplock
    @Resource = N'sqlwriter.one_writer', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 0;
IF @granted < 0 THROW 50002, N'no turn', 1;`

func TestOneWriter(t *testing.T) {
	d := newDatabase(t)
	t.Run("one transaction writes at a time", d.oneAtATime)
	t.Run("what waits", d.whatWaits)
	t.Run("three instances", d.threeInstances)
}

// While one instance is within its transaction, another one that would write waits and is told so.
func (d *database) oneAtATime(t *testing.T) {
	one := d.withOneWriter(t, d.dsn)
	for name, c := range map[string]struct {
		d    *database
		code string
	}{
		"several may": {d, "50001"},
		"one may":     {one, "one_writer"},
		"a wrong call": {one.without(t, "apply", map[string]string{
			"@LockTimeout = 500;": "@LockTimeout = 500; IF @granted < 0 SET @granted = -999;",
		}), "one_writer_call"},
		"without the lock": {one.without(t, "apply", map[string]string{"IF @one_writer = 1": "IF 1 = 0"}), "50001"},
	} {
		t.Run(name, func(t *testing.T) {
			h := c.d.harness(t)
			c.d.refuseTwo(t)
			h.AddLines(t, 1, 2)
			second := []commit.Item{sqltest.Item("b", 11, 2)}
			h.During(t, "detail_update", func(in conformance.Inside) {
				_, err := in.Sink.Apply(t.Context(), second, commit.Write, breaker.Heartbeat{})
				require.Equal(t, c.code, fault.CodeOf(err), "%v", err)
				require.Equal(t, c.code == "one_writer", breaker.IsRefusal(err) && fault.IsDependency(err))
				_, found := h.Ledger(t, 2)
				require.False(t, found, "it did nothing")
			})
			for _, items := range [][]commit.Item{{sqltest.Item("a", 10, 1)}, second} {
				outcomes, err := h.Sink.Apply(t.Context(), items, commit.Write, breaker.Heartbeat{})
				require.NoError(t, err)
				require.Equal(t, invoice.OutcomeApplied, outcomes[0].Verdict)
			}
		})
	}
}

// Marks and rewrites wait, too. A heartbeat and a preview do not, nor does an instance without the setting.
func (d *database) whatWaits(t *testing.T) {
	one := d.withOneWriter(t, d.dsn)
	h := one.harness(t)
	h.AddLines(t, 1)
	unlock := sqltest.Holding(t, d.db, takeTurn)
	item := sqltest.Item("a", 10, 1)
	mark := item
	mark.FailureMark = true
	try := func(it commit.Item, mode commit.Mode) error {
		_, err := h.Sink.Apply(t.Context(), []commit.Item{it}, mode, breaker.Heartbeat{SysName: "web"})
		return err
	}
	for _, err := range []error{
		try(item, commit.Write), try(mark, commit.Write), try(item, commit.Rewrite),
	} {
		require.Equal(t, "one_writer", fault.CodeOf(err), "%v", err)
	}
	require.NoError(t, try(item, commit.Preview))
	_, err := h.Sink.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	_, err = d.store.Apply(t.Context(), []commit.Item{item}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	unlock()
	require.NoError(t, try(item, commit.Rewrite))
}

// seen is a sink that counts the documents of each request, and those requests that waited in vain.
type seen struct {
	commit.Sink
	waited func()

	mu    *sync.Mutex
	sizes *[]int
}

func (s seen) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	out, err := s.Sink.Apply(ctx, items, mode, known)
	s.mu.Lock()
	defer s.mu.Unlock()
	if breaker.IsRefusal(err) {
		s.waited()
		return out, err
	}
	*s.sizes = append(*s.sizes, len(items))
	return out, err
}

// slow makes a transaction last longer than others wait for their turn.
const slow = `DECLARE @until datetime2(3) = DATEADD(MILLISECOND, 1500, SYSUTCDATETIME()), @turns int = 0;
WHILE SYSUTCDATETIME() < @until AND @turns < 10000000
    SET @turns = @turns + 1;`

// Three instances with two batches each, one of them slow, and a writer that dies with the lock: the transactions come
// one after the other, and nobody pays for a wait.
func (d *database) threeInstances(t *testing.T) {
	const documents, size, instances, batchesAtOnce = 1000, 100, 3, 2
	h := d.harness(t)
	d.refuseTwo(t)
	stores := []*sqlserver.Store{}
	for range instances {
		stores = append(stores, d.withOneWriter(t, d.dsn).store)
	}
	var err error
	stores[0], err = stores[0].With(t.Context(), "detail_update", slow)
	require.NoError(t, err)

	for i, s := range stores { // an engine may compile a procedure for each connection
		line := documents + 1 + int64(i)
		h.AddLines(t, line)
		items := []commit.Item{sqltest.Item("first", 10, line)}
		_, err := s.Apply(t.Context(), items, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err)
	}
	proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, d.dsn))
	dying := d.withOneWriter(t, sqlservertest.WithAddress(t, d.dsn, proxy.Address()))
	sqltest.Holding(t, dying.store.DB(), takeTurn)

	docs, control, told := inmem.NewDocuments(time.Now), inmem.NewControl(), &bytes.Buffer{}
	batches, ids, lines := make(chan []json.RawMessage, documents/size), []string{}, []int64{}
	for from := int64(1); from < documents; from += size {
		var batch []json.RawMessage
		for line := from; line < from+size; line++ {
			id := fmt.Sprintf("2025-12-17 10:00:00.%06d-06:00-0001-%d", line, line)
			require.NoError(t, docs.Put(json.RawMessage(fill.Document(fmt.Sprintf(
				`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
				"process_output":{"invoice_line_status":"RC-AI"},"sql_writer":{"status":"pending","retry_count":0}}`, id, line)))))
			raw, err := docs.Read(t.Context(), id)
			require.NoError(t, err)
			batch, ids, lines = append(batch, raw), append(ids, id), append(lines, line)
		}
		batches <- batch
	}
	close(batches)
	h.AddLines(t, lines...)

	var mu sync.Mutex
	var sizes []int
	waits, log := 0, zerolog.New(zerolog.SyncWriter(told))
	var group sync.WaitGroup
	breakers := make([]*breaker.Breaker, instances)
	for i, store := range stores {
		sink := seen{Sink: store, mu: &mu, sizes: &sizes, waited: func() {
			if waits++; waits == instances {
				proxy.Cut()
			}
		}}
		breakers[i] = breaker.New(control, breaker.Options{
			Instance: fmt.Sprint("i", i), Build: "v1", SysName: "web", Serial: true, Log: log,
			Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver,
		})
		c := commit.NewCommit(docs, sink, commit.Options{
			SysName: "web", Reader: mapping.Reader(), Breaker: breakers[i], Log: log, PartsAtOnce: 4,
		})
		for range batchesAtOnce {
			group.Go(func() {
				for batch := range batches {
					for retry := 0; ; retry++ {
						report, err := c.Run(t.Context(),
							commit.Delivery{Documents: batch, RetryCount: retry, Received: time.Now()})
						if !breaker.IsRefusal(err) {
							assert.NoError(t, err)
							assert.Equal(t, map[invoice.Outcome]int{"applied": size}, report.Outcomes)
							break
						}
					}
				}
			})
		}
	}
	group.Wait()
	t.Logf("%d requests waited in vain", waits)
	require.Greater(t, waits, instances, "the slow one was waited for, too")
	require.Equal(t, slices.Repeat([]int{size}, documents/size), sizes, "nothing was divided or sent again")
	for _, b := range breakers {
		require.Empty(t, b.Unaudited(t.Context()))
	}
	require.Equal(t, documents, bytes.Count(told.Bytes(), []byte(`"event":"document_committed"`)))
	require.Equal(t, documents, bytes.Count(told.Bytes(), []byte{'\n'}), "and nothing else is told")
	for _, id := range ids {
		raw, err := docs.Read(t.Context(), id)
		require.NoError(t, err)
		var doc struct {
			State struct {
				Status   string            `json:"status"`
				Retries  int               `json:"retry_count"`
				Attempts []json.RawMessage `json:"attempts"`
			} `json:"sql_writer"`
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		require.Equal(t, []any{"committed", 0, 0}, []any{doc.State.Status, doc.State.Retries, len(doc.State.Attempts)})
	}
}
