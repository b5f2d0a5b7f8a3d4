package cosmos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/inmem"
)

// keyed starts an emulator and opens a container in it with a partition key of one to three paths.
func keyed(t *testing.T, paths ...string) (*cosmosdbtest.Running, *cosmos.Container) {
	t.Helper()
	server := cosmosdbtest.Start(t)
	c := openOn(t, server, container, false)
	require.NoError(t,
		provision.Make(t.Context(), server.ConnectionString, database,
			provision.Container{Name: container, Key: paths}))
	server.Server.ResetStats()
	return server, c
}

func openOn(t *testing.T, server *cosmosdbtest.Running, name string, own bool) *cosmos.Container {
	t.Helper()
	c, err := cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: database, Container: name, KeyIsID: own})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestDocumentsOnEachPartitionKey(t *testing.T) {
	t.Parallel()
	for name, paths := range map[string][]string{
		"the id":            {"/id"},
		"the request":       {provision.ResultsKey},
		"two levels":        {"/request_details/sys_name", "/request_details/id"},
		"absent everywhere": {"/nowhere/to/be/found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestDocuments(t, func(t *testing.T) conformance.DocumentsHarness {
				_, c := keyed(t, paths...)
				h := documentsOf(c)
				h.MaxBytes = 2 << 20
				return h
			})
		})
	}
}

func TestKeyedDocuments(t *testing.T) {
	t.Parallel()
	conformance.TestKeyedDocuments(t, func(t *testing.T) conformance.KeyedHarness {
		server, c := keyed(t, provision.ResultsKey)
		others := resultsOf(t, server)
		h := documentsOf(c)
		h.Put = func(t testing.TB, doc json.RawMessage) {
			t.Helper()
			require.NoError(t, others.Put(t.Context(), doc))
		}
		return conformance.KeyedHarness{
			DocumentsHarness: h,
			Document: func(id string, key int) json.RawMessage {
				return inRequest(id, fmt.Sprintf(`"R%d"`, key))
			},
			Delete: func(t testing.TB, doc json.RawMessage) {
				t.Helper()
				require.NoError(t, others.DeleteAs(t.Context(), doc))
			},
		}
	})
}

// resultsOf is the container as other programs use it.
func resultsOf(t *testing.T, server *cosmosdbtest.Running) provision.Documents {
	t.Helper()
	client, err := server.Client.NewContainer(database, container)
	require.NoError(t, err)
	return provision.Documents{ContainerClient: client}
}

// inRequest is a document whose request has an id of any JSON type, "" for none.
func inRequest(id, request string) json.RawMessage {
	if request != "" {
		request = `"id":` + request + `,`
	}
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"request_details":{%s"sys_name":"web"}}`, id, request))
}

// readWhole reads a document whole.
func readWhole(t *testing.T, c *cosmos.Container, id string) invoice.Snapshot {
	t.Helper()
	raw, err := c.Read(t.Context(), id)
	require.NoError(t, err)
	doc, err := invoice.Reader{}.ReadSnapshot(raw, time.Now())
	require.NoError(t, err)
	return doc
}

// requireRecorded records a snapshot and requires that this changed the document in the container.
func requireRecorded(t *testing.T, c *cosmos.Container, doc invoice.Snapshot) {
	t.Helper()
	next, err := c.Record(t.Context(), doc, invoice.State{Status: invoice.Committed})
	require.NoError(t, err)
	docs, err := c.ReadMany(t.Context(), []string{doc.ID})
	require.NoError(t, err)
	for _, raw := range docs {
		if d, err := (invoice.Reader{}).Read(raw, time.Now()); err == nil && d.ETag == next &&
			d.State.Status == invoice.Committed {
			return
		}
	}
	t.Fatalf("no document %q has the etag that Record gave: %s", doc.ID, docs)
}

// remade deletes the container and makes it anew with another key, as an administrator does while the app runs.
func remade(t *testing.T, server *cosmosdbtest.Running, paths ...string) {
	t.Helper()
	client, err := server.Client.NewContainer(database, container)
	require.NoError(t, err)
	_, err = client.Delete(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t,
		provision.Make(t.Context(), server.ConnectionString, database,
			provision.Container{Name: container, Key: paths}))
}

// refusedKey requires the error of a partition key that cannot be used. It blames no document.
func refusedKey(t *testing.T, err error, words string) {
	t.Helper()
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "partition_key", fault.CodeOf(err))
	require.Contains(t, err.Error(), words)
}

// committer is the use case over the container and lines 1 to 9 in memory.
func committer(c *cosmos.Container) (*commit.Commit, *inmem.Sink) {
	sink := inmem.NewSink()
	sink.AddLines(1, 2, 3, 4, 5, 6, 7, 8, 9)
	return commit.NewCommit(c, sink, commit.Options{SysName: "web", Log: zerolog.Nop(), Evidence: inmem.NewEvidence()}),
		sink
}

// good is a result of a line; without one, SQL has no such line.
func good(id, request string, line int) json.RawMessage {
	return json.RawMessage(
		fmt.Sprintf(
			`{"id":%q,"request_details":{"id":%q,"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":"ACME","invoice_line_status":"RC-AI"},"sql_writer":{"status":"pending"}}`, id, request, line))
}

// TestPartitionKeyCases has a row for each way in which a partition key other than the id can go wrong.
func TestPartitionKeyCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"the feed records under the key of the requirements: one patch and no read each", keyOfTheFeed},
		{"each value of a key, and an absent one", keyValues},
		{"each text of a key", keyTexts},
		{"a key that the host has rewritten", keyRewritten},
		{"two levels, the second absent", keyAbsentLevel},
		{"a key that cannot be used", keyRefused},
		{"one id twice in a batch", keyTwinsInABatch},
		{"one id twice, in two batches", keyTwinsApart},
		{"a document moved between read and patch", keyMoved},
		{"a container made anew with another key", keyRemade},
		{"a container made anew with more levels", keyRemadeWithLevels},
		{"a container made anew with a key that cannot be used, and then with a good one", keyRemadeBadly},
		{"a projection cannot be recorded", keyProjection},
		{"25 partitions, one of them throttled", keyOnePartitionThrottled},
		{"a repeated member", keyRepeatedMember},
		{"submit never makes a second document with an id", keySubmit},
		{"a container that was missing at the first call", keyMadeLater},
		{"a definition that cannot be read at the first call", keyUnknownAtFirst},
		{"a 404 while a query finds the document", keyNotCaughtUp},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.run(t) })
	}
}

func keyOfTheFeed(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	app, _ := committer(c)
	var batch []json.RawMessage
	for line := 1; line <= 9; line++ {
		id := fmt.Sprintf("2025-12-17 10:30:00.000000-06:00-0001-%d", line)
		require.NoError(t, c.Submit(t.Context(), good(id, "2025-12-17 10:30:00.000000-06:00-0001", line), false))
		raw, err := c.Read(t.Context(), id)
		require.NoError(t, err)
		batch = append(batch, raw)
	}
	server.Server.ResetStats()
	report, err := app.Run(t.Context(), commit.Delivery{Documents: batch, Received: time.Now()})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 9}, report.Outcomes)
	stats := server.Server.Stats()
	require.Len(t, stats, 1, "patches and nothing else: %+v", stats)
	require.Equal(t, 9, server.Server.Count(cosmosdb.OpPatch, container))
}

func keyValues(t *testing.T) {
	_, c := keyed(t, provision.ResultsKey)
	for i, request := range []string{
		"", "null", `""`, "7", "7.0", "-0.5", "1e20", "1e-7", "true", "false", "9007199254740993", `"7"`,
	} {
		id := fmt.Sprint("d", i)
		require.NoError(t, c.Submit(t.Context(), inRequest(id, request), false), request)
		requireRecorded(t, c, readWhole(t, c, id))
	}
	for id, doc := range map[string]string{
		"no parent": `{"id":"no parent"}`, "a text": `{"id":"a text","request_details":"R"}`,
		"a list": `{"id":"a list","request_details":[{"id":1}]}`,
	} {
		require.NoError(t, c.Submit(t.Context(), json.RawMessage(doc), false))
		requireRecorded(t, c, readWhole(t, c, id))
	}
	for _, request := range []string{`{}`, `["R"]`} {
		require.Equal(t, fault.Document, fault.KindOf(c.Submit(t.Context(), inRequest("no scalar", request), false)),
			"the service refuses it: %s", request)
	}
}

func keyTexts(t *testing.T) {
	_, c := keyed(t, provision.ResultsKey)
	for i, request := range []string{
		`say "a"`, `back\slash`, "😀 ünï-日本", "\u007f", "tab\tnew\nline", "<a&b>", " ",
		strings.Repeat("x", 2048), "2025-12-17T10:30:00Z",
	} {
		text, err := json.Marshal(request)
		require.NoError(t, err)
		id := fmt.Sprint("d", i)
		require.NoError(t, c.Submit(t.Context(), inRequest(id, string(text)), false), request)
		requireRecorded(t, c, readWhole(t, c, id))
	}
}

func keyRewritten(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), inRequest("a", `"2025-12-17T10:30:00Z"`), false))
	is := readWhole(t, c, "a")
	rewritten := strings.Replace(string(is.JSON()), "2025-12-17T10:30:00Z", "12/17/2025 10:30:00", 1)
	doc, err := invoice.Reader{}.ReadSnapshot(json.RawMessage(rewritten), time.Now())
	require.NoError(t, err)
	server.Server.ResetStats()
	requireRecorded(t, c, doc)
	require.Equal(t, 2, server.Server.Count(cosmosdb.OpPatch, container),
		"under the key of the snapshot, and under the one that a query found")
}

func keyAbsentLevel(t *testing.T) {
	_, c := keyed(t, "/request_details/sys_name", "/request_details/id")
	require.NoError(t, c.Submit(t.Context(), inRequest("a", ""), false))
	requireRecorded(t, c, readWhole(t, c, "a"))
}

func keyRefused(t *testing.T) {
	for _, path := range []string{"/sql_writer/x", "/_etag", "/_ts/x", "/items/0/id"} {
		server, c := keyed(t, path)
		refusedKey(t, c.Ping(t.Context()), path)
		refusedKey(t, c.Submit(t.Context(), inRequest("a", `"R"`), false), path)
		_, err := c.Read(t.Context(), "a")
		refusedKey(t, err, path)
		_, err = c.Record(t.Context(), at("a", `"1"`), invoice.State{})
		refusedKey(t, err, path)
		require.Zero(t,
			server.Server.Count(cosmosdb.OpPatch, container)+server.Server.Count(cosmosdb.OpCreate, container))
	}
	server, c := keyed(t, provision.ResultsKey)
	own := openOn(t, server, container, true)
	refusedKey(t, own.Ping(t.Context()), "it must be /id")
	_, err := own.HasTimeToLive(t.Context())
	refusedKey(t, err, "it must be /id")
	_, _, err = cosmos.NewControl(own, "web").Load(t.Context())
	refusedKey(t, err, "it must be /id")
	_, err = cosmos.NewCounts(own, "web", false).LoadCounts(t.Context())
	refusedKey(t, err, "it must be /id")
	require.NoError(t, c.Ping(t.Context()))
	require.Equal(t, "/request_details/id", c.PartitionKey())
}

// twins writes two documents with one id, of lines 1 and 2, and gives their snapshots.
func twins(t *testing.T, server *cosmosdbtest.Running, c *cosmos.Container) []json.RawMessage {
	t.Helper()
	others := resultsOf(t, server)
	for n := 1; n <= 2; n++ {
		require.NoError(t, others.Put(t.Context(), good("a", fmt.Sprint("R", n), n)))
	}
	docs, err := c.ReadMany(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, docs, 2)
	return docs
}

func statesOf(t *testing.T, c *cosmos.Container, id string) (states []string) {
	t.Helper()
	docs, err := c.ReadMany(t.Context(), []string{id})
	require.NoError(t, err)
	for _, raw := range docs {
		d, err := invoice.Reader{}.Read(raw, time.Now())
		require.NoError(t, err)
		states = append(states, fmt.Sprint(d.State.Status, " ", d.State.LastErrorCode))
	}
	return states
}

func keyTwinsInABatch(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	app, sink := committer(c)
	report, err := app.Run(t.Context(),
		commit.Delivery{Documents: append(twins(t, server, c), twinless(t, c)...), Received: time.Now()})
	require.NoError(t, err)
	require.Equal(t, 1, report.Outcomes["applied"], "%v", report.Outcomes)
	require.Equal(t, 2, report.Outcomes["retry_scheduled"], "%v", report.Outcomes)
	require.Equal(t, []string{"retry_scheduled id_twice", "retry_scheduled id_twice"}, statesOf(t, c, "a"))
	for line := int64(1); line <= 2; line++ {
		_, written := sink.Entry(line)
		require.False(t, written, "neither is written")
	}
	_, err = c.Read(t.Context(), "a")
	require.ErrorContains(t, err,
		`2 documents have the id "a", under the partition keys ["R1"] and ["R2"]: delete all but one`)
}

// twinless is a good document beside the twins.
func twinless(t *testing.T, c *cosmos.Container) []json.RawMessage {
	t.Helper()
	require.NoError(t, c.Submit(t.Context(), good("b", "R1", 3), false))
	raw, err := c.Read(t.Context(), "b")
	require.NoError(t, err)
	return []json.RawMessage{raw}
}

func keyTwinsApart(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	app, sink := committer(c)
	for _, doc := range twins(t, server, c) {
		report, err := app.Run(t.Context(), commit.Delivery{Documents: []json.RawMessage{doc}, Received: time.Now()})
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	}
	require.Equal(t, []string{"committed ", "committed "}, statesOf(t, c, "a"), "each under its own key")
	for line := int64(1); line <= 2; line++ {
		_, written := sink.Entry(line)
		require.True(t, written)
	}
}

func keyMoved(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	others := resultsOf(t, server)
	require.NoError(t, others.Put(t.Context(), good("a", "R1", 1)))
	before := readWhole(t, c, "a")
	require.NoError(t, others.DeleteAs(t.Context(), before.JSON()))
	require.NoError(t, others.Put(t.Context(), good("a", "R2", 1)))
	_, err := c.Record(t.Context(), before, invoice.State{Status: invoice.Failed})
	require.True(t, fault.Has(err, fault.Changed), "%v", err)
	app, _ := committer(c)
	report, err := app.Run(t.Context(),
		commit.Delivery{Documents: []json.RawMessage{before.JSON()}, Received: time.Now()})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	require.Equal(t, []string{"committed "}, statesOf(t, c, "a"))
}

func keyRemade(t *testing.T) {
	server, c := keyed(t, "/id")
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	before := readWhole(t, c, "a")
	remade(t, server, provision.ResultsKey)
	_, err := c.Record(t.Context(), before, invoice.State{})
	require.True(t, fault.Has(err, fault.Gone), "it was not put into the new container: %v", err)
	require.Equal(t, "/request_details/id", c.PartitionKey(), "the 404 made it read the definition again")

	remade(t, server, "/id")
	require.NoError(t, resultsOf(t, server).CreateUnder(t.Context(), `["a"]`, good("a", "R1", 1)))
	requireRecorded(t, c, readWhole(t, c, "a"))
	require.Equal(t, "/id", c.PartitionKey())
}

func keyRemadeWithLevels(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	remade(t, server, "/request_details/sys_name", "/request_details/id")
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false),
		"the service refuses a key of one level with 400")
	requireRecorded(t, c, readWhole(t, c, "a"))
}

func keyRemadeBadly(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	before := readWhole(t, c, "a")
	remade(t, server, "/sql_writer/shard")
	app, _ := committer(c)
	_, err := app.Run(t.Context(), commit.Delivery{Documents: []json.RawMessage{before.JSON()}, Received: time.Now()})
	refusedKey(t, err, "/sql_writer/shard")
	remade(t, server, provision.ResultsKey)
	require.NoError(t, resultsOf(t, server).Put(t.Context(), good("a", "R1", 1)))
	requireRecorded(t, c, readWhole(t, c, "a"))
}

func keyProjection(t *testing.T) {
	_, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	var heads []invoice.Projection
	q := commit.Query{SysName: "web", To: 1 << 40, Members: invoice.DefaultMapping().Members(), Size: 10}
	require.NoError(t, commit.Each(t.Context(), c, q, func(page commit.Page) (bool, error) {
		heads = append(heads, page.Documents...)
		return true, nil
	}))
	require.Len(t, heads, 1)
	head, err := invoice.Reader{}.Read(heads[0], time.Now()) // ReadSnapshot(heads[0]) does not compile
	require.NoError(t, err)
	_, err = c.Record(t.Context(), invoice.Snapshot{Document: head}, invoice.State{})
	require.Equal(t, []string{"internal", fault.CodeBug}, []string{string(fault.KindOf(err)), fault.CodeOf(err)})
}

func keyOnePartitionThrottled(t *testing.T) {
	server := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 25, 0 })
	c := openOn(t, server, container, false)
	server.Results(t, database, container)
	var ids []string
	for n := range 100 {
		ids = append(ids, fmt.Sprint("d", n))
		require.NoError(t, c.Submit(t.Context(), inRequest(ids[n], fmt.Sprintf(`"R%d"`, n)), false))
	}
	server.Server.ResetStats()
	docs, err := c.ReadMany(t.Context(), ids)
	require.NoError(t, err)
	require.Len(t, docs, 100)
	queries := server.Server.Count(cosmosdb.OpQuery, container) + server.Server.Count(cosmosdb.OpReadMany, container)
	require.Greater(t, queries, 1)
	for _, op := range []cosmosdb.Op{cosmosdb.OpQuery, cosmosdb.OpReadMany} {
		fail(t, server,
			cosmosdb.Rule{
				Op: op, Nth: queries / 2, Status: http.StatusTooManyRequests, Substatus: 3200, RetryAfterMS: 1,
			})
	}
	docs, err = c.ReadMany(t.Context(), ids)
	require.Equal(t, fault.Throttled, fault.KindOf(err), "never the documents of 24 partitions")
	require.Nil(t, docs)
}

func keyRepeatedMember(t *testing.T) {
	_, c := keyed(t, provision.ResultsKey)
	require.NoError(t,
		c.Submit(t.Context(), json.RawMessage(`{"id":"a","request_details":{"id":"A","id":"B"}}`), false))
	requireRecorded(t, c, readWhole(t, c, "a"))
}

func keySubmit(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	for _, replace := range []bool{false, true} {
		err := c.Submit(t.Context(), good("a", "R2", 1), replace)
		require.Equal(t, []string{"document", commit.CodeIDTwice},
			[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
		require.ErrorContains(t, err,
			`a document with the id "a" has the partition key ["R1"], and this one has ["R2"]`)
	}
	disguised := json.RawMessage(strings.Replace(string(good("a", "R2", 1)), "{", `{"ID":"b",`, 1))
	require.Equal(t, commit.CodeIDTwice, fault.CodeOf(c.Submit(t.Context(), disguised, true)),
		"names are read as the service reads them")
	require.Equal(t, "409", fault.CodeOf(c.Submit(t.Context(), good("a", "R1", 1), false)))
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 2), true))
	require.Len(t, statesOf(t, c, "a"), 1)
	require.Zero(t, server.Server.Count(cosmosdb.OpDelete, container))
}

func keyMadeLater(t *testing.T) {
	server := cosmosdbtest.Start(t)
	server.Results(t, database, "other")
	c := openOn(t, server, container, false)
	_, err := c.Record(t.Context(), at("a", `"1"`), invoice.State{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	server.Results(t, database, container)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	server.Server.ResetStats()
	doc := readWhole(t, c, "a")
	requireRecorded(t, c, doc)
	require.Equal(t, 1, server.Server.Count(cosmosdb.OpPatch, container), "the first patch is right")
}

func keyUnknownAtFirst(t *testing.T) {
	server, other := keyed(t, provision.ResultsKey)
	require.NoError(t, other.Submit(t.Context(), good("a", "R1", 1), false))
	doc := readWhole(t, other, "a")
	c := openOn(t, server, container, false)
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpContainer, Container: container, Status: http.StatusForbidden})
	app, _ := committer(c)
	_, err := app.Run(t.Context(), commit.Delivery{Documents: []json.RawMessage{doc.JSON()}, Received: time.Now()})
	require.Equal(t, []string{"infrastructure", "403"},
		[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	require.Zero(t, server.Server.Count(cosmosdb.OpPatch, container), "/id is not taken for granted")
	server.Server.ClearFaults()
	report, err := app.Run(t.Context(), commit.Delivery{Documents: []json.RawMessage{doc.JSON()}, Received: time.Now()})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	require.Equal(t, []string{"committed "}, statesOf(t, c, "a"), "nothing was counted against it")
}

func keyNotCaughtUp(t *testing.T) {
	server, c := keyed(t, provision.ResultsKey)
	require.NoError(t, c.Submit(t.Context(), good("a", "R1", 1), false))
	doc := readWhole(t, c, "a")
	fail(t, server, cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: http.StatusNotFound})
	_, err := c.Record(t.Context(), doc, invoice.State{})
	require.Equal(t, []string{"infrastructure", "not_caught_up"},
		[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
}
