package commit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// arrival is a number of documents that come evenly within a time.
type arrival struct {
	n        int
	from, to time.Duration
	bad      bool
	// unreadable documents are bad, and cannot be read as a result.
	unreadable bool
	// lines is when the lines of a good document come; zero if they are there.
	lines time.Duration
}

// breakage says whether a good document is refused: number is one of 0 to 99, the same at each try.
type breakage func(at time.Duration, build string, number int) bool

// blamed is one play: documents come by the feed, the timer ticks every five minutes, and the clock is the test's.
type blamed struct {
	name     string
	arrivals []arrival
	broken   breakage
	build    func(at time.Duration) string
	// away says when SQL does not answer.
	away func(at time.Duration) bool
	// retried is when an operator retries all failed documents.
	retried time.Duration
	until   time.Duration

	// wrong is how many good documents are given up, at most. late is the longest wait of a good one after the mend, or
	// its arrival.
	wrong int
	mend  time.Duration
	late  time.Duration
	// ended are the bad documents that are given up, within these times after their arrival.
	ended           int
	soonest, latest time.Duration
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

// from refuses a share of a hundred documents in a time.
func from(begin, end time.Duration, share int) breakage {
	return func(at time.Duration, _ string, number int) bool { return at >= begin && at < end && number < share }
}

// either refuses what one of several does.
func either(all ...breakage) breakage {
	return func(at time.Duration, build string, number int) bool {
		return slices.ContainsFunc(all, func(b breakage) bool { return b(at, build, number) })
	}
}

// bad builds refuse everything.
func bad(_ time.Duration, build string, _ int) bool { return len(build) > 2 && build[:3] == "bad" }

// builds gives the build of a time: each one until its end, then the last.
func builds(names []string, ends ...time.Duration) func(time.Duration) string {
	return func(at time.Duration) string {
		for i, end := range ends {
			if at < end {
				return names[i]
			}
		}
		return names[len(ends)]
	}
}

// mixed is one of two builds by chance until a time, of which one is bad.
func mixed(until time.Duration) func(time.Duration) string {
	return func(at time.Duration) string {
		if at < until && rand.New(rand.NewPCG(uint64(at), 1)).IntN(2) == 0 {
			return "bad"
		}
		return "v1"
	}
}

func good(n int, from, to time.Duration) arrival { return arrival{n: n, from: from, to: to} }

// blames are the plays of the simulation from which the rule of blame comes (docs/adr/0019-proof-comes-later.md), and
// what it allows. most and few say how many documents a play has in the size of the test. Rows 2, 4 and 7 of
// test/scenario play others.
func blames(most, few func(n int) int) []blamed {
	schema := func(n int, length time.Duration, wrong int) blamed {
		end := hour + length
		return blamed{
			name: "schema refuses all for " + length.String(), broken: from(hour, end, 100), mend: end,
			until: end + 12*hour, wrong: wrong, late: 36 * time.Minute,
			arrivals: []arrival{good(60, 0, hour), good(most(n), hour, end), good(60, end, end+10*hour)},
		}
	}
	allBad := func(length time.Duration, wrong int) blamed {
		p := schema(10_000, length, wrong)
		p.name, p.broken, p.build = "build breaks all for "+length.String(), bad,
			builds([]string{"v1", "bad", "v2"}, hour, hour+length)
		return p
	}
	twice := func(name string, again time.Duration, build func(time.Duration) string) blamed {
		p := blamed{
			name: name, mend: 18 * hour, until: 30 * hour, late: 36 * time.Minute, build: build,
			broken:   either(from(hour, 9*hour, 100), from(again, 18*hour, 100)),
			arrivals: []arrival{good(most(5_400), 0, 20*hour)},
		}
		if build != nil {
			p.broken = bad
		}
		return p
	}
	third := func(name string, length time.Duration, wrong int) blamed {
		return blamed{
			name: name, mend: hour + length, until: 30 * hour, wrong: wrong, late: 36 * time.Minute,
			arrivals: []arrival{good(most(6000), 0, 20*hour)},
			broken: func(at time.Duration, build string, number int) bool {
				return bad(at, build, number) && number < 33
			},
			build: builds([]string{"v1", "bad", "v2"}, hour, hour+length),
		}
	}
	waiting := func(n int, from time.Duration) arrival {
		return arrival{n: n, from: from, to: from + time.Minute, lines: from + 45*time.Minute}
	}
	spread := []arrival{good(450, 0, 15*hour)}
	for k := range most(600) {
		spread = append(spread, waiting(1, time.Duration(k)*10*hour/time.Duration(most(600))))
	}
	return []blamed{
		{
			name: "three bad alone", arrivals: []arrival{{n: 3, bad: true}}, until: 2 * day, ended: 3, soonest: day,
			latest: day + hour + 20*time.Minute,
		},
		{
			name: "four bad alone", arrivals: []arrival{{n: 4, bad: true}}, until: 2 * day, ended: 3, soonest: day,
			latest: day + hour + 20*time.Minute,
		},
		{
			name:     "ten bad among good ones",
			arrivals: []arrival{good(600, 0, 10*hour), {n: 10, from: hour, to: 2 * hour, bad: true}}, until: 10 * hour,
			ended: 10, soonest: 70 * time.Minute, latest: 90 * time.Minute,
		},
		{
			name:     "ten bad, a good one an hour",
			arrivals: []arrival{good(48, 0, 2*day), {n: 10, from: hour, to: 2 * hour, bad: true}}, until: 2 * day,
			ended: 10, soonest: 70 * time.Minute, latest: 150 * time.Minute,
		},
		schema(1000, 10*time.Minute, 0), schema(1000, 8*hour, 0), schema(1000, 72*hour, 3), allBad(10*time.Minute, 0),
		allBad(8*hour, 0), allBad(72*hour, 3),
		{
			name: "thirty bad in an evening, one good one in the morning", until: 3 * day, ended: 30,
			soonest: 10 * hour, latest: 25 * hour,
			arrivals: []arrival{
				good(60, 0, hour), {n: 30, from: 2 * hour, to: 4 * hour, bad: true}, good(1, 14*hour, 14*hour+1),
			},
		},
		{
			name:     "ten unreadable among good ones",
			arrivals: []arrival{good(300, 0, 5*hour), {n: 10, from: hour, to: 2 * hour, bad: true, unreadable: true}},
			until:    5 * hour, ended: 10, soonest: 2 * time.Minute, latest: 9 * time.Minute,
		},
		{
			name: "ten bad while the schema refuses all", mend: 9 * hour, until: 23 * hour, late: 36 * time.Minute,
			broken: from(hour, 9*hour, 100),
			ended:  10, soonest: 70 * time.Minute, latest: 9 * hour,
			arrivals: []arrival{
				good(60, 0, hour), good(most(1000), hour, 9*hour),
				{n: 10, from: hour, to: 9 * hour, bad: true},
				good(few(600), 9*hour, 19*hour),
			},
		},
		third("a build breaks a third for 8 h", 8*hour, 700),
		third("a build breaks a third for 50 min", 50*time.Minute, 0),
		third("a build breaks a third for 100 min", 100*time.Minute, 25),
		{
			name:     "outage for 6 h amid ten bad ones",
			arrivals: []arrival{good(few(1440), 0, day), {n: 10, from: hour, to: 2 * hour, bad: true}}, until: day,
			away: func(at time.Duration) bool {
				return at >= 90*time.Minute && at < 450*time.Minute
			}, mend: 450 * time.Minute,
			ended: 10, soonest: 6 * hour, latest: 8 * hour,
		},
		{
			name:     "SQL away every other minute",
			arrivals: []arrival{good(600, 0, 10*hour), {n: 10, from: hour, to: 2 * hour, bad: true}}, until: 14 * hour,
			away: func(at time.Duration) bool {
				return at < 10*hour && int(at/time.Minute)%2 == 1 && at%(5*time.Minute) != 0
			},
			ended: 10, soonest: 70 * time.Minute, latest: 4 * hour,
		},
		{
			name: "130 bad in an evening, one good one in the morning", until: 3 * day, ended: 108,
			soonest: 10 * hour, latest: 25 * hour,
			arrivals: []arrival{
				good(60, 0, hour), {n: 130, from: 2 * hour, to: 4 * hour, bad: true}, good(1, 14*hour, 14*hour+1),
			},
		},
		{
			name: "two builds, one refuses all", until: 30 * hour, late: 2 * hour, broken: bad, build: mixed(day),
			arrivals: []arrival{good(most(2880), 0, day), {n: 10, from: hour, to: 2 * hour, bad: true}}, ended: 10,
			soonest: 70 * time.Minute, latest: 3 * hour,
		},
		// seven tries in a row meet the bad build: of 960 documents that it refuses 960/2^7, 7 or 8, by chance a few
		// more
		{
			name: "two builds, one refuses a third", until: 30 * hour, late: 2 * hour, wrong: 12, build: mixed(day),
			broken: func(at time.Duration, build string, number int) bool {
				return bad(at, build, number) && number < 33
			},
			arrivals: []arrival{good(most(2880), 0, day), {n: 10, from: hour, to: 2 * hour, bad: true}}, ended: 10,
			soonest: 70 * time.Minute, latest: 3 * hour,
		},
		{
			name: "an operator retries all at once", until: 6 * day, retried: 3 * day, ended: most(2000),
			soonest: 69 * hour, latest: 6 * day,
			arrivals: []arrival{good(most(8640), 0, 6*day), {n: most(2000), from: hour, to: 3 * hour, bad: true}},
		},
		{
			name: "99 of 100 refused for 8 h", mend: 9 * hour, until: 23 * hour, wrong: 700, late: 75 * time.Minute,
			broken:   from(hour, 9*hour, 99),
			arrivals: []arrival{good(60, 0, hour), good(most(5000), hour, 9*hour), good(few(600), 9*hour, 19*hour)},
		},
		twice("two bad builds", 0, builds([]string{"v1", "bad", "v2", "bad2", "v3"}, hour, 9*hour, 10*hour, 18*hour)),
		twice("the same bad build twice", 0,
			builds([]string{"v1", "bad", "v1", "bad", "v1"}, hour, 9*hour, 10*hour, 18*hour)),
		twice("schema bad, well for an hour, bad", 10*hour, nil),
		twice("schema bad, well for 12 min, bad", 9*hour+12*time.Minute, nil),
		{
			name: "schema bad every other half hour", mend: 13 * hour, until: 30 * hour, late: 36 * time.Minute,
			arrivals: []arrival{good(most(5_400), 0, 18*hour)},
			broken: func(at time.Duration, _ string, _ int) bool {
				return at >= hour && at < 13*hour && int(at/(30*time.Minute))%2 == 1
			},
		},
		{
			name: "all for 8 h, then a third for 8 h", mend: 17 * hour, until: 40 * hour,
			wrong: 800, late: 72 * time.Minute,
			broken:   either(from(hour, 9*hour, 100), from(9*hour, 17*hour, 33)),
			arrivals: []arrival{good(most(6_000), 0, 20*hour)},
		},
		{
			name: "ten broken builds in a night", mend: 16 * hour, until: 30 * hour, late: 36 * time.Minute,
			broken: bad, arrivals: []arrival{good(most(3_000), 0, 20*hour)},
			build: func(at time.Duration) string {
				switch {
				case at < hour:
					return "v1"
				case at < 16*hour:
					return fmt.Sprint("bad", int(at/(90*time.Minute)))
				}
				return "v2"
			},
		},
		{
			name: "lines late one after the other, schema from 5 h", mend: 12 * hour, until: 20 * hour,
			late: 75 * time.Minute, broken: from(5*hour, 12*hour, 100),
			arrivals: spread,
		},
		{
			name: "a good one an hour, schema for 8 h", mend: 13 * hour, until: 40 * hour, late: 36 * time.Minute,
			broken:   from(5*hour, 13*hour, 100),
			arrivals: []arrival{good(30, 0, 30*hour)},
		},
		{
			name: "a good one in 3 h, schema for 3 days", mend: 77 * hour, until: 190 * hour, wrong: 3,
			late: 36 * time.Minute, broken: from(5*hour, 77*hour, 100),
			arrivals: []arrival{good(60, 0, 180*hour)},
		},
	}
}

// Who is given up, and when, in each play of the simulation: with SQLWRITER_FAULTS as many documents as there, else a
// tenth of the large plays.
func TestWhoIsGivenUp(t *testing.T) {
	share := 10
	few := func(n int) int { return n }
	switch {
	case os.Getenv("SQLWRITER_FAULTS") != "":
		share = 1
	case testing.Short():
		share = 100
		few = func(n int) int { return n / 4 }
	}
	most := func(n int) int { return n / share }
	for _, p := range blames(most, few) {
		t.Run(p.name, func(t *testing.T) { p.play(t) })
	}
}

// played is a document of a play.
type played struct {
	id  string
	at  time.Duration
	bad bool
	// unreadable is arrival.unreadable.
	unreadable bool
	lines      time.Duration
	number     int
}

func (p blamed) play(t *testing.T) {
	w := newWorld(t)
	now := func() time.Duration { return w.clock.Sub(start()) }
	rng := rand.New(rand.NewPCG(1, 2))
	build := p.build
	if build == nil {
		build = func(time.Duration) string { return "v1" }
	}
	ofLine := map[int64]*played{}
	lost := func(int) error {
		if p.away != nil && p.away(now()) {
			return fault.New(fault.Infrastructure, "test", "refused", "away")
		}
		return nil
	}
	w.faulty.onHeartbeat = lost
	sink := sinkHook{w.faulty, func(items []commit.Item) error {
		if err := lost(0); err != nil {
			return err
		}
		for _, it := range items {
			d := ofLine[it.Main]
			if !it.FailureMark &&
				(d.bad || now() < d.lines || p.broken != nil && p.broken(now(), build(now()), d.number)) {
				return fault.New(fault.Document, "test", "547", "refused")
			}
		}
		return nil
	}}
	wait := func(_ context.Context, d time.Duration) error { w.clock = w.clock.Add(d); return nil }
	// instance makes that of the present build the world's, and gives its timer.
	commits, timers := map[string]*commit.Commit{}, map[string]*commit.Recover{}
	instance := func() *commit.Recover {
		name := build(now())
		if commits[name] == nil {
			_, c := w.instance("a", name, sink, func(o *commit.Options) {
				o.Draw = rng.Float64
				o.Breaker = breaker.New(w.control,
					breaker.Options{
						Build: name, SysName: "web", Heartbeat: sink.Heartbeat, Now: o.Now, Draw: o.Draw,
						MaxPoisonPerHour: 100, Wait: wait,
					})
			})
			commits[name], timers[name] = c, commit.NewRecover(c, w.docs)
		}
		w.commit = commits[name]
		return timers[name]
	}
	var docs []*played
	for _, a := range p.arrivals {
		for i := range a.n {
			at := a.from + (a.to-a.from)*time.Duration(i)/time.Duration(a.n)
			docs = append(docs,
				&played{at: at, bad: a.bad, unreadable: a.unreadable, lines: a.lines, number: rng.IntN(100)})
		}
	}
	slices.SortStableFunc(docs, func(a, b *played) int { return int(a.at - b.at) })
	next := 0
	for tick := time.Duration(0); tick < p.until; tick += 5 * time.Minute {
		for next < len(docs) && docs[next].at < tick+5*time.Minute {
			d, line := docs[next], int64(next+1)
			next++
			w.clock = start().Add(max(d.at, now()))
			instance()
			w.sink.AddLines(line)
			ofLine[line] = d
			raw := result(1, line, "ACME", "")
			if d.unreadable {
				raw = strings.Replace(raw, `"process_output":{`, `"process_output":7,"else":{`, 1)
			}
			d.id = idOf(t, raw)
			if _, err := w.offer(0, w.put(raw)...); p.away == nil { // what an outage keeps from the feed is an orphan
				require.NoError(t, err)
			}
		}
		w.clock = start().Add(max(tick+5*time.Minute, now()))
		if _, err := instance().Run(t.Context()); p.away == nil {
			require.NoError(t, err)
		}
		if p.retried > tick && p.retried <= tick+5*time.Minute {
			w.replay(docs)
		}
	}
	p.judge(t, w, docs)
}

// replay tries the documents again that were given up.
func (w *world) replay(docs []*played) {
	w.t.Helper()
	var failed []json.RawMessage
	for _, d := range docs {
		if d.id != "" && w.state(d.id)["status"] == "failed" {
			failed = append(failed, w.snapshots(d.id)...)
		}
	}
	require.NotEmpty(w.t, failed)
	for batch := range slices.Chunk(failed, 100) {
		w.runFor(false, replayed(), batch...)
	}
}

func (p blamed) judge(t *testing.T, w *world, docs []*played) {
	t.Helper()
	wrong, ended := 0, 0
	var late, soonest, latest time.Duration
	for _, d := range docs {
		s := w.state(d.id)
		require.LessOrEqual(t, s["retry_count"], 5.0, "%v", s)
		when := func(member string) time.Duration {
			at, ok := invoice.ParseStamp(s[member].(string), time.UTC)
			require.True(t, ok)
			return at.Sub(start())
		}
		switch {
		case s["status"] == "failed" && d.bad:
			took := when("failed_at") - d.at
			if ended++; ended == 1 || took < soonest {
				soonest = took
			}
			latest = max(latest, took)
			if d.unreadable {
				require.Contains(t, s["error"], "the document cannot be read as a result")
				break
			}
			require.Contains(t, s["error"], "Failed to process document after 5 retries:")
			require.Equal(t, 5.0, s["retry_count"])
		case s["status"] == "failed":
			wrong++
		case !d.bad:
			require.Equal(t, "committed", s["status"], "%s: %v", d.at, s)
			late = max(late, when("committed_at")-max(d.at, p.mend, d.lines))
		}
	}
	t.Logf("wrong %d, late %s, bad ended %d in %s to %s", wrong, late, ended, soonest, latest)
	require.LessOrEqual(t, wrong, p.wrong, "good documents that were given up")
	require.LessOrEqual(t, late, max(p.late, 36*time.Minute), "the latest good one")
	require.Equal(t, p.ended, ended, "bad documents that were given up")
	require.GreaterOrEqual(t, soonest, p.soonest)
	require.LessOrEqual(t, latest, p.latest)
}
