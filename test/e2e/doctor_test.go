package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/expect"
	away "sqlwriter/test/outage"
	"sqlwriter/test/sample"
)

// sends is a flag of what is typed: without it no canary waits for SQL. canaries are its documents.
const (
	sends            = "--send"
	canaries         = commit.CanaryPrefix + "*"
	controlContainer = "sqlwriter-control"
)

// Must show: two doctors at once beside a drain, also while SQL is off; the tool, and the handler under a call of it,
// killed at every step. The user's rows and every sql_writer are as after the same drain without, and nothing is left
// that a run an hour later does not delete.
func TestDoctorsBesideADrain(t *testing.T) { doctorsBeside(t, 300, 2*time.Second) }

// The same in its whole size; the breaker opens.
func TestCampaignDoctorsBesideADrain(t *testing.T) {
	onlyInACampaign(t)
	doctorsBeside(t, 2000, 30*time.Second)
}

func doctorsBeside(t *testing.T, count int, outage time.Duration) {
	t.Helper()
	var docs []sample.Document // each for lines of its own: which of two for one line comes first is chance
	for n := range count {
		one := sample.Options{Seed: uint64(n), Count: 1, FirstLine: int64(100 * (n + 1)), Clean: true}
		docs = append(docs, sample.Generate(one)...)
	}
	blobs := azurite.Start(t)
	without, with := newPatient(t, blobs, docs), newPatient(t, blobs, docs)
	without.drain(outage, nil)
	status, _ := with.ops(http.MethodPost, "doctor", "{}", readerKey)
	require.Equal(t, http.StatusForbidden, status)
	with.drain(outage, with.kills())
	require.Equal(t, without.dump(), with.dump())
	with.requireSwept()
}

// patient is a stack that doctors look at, through proxies that let requests wait.
type patient struct {
	*stack

	results    []sample.Document
	app, files *gated
	back       atomic.Int64 // nanoseconds that the clock of _ts is set back
	control    *azcosmos.ContainerClient
}

func newPatient(t *testing.T, blobs *azurite.Server, docs []sample.Document) *patient {
	t.Helper()
	p := &patient{results: docs, app: newGated(t), files: newGated(t)}
	p.stack = newStackOver(t, newContainers(t, func(o *cosmosdb.Options) {
		o.Now = func() time.Time { return time.Now().Add(-time.Duration(p.back.Load())) }
	}), sample.Lines(docs)...)
	var err error
	p.control, err = p.cosmos.Client.NewContainer(database, controlContainer)
	require.NoError(t, err)
	p.files.to.Store(blobs.Address)
	p.blobs = strings.ReplaceAll(blobs.ConnectionString(), blobs.Address, p.files.Listener.Addr().String())
	p.recover, p.patience = "* * * * * *", 5*time.Minute
	p.withBus(usualLock)
	p.app.to.Store(p.startHost().Address())
	p.handler.waitReady()
	return p
}

// drain submits the documents and switches SQL off in the middle. Where there are kills two doctors look until SQL is
// back, and then a part of the documents is submitted at each kill.
func (p *patient) drain(outage time.Duration, kills []kill) {
	p.t.Helper()
	var doctors sync.WaitGroup
	var looks [2]atomic.Int64
	var seenOff, over atomic.Bool
	for i := range looks {
		doctors.Go(func() {
			for ; len(kills) > 0 && !over.Load(); looks[i].Add(1) {
				if p.look([]string{sends}[i:]...)[ops.DepSQL].State == ops.RowWrong {
					seenOff.Store(true)
				}
			}
		})
	}
	third := len(p.results) / 3
	p.submitMany(p.results[:third])
	sql := away.NewFile(filepath.Join(p.dir, "sqlwriter.db"), p.store.Writer())
	require.NoError(p.t, sql.Off(p.t.Context()))
	back := time.Now().Add(outage)
	p.submitMany(p.results[third : 2*third])
	wait(p.t, back)
	assert.Eventually(p.t, func() bool { return seenOff.Load() || len(kills) == 0 }, patience, 10*time.Millisecond)
	require.NoError(p.t, sql.On(p.t.Context()))
	p.waitUntilQuiet(2 * third)
	require.Eventually(p.t, func() bool {
		return min(looks[0].Load(), looks[1].Load()) > 2 || len(kills) == 0
	}, patience, 10*time.Millisecond)
	over.Store(true)
	doctors.Wait()
	rest := p.results[2*third:]
	for i, k := range kills {
		p.strike(k, rest[i*len(rest)/len(kills):(i+1)*len(rest)/len(kills)])
	}
	if len(kills) == 0 {
		p.submitMany(rest)
	}
	p.waitUntilQuiet(len(p.results))
	p.requireExact(p.results)
	p.t.Logf("%d documents, SQL off for %s; doctors at once: %d and %d, killed: %d", len(p.results), outage,
		looks[0].Load(), looks[1].Load(), len(kills))
}

// kill is a moment of a doctor at which the tool or the handler is killed.
type kill struct {
	name    string
	handler bool
	hold    hold
}

// hold lets the next request of a kind wait: reached waits for it, and release lets it go on.
type hold func() (reached, release func())

// kills are all of them: the tool is killed at its calls, tool and handler at the calls of the app.
func (p *patient) kills() (all []kill) {
	all = []kill{
		{"as it starts", false, func() (reached, release func()) { return func() {}, func() {} }},
		{"at Health", false, p.app.hold("GET", "/api/health", cosmosdb.Before)},
		{"as it asks", false, p.app.hold("POST", "/doctor", cosmosdb.Before)},
		{"as it is answered", false, p.app.hold("POST", "/doctor", cosmosdb.After)},
	}
	for name, hold := range map[string]hold{
		"document created": p.hold(controlContainer, cosmosdb.OpCreate, "doctor:*", cosmosdb.After),
		"document patched": p.hold(controlContainer, cosmosdb.OpPatch, "doctor:*", cosmosdb.After),
		"document kept":    p.hold(controlContainer, cosmosdb.OpDelete, "doctor:*", cosmosdb.Before),
		"document deleted": p.hold(controlContainer, cosmosdb.OpDelete, "doctor:*", cosmosdb.After),
		"canary created":   p.hold(container, cosmosdb.OpCreate, canaries, cosmosdb.After),
		"canary seen":      p.hold(container, cosmosdb.OpPatch, canaries, cosmosdb.Before),
		"canary marked":    p.hold(container, cosmosdb.OpPatch, canaries, cosmosdb.After),
		"canary kept":      p.hold(container, cosmosdb.OpDelete, canaries, cosmosdb.Before),
		"canary deleted":   p.hold(container, cosmosdb.OpDelete, canaries, cosmosdb.After),
		"file written":     p.files.hold("PUT", "/doctor/", cosmosdb.After),
		"file read":        p.files.hold("GET", "/doctor/", cosmosdb.After),
		"file kept":        p.files.hold("DELETE", "/doctor/", cosmosdb.Before),
		"file deleted":     p.files.hold("DELETE", "/doctor/", cosmosdb.After),
	} {
		all = append(all, kill{name, false, hold}, kill{name, true, hold})
	}
	return all
}

func (p *patient) hold(in string, op cosmosdb.Op, doc string, when cosmosdb.When) hold {
	return func() (reached, release func()) {
		rule, err := p.cosmos.Server.AddFault(cosmosdb.Rule{Op: op, Container: in, Doc: doc, Hold: when, Times: 1})
		require.NoError(p.t, err)
		return func() { require.NoError(p.t, p.cosmos.Server.WaitHeld(p.patiently(), rule, 1)) },
			func() { p.cosmos.Server.RemoveFault(rule) }
	}
}

// strike kills at a moment, with documents on their way.
func (p *patient) strike(k kill, docs []sample.Document) {
	p.t.Helper()
	reached, release := k.hold()
	tool := exec.CommandContext(p.t.Context(), ctlBinary(p.t), "doctor", sends)
	tool.Env = []string{"HOME=" + p.dir, "SQLWRITER_APP=" + p.app.URL, "SQLWRITER_KEY=" + functionKey}
	require.NoError(p.t, tool.Start())
	reached()
	p.submitMany(docs)
	if k.handler {
		p.kill()
		p.app.to.Store(p.host.Address())
	} else {
		require.NoError(p.t, tool.Process.Kill())
	}
	release()
	err := tool.Wait() // one that lost its app says so
	p.t.Logf("killed: %s, the handler: %t, %v", k.name, k.handler, err)
	p.handler.waitReady()
}

// look gives the rows of the app by their names.
func (p *patient) look(flags ...string) map[string]ops.DoctorRow {
	p.t.Helper()
	out, _ := p.sqlwriterctl(append([]string{"doctor", "-o", "json"}, flags...)...)
	var found ops.DoctorAnswer
	require.NoError(p.t, json.Unmarshal([]byte(out), &found))
	rows := map[string]ops.DoctorRow{}
	for _, row := range found.Rows {
		rows[row.Name] = row
	}
	return rows
}

// dump is what a drain leaves to the user: each row and each sql_writer, without its only time. Of what was submitted
// at kills a handler may say that SQL has it already from one that was killed, as it does without a doctor.
func (p *patient) dump() map[string]any {
	p.t.Helper()
	tables, err := p.readTables(p.t.Context(), p.db)
	require.NoError(p.t, err)
	all := map[string]any{expect.Detail: tables[expect.Detail], expect.Tracking: tables[expect.Tracking]}
	for i, d := range p.results {
		state := p.state(d.ID)
		delete(state, "committed_at")
		if i >= len(p.results)/3*2 && state["outcome"] == "unchanged" {
			state["outcome"] = "applied"
		}
		all[d.ID] = state
	}
	return all
}

// left is what doctors have made and not deleted: documents of control, canaries, files.
func (p *patient) left() (documents, marks []json.RawMessage, files []string) {
	p.t.Helper()
	pager := p.control.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, 'doctor')",
		azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(p.t.Context())
		require.NoError(p.t, err)
		for _, raw := range page.Items {
			documents = append(documents, raw)
		}
	}
	for id, raw := range p.all() {
		if strings.HasPrefix(id, commit.CanaryPrefix) {
			marks = append(marks, raw)
		}
	}
	client, err := azblob.NewClientFromConnectionString(p.blobs, nil)
	require.NoError(p.t, err)
	for list := client.NewListBlobsFlatPager("sqlwriter", nil); list.More(); {
		page, err := list.NextPage(p.t.Context())
		require.NoError(p.t, err)
		for _, file := range page.Segment.BlobItems {
			files = append(files, *file.Name)
		}
	}
	return documents, marks, files
}

// requireSwept: what the kills left stays for a time, because its run may go on, and is then deleted by any run.
func (p *patient) requireSwept() {
	p.t.Helper()
	documents, marks, files := p.left()
	p.t.Logf("left by the kills: %d documents, %d canaries, %d files", len(documents), len(marks), len(files))
	require.True(p.t, len(documents) > 0 && len(marks) > 0 && len(files) > 0)
	p.requireAllWell()
	sameDocuments, _, sameFiles := p.left()
	require.ElementsMatch(p.t, documents, sameDocuments)
	require.Equal(p.t, files, sameFiles)

	const hours = int64(2 * time.Hour)
	p.files.older.Store(hours)
	p.back.Store(hours)
	for _, raw := range documents { // written again, so long ago
		id := idOf(p.t, raw)
		_, err := p.control.ReplaceItem(p.t.Context(), azcosmos.NewPartitionKeyString(id), id, raw, nil)
		require.NoError(p.t, err)
	}
	for _, raw := range marks {
		require.NoError(p.t, p.docs.Put(p.t.Context(), raw))
	}
	p.back.Store(0)
	p.requireAllWell()
	documents, marks, files = p.left()
	require.True(p.t, len(documents)+len(marks)+len(files) == 0, "%s %s %v", documents, marks, files)
	p.requireUncounted()
}

// requireAllWell waits until each row is ok.
func (p *patient) requireAllWell() {
	p.t.Helper()
	var rows map[string]ops.DoctorRow
	require.Eventually(p.t, func() bool {
		rows = p.look(sends)
		for _, row := range rows {
			if row.State != ops.RowOK {
				return false
			}
		}
		return rows[ops.RowFeed].State == ops.RowOK
	}, patience, time.Second, "not all are ok: %v", &rows)
}

// gated is a proxy that lets a request wait.
type gated struct {
	*httptest.Server

	to    atomic.Value // host and port
	gate  atomic.Pointer[gate]
	older atomic.Int64 // nanoseconds that listed files are older
}

// gate waits for one request, which has a part in its path.
type gate struct {
	method, part      string
	when              cosmosdb.When
	reached, released chan struct{}
}

var modified = regexp.MustCompile(`<Last-Modified>[^<]+`)

func newGated(t *testing.T) *gated {
	t.Helper()
	g := &gated{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // the path stays as it was escaped: it is signed
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", g.to.Load().(string), r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			g.pass(r.Request, cosmosdb.After)
			older := g.older.Load()
			if older == 0 || r.Request.FormValue("comp") != "list" {
				return nil
			}
			text, err := io.ReadAll(r.Body)
			past := "<Last-Modified>" + time.Now().Add(-time.Duration(older)).UTC().Format(http.TimeFormat)
			text = modified.ReplaceAll(text, []byte(past))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			return err
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.pass(r, cosmosdb.Before)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gated) hold(method, part string, when cosmosdb.When) hold {
	return func() (reached, release func()) {
		one := &gate{method, part, when, make(chan struct{}), make(chan struct{})}
		g.gate.Store(one)
		return func() {
			select {
			case <-one.reached:
			case <-time.After(patience):
				panic("there was no " + method + " of " + part)
			}
		}, func() { close(one.released) }
	}
}

// pass lets the request wait that the gate is for.
func (g *gated) pass(r *http.Request, when cosmosdb.When) {
	one := g.gate.Load()
	if one != nil && one.when == when && one.method == r.Method && strings.Contains(r.URL.Path, one.part) &&
		g.gate.CompareAndSwap(one, nil) {
		close(one.reached)
		<-one.released
	}
}
