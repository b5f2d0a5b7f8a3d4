package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

const (
	sysName = "web"
	// build is what writes: proof is per build.
	build = "v1"
)

// begins is when every world begins.
func begins() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

// world is what outlives every process: the container, the database, the control document, the blobs, the
// place up to which the feed is checkpointed, and the clock. One goroutine works in it at a time.
type world struct {
	path *path
	plan plan
	// draw answers what happens to a call that no plan speaks of; nil is nothing.
	draw func(i *instance, port string) kind
	log  zerolog.Logger

	clock    atomic.Int64
	docs     *inmem.Documents
	sink     *inmem.Sink
	control  *inmem.Control
	evidence *inmem.Evidence
	// runs are the run store and the queues; nil in a path without runs.
	runs *runs
	// real are the adapters over these; a deliberate mistake stands in for one of them.
	real ports

	// misjudged is a mistake: what broke the connection is taken for the document's own error.
	misjudged bool

	// changes are the ids in the order in which their documents changed: what the feed shows. checkpoint is how many of
	// them were dealt with.
	changes    []string
	checkpoint int
	// given are the documents of ours, as they were put last, and first their first snapshots; history has every
	// content that a document ever had, by id and hash.
	given map[string]*given
	// cached are documents as they are now; a change of a document removes it here.
	cached  map[string]cached
	history map[string]map[string]*content
	ids     []string
	// deleted are the documents that are gone; put makes one anew. renames says that documents drop and take lines, and
	// nobody gives a dropped one back: no comparison runs.
	deleted map[string]bool
	removed int // how often one was deleted
	renames bool
	// skews draws how far the clock of an instance is off; nil is nothing. apart is the most that two clocks differ.
	skews func() time.Duration
	apart time.Duration

	numbering bool
	steps     []step
	// scheduled says that the world is under a scheduler with this seed.
	scheduled bool
	seed      int64
	calls     map[string]int
	instances int
	contrasts int
	fired     []bool
	// backAt is when a dependency answers again.
	backAt map[string]time.Time
	// short is when a shortage is over.
	short map[kind]time.Time
	seen  violations
	// claims are those that SQL was asked with.
	claims []string
	// applied is when a document was last written.
	applied time.Time
	// onApplied is called after every request that was done, onStep before every step.
	onApplied func(items []commit.Item)
	onStep    func(s step)
}

// given is a document of ours.
type given struct {
	want
	at    time.Time       // when it was put
	first json.RawMessage // the first snapshot
	last  map[string]json.RawMessage
	own   map[string]json.RawMessage // members of sql_writer as they were put
}

// content is the content of a document at some time.
type content struct {
	values []invoice.Value
	main   int64
	lines  []int64
	bad    bool
}

// violations are the promises that were found broken.
type violations []violation

type violation struct{ promise, what string }

func (w *world) violated(promise, format string, args ...any) {
	if len(w.seen) < 20 {
		w.seen = append(w.seen, violation{promise, fmt.Sprintf(format, args...)})
	}
}

func newWorld(p *path, faults plan, broken *mistake) *world {
	w := &world{
		path: p, plan: faults, log: zerolog.Nop(), given: map[string]*given{},
		history: map[string]map[string]*content{}, deleted: map[string]bool{},
		cached: map[string]cached{}, calls: map[string]int{}, backAt: map[string]time.Time{},
		short: map[kind]time.Time{}, fired: make([]bool, len(faults)),
	}
	w.clock.Store(begins().UnixNano())
	w.docs, w.sink, w.control, w.evidence = inmem.NewDocuments(w.now), inmem.NewSink(), inmem.NewControl(),
		inmem.NewEvidenceOn(w.now)
	w.real = ports{docs: w.docs, sink: w.sink, control: w.control, evidence: w.evidence, finder: w.docs}
	if p.runs != nil {
		w.runs = newRuns(w, p.runs)
	}
	if broken != nil {
		w.real = broken.make(w, w.real)
	}
	return w
}

func (w *world) now() time.Time { return time.Unix(0, w.clock.Load()).UTC() }

func (w *world) advance(d time.Duration) { w.clock.Add(int64(d)) }

// until moves the clock on to a moment, if that is not past.
func (w *world) until(t time.Time) {
	if d := t.Sub(w.now()); d > 0 {
		w.advance(d)
	}
}

// number counts a call in, and says what is to happen to it.
func (w *world) number(i *instance, port, about string) (int, kind) {
	w.calls[port]++
	n := len(w.steps) + 1
	k := w.plan.at(n)
	for f, in := range w.plan {
		if in.step == n {
			w.fired[f] = true
		}
	}
	if k == "" && w.draw != nil {
		k = w.draw(i, port)
	}
	dependency := dependencyOf(port)
	if k == outage {
		w.backAt[dependency] = w.now().Add(outageFor)
	} else if k == "" && w.now().Before(w.backAt[dependency]) {
		k = down
	}
	for _, s := range shortages() {
		if k == s {
			w.short[s] = w.now().Add(shortageFor)
		} else if k == "" && s.hits(port) && w.now().Before(w.short[s]) {
			k = in + s
		}
	}
	w.steps = append(w.steps, step{n: n, by: i.name, port: port, k: w.calls[port], about: about, kind: k})
	if w.onStep != nil {
		w.onStep(w.steps[n-1])
	}
	return n, k
}

func (w *world) answered(n int, err error) {
	w.steps[n-1].answer = "done"
	if err != nil {
		w.steps[n-1].answer = string(fault.KindOf(err)) + " " + fault.CodeOf(err)
	}
}

// start makes another instance: nothing of the ones before is in it.
func (w *world) start() *instance {
	zone := chicago()
	i := &instance{w: w, name: fmt.Sprintf("app-%c", 'a'+w.instances%26)}
	w.instances++
	if w.skews != nil {
		i.skew = w.skews()
	}
	draw := func() float64 { return 0.5 }
	i.breaker = breaker.New(control{i}, breaker.Options{
		Instance: i.name, Build: build, SysName: sysName, Heartbeat: sink{i}.Heartbeat, TakeOver: sink{i}.TakeOver,
		Log: w.log, Now: i.now, Draw: draw, Wait: i.wait,
	})
	i.commit = commit.NewCommit(documents{i}, sink{i}, commit.Options{
		SysName: sysName, Location: zone, Now: i.now, Draw: draw, Parallel: 1, Log: w.log,
		Wait: i.wait, Breaker: i.breaker, Evidence: evidence{i}, Container: "AI_PROCESS_LOGS", AppVersion: build,
	})
	i.recover = commit.NewRecover(i.commit, finder{i})
	if w.runs != nil {
		w.runs.equip(i)
	}
	return i
}

var chicago = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		panic(err)
	}
	return zone
})

// do runs something of an instance in a goroutine of its own, which dies with the instance, and reports whether it did.
func (w *world) do(ctx context.Context, i *instance, what func(ctx context.Context)) (crashed bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer w.caught()
		what(ctx)
	}()
	<-over
	return i.dead
}

func (w *world) caught() {
	if r := recover(); r != nil {
		w.violated("panic", "%v\n%s", r, debug.Stack())
	}
}

// put writes a document as the API does.
func (w *world) put(d want) {
	raw := d.json
	if err := w.docs.Put(raw); err != nil {
		panic(err)
	}
	delete(w.deleted, d.id)
	w.changed(d.id)
	_, stored := w.document(d.id)
	p := parsed(raw)
	g := w.given[d.id]
	if g == nil {
		g = &given{first: stored}
		w.given[d.id] = g
		w.ids = append(w.ids, d.id)
		w.history[d.id] = map[string]*content{}
	}
	g.want, g.at, g.last, g.own = d, w.now(), p.members, p.own
	w.history[d.id][p.hash] = &p.content
}

// remove deletes a document, as its owner does. The feed shows nothing of it.
func (w *world) remove(id string) {
	w.docs.Delete(id)
	w.deleted[id] = true
	w.removed++
	delete(w.cached, id)
}

// there are the ids of the documents that are not deleted.
func (w *world) there() []string {
	return slices.DeleteFunc(slices.Clone(w.ids), func(id string) bool { return w.deleted[id] })
}

// touch is another program that changes a member of its own in a document: nothing that is written, and a later _ts.
func (w *world) touch(id string) {
	_, raw := w.document(id)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		panic(err)
	}
	delete(members, "_etag")
	delete(members, "_ts")
	members["seen_by"] = json.RawMessage(fmt.Sprintf(`"program %d"`, len(w.changes)))
	var changed bytes.Buffer
	e := json.NewEncoder(&changed)
	e.SetEscapeHTML(false) // every other member stays as it is, byte for byte
	err := e.Encode(members)
	if err == nil {
		err = w.docs.Put(changed.Bytes())
	}
	if err != nil {
		panic(err)
	}
	g := w.given[id]
	g.last = maps.Clone(g.last)
	g.last["seen_by"] = members["seen_by"]
	w.changed(id)
}

// parse is what a document of the tests says. It is the same in every run, so it is read once.
type parse struct {
	content
	hash         string
	version      invoice.Version
	members, own map[string]json.RawMessage
}

var parses sync.Map

func parsed(raw json.RawMessage) *parse {
	if p, ok := parses.Load(string(raw)); ok {
		return p.(*parse)
	}
	d, err := invoice.Reader{}.Read(raw, begins())
	if err != nil {
		panic(err)
	}
	p := &parse{hash: d.Hash, version: d.Version}
	p.content = content{
		values: d.Values, main: d.Main, lines: append([]int64{d.Main}, d.Duplicates...), bad: d.Problem != nil,
	}
	if err := json.Unmarshal(raw, &p.members); err != nil {
		panic(err)
	}
	if len(p.members["sql_writer"]) > 0 {
		if err := json.Unmarshal(p.members["sql_writer"], &p.own); err != nil {
			panic(err)
		}
	}
	parses.Store(string(raw), p)
	return p
}

type cached struct {
	doc invoice.Document
	raw json.RawMessage
}

// document reads a document as it is now, past all ports.
func (w *world) document(id string) (invoice.Document, json.RawMessage) {
	if c, ok := w.cached[id]; ok {
		return c.doc, c.raw
	}
	raw, err := w.docs.Read(context.Background(), id)
	if err != nil {
		panic(err)
	}
	d, err := invoice.Reader{}.Read(raw, w.now())
	if err != nil {
		panic(err)
	}
	w.cached[id] = cached{d, raw}
	return d, raw
}

// changed takes in that a document changed: the feed shows it.
func (w *world) changed(id string) {
	delete(w.cached, id)
	w.changes = append(w.changes, id)
}

// feed is what the trigger gets next: the documents that changed since a checkpoint, each once, as they are now.
func (w *world) feed(since int, mine func(id string) bool) (batch []json.RawMessage, upTo int) {
	var ids []string
	for _, id := range w.changes[since:] {
		if mine(id) && !w.deleted[id] && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		_, raw := w.document(id)
		batch = append(batch, raw)
	}
	return batch, len(w.changes)
}

func all(string) bool { return true }

// rows are the database's rows of the lines of the path's documents.
func (w *world) rows(lines []int64) map[int64]row {
	rows := map[int64]row{}
	for _, line := range lines {
		l, there := w.sink.Line(line)
		if !there {
			continue
		}
		e, _ := w.sink.Entry(line)
		rows[line] = row{e, l}
	}
	return rows
}

type row struct {
	entry inmem.Entry
	line  inmem.Line
}

// allLines are the lines that documents of the world name.
func (w *world) allLines() []int64 {
	set := map[int64]bool{}
	for _, contents := range w.history {
		for _, c := range contents {
			for _, line := range c.lines {
				set[line] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}
