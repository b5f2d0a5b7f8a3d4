package bench

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"sqlwriter/internal/sqlserver/sqlservertest"
)

// page is docs/bench.md.
func page(t testing.TB, began time.Time, runs []run) string {
	t.Helper()
	p := &printer{}
	p.line("# Bench")
	p.line("")
	p.line("Written by `make bench` on %s, in one run of %.0f s on %s.",
		began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(began).Seconds(), machine())
	p.line("The T-SQL server is the one that `%s` names, by a connection string whose login may create databases;", sqlservertest.Variable)
	p.line("without it there are SQLite's figures only. Figures are for comparison with each other: other machines have others.")
	p.line("")
	d := makeDoc(t, firstLine, first.turn(), "")
	p.line("A document has a main line and %d duplicates: %d rows in each of the user's two tables, with %d bytes of values", duplicates, linesOf, valueBytes(d))
	p.line("each. The client has one connection and waits for every answer. Every figure is the median of rounds in which the")
	p.line("ways take turns. *First* results meet lines without a tracking row and a ledger row, *repeat* ones a newer result for")
	p.line("the same lines; *unchanged* are the same documents again, *stale* older ones.")
	p.line("")
	p.line("- **(a) row at a time**, as the original does it: for each line UPDATE IVCE_DTL, UPDATE IVCE_TRKG_MSTR and, where that")
	p.line("  found no row, INSERT; statements prepared, a transaction for each document.")
	p.line("- **(b) bare**: one request with one JSON parameter, UPDATE, UPDATE and INSERT for 100 documents. No ledger, no guard,")
	p.line("  no verdict, no count: it is what cannot be done without, and not something that could be used.")
	p.line("- **(c) MERGE**, as the Azure SQL output binding writes: for each table a transaction with OPENJSON and MERGE.")
	p.line("- **(d) ours**: `Sink.Apply`; through the use case it also reads 100 documents and records their outcomes, in memory.")
	p.line("  *One bad* is a document among 100 that a constraint of the user's refuses; the use case finds it by halving.")
	p.goals(runs)
	for _, r := range runs {
		p.engine(r)
	}
	if len(runs) == 1 {
		p.line("")
		p.line("No T-SQL server was measured: `%s` named none.", sqlservertest.Variable)
	}
	return p.String()
}

// engine prints what was found on one engine.
func (p *printer) engine(r run) {
	p.line("")
	p.line("## %s", r.name)
	p.line("")
	p.line("%s. %s", r.version, r.remark)
	for _, l := range r.lanes {
		p.line("")
		if len(r.far) > 0 {
			p.line("### %s", distance(l))
			p.line("")
		}
		p.line("| way | results | documents/s | times (a) | times (b) | requests per 100 documents | Go allocations per document |")
		p.line("|---|---|---|---|---|---|---|")
		for _, w := range l.ways {
			for _, k := range w.kinds {
				f := l.found[cell{w.name, k}]
				p.line("| (%s) %s | %s | %s | %s | %s | %s | %s |", w.role, w.name, k, round(median(f.rate)),
					round(l.against(rowByRow, w, k)), round(l.against(bare, w, k)), round(f.requests), round(median(f.allocs)))
			}
		}
	}
	p.texts(r)
	p.line("")
	p.line("### Forms that were tried, at 0 ms")
	p.line("")
	p.line("The fastest of each counts above, by the time for a first and a repeated result together.")
	p.line("")
	p.line("| way | first, documents/s | repeat, documents/s |")
	p.line("|---|---|---|")
	for _, w := range r.tried {
		if w.role == rowByRow || w.role == bare {
			p.line("| (%s) %s | %s | %s |", w.role, w.name, round(r.lanes[0].rate(w.name, first)), round(r.lanes[0].rate(w.name, repeat)))
		}
	}
}

// texts prints what the engine needs to take in the requests' texts.
func (p *printer) texts(r run) {
	if r.texts == nil {
		return
	}
	p.line("")
	p.line("### What of it is the text")
	p.line("")
	p.line("The same request, with its text where it is not run. A server that keeps plans for constant texts, as SQL Server does,")
	p.line("needs next to nothing; one that does not reads the whole text each time, the longer the text the longer.")
	p.line("")
	p.line("| way | bytes | ms | of the time for 100 first results | and of repeat |")
	p.line("|---|---|---|---|---|")
	near := r.lanes[0]
	share := func(name string, k kind) float64 {
		return float64(r.texts[name].took) / float64(time.Second) * near.rate(name, k) / 100
	}
	for _, w := range near.ways {
		if c, ok := r.texts[w.name]; ok {
			p.line("| (%s) %s | %d | %s | %.0f %% | %.0f %% |", w.role, w.name, c.bytes, round(float64(c.took)/float64(time.Millisecond)),
				100*share(w.name, first), 100*share(w.name, repeat))
		}
	}
	for _, w := range near.ways {
		if _, ok := r.texts[w.name]; ok && w.role == bare {
			without := func(k kind) float64 {
				return (1 - share(w.name, k)) / near.rate(w.name, k) * near.rate(ours100, k) / (1 - share(ours100, k))
			}
			p.line("")
			p.line("Without the text on both sides, ours would be %s of (b) for first results and %s for repeat ones.", round(without(first)), round(without(repeat)))
		}
	}
}

// distance names a lane.
func distance(l laneRun) string {
	return fmt.Sprintf("%d ms (the smallest request took %.2f ms)", l.distance.Milliseconds(), float64(l.trip.Microseconds())/1000)
}

// rate is a cell's documents per second.
func (l laneRun) rate(name string, k kind) float64 {
	if f := l.found[cell{name, k}]; f != nil {
		return median(f.rate)
	}
	return 0
}

// against is how many times as fast a way is as the one with a role, for results of the same kind; what writes nothing is
// compared with what the others do with newer results.
func (l laneRun) against(r role, w way, k kind) float64 {
	like := map[kind]kind{first: first, oneBad: first, repeat: repeat, unchanged: repeat, stale: repeat}[k]
	for _, other := range l.ways {
		if base := l.rate(other.name, like); other.role == r && base > 0 {
			return l.rate(w.name, k) / base
		}
	}
	return 0
}

// goals prints what was aimed at, and what came of it.
func (p *printer) goals(runs []run) {
	p.line("")
	p.line("## Goals, at 100 documents a request")
	p.line("")
	p.line("Those against (a) are about the wire; SQLite has none.")
	p.line("")
	p.line("| goal | engine | found | |")
	p.line("|---|---|---|---|")
	say := func(goal, name, found string, met bool) {
		word := "met"
		if !met {
			word = "**missed**"
		}
		p.line("| %s | %s | %s | %s |", goal, name, found, word)
	}
	for _, r := range runs {
		for _, l := range r.lanes {
			hundred := way{name: ours100}
			where := r.name
			if len(r.far) > 0 {
				where = fmt.Sprintf("%s, %d ms", r.name, l.distance.Milliseconds())
			}
			for _, k := range []kind{first, repeat} {
				a, b := l.against(rowByRow, hundred, k), l.against(bare, hundred, k)
				switch {
				case len(r.far) == 0: // the two goals are about the wire
				case l.distance == 0:
					say("at least 20 times (a) at 0 ms", where+", "+string(k), round(a), a >= 20)
				case l.distance == 2*time.Millisecond:
					say("at least 80 times (a) at 2 ms", where+", "+string(k), round(a), a >= 80)
				}
				say("at least 0.8 of (b)", where+", "+string(k), round(b), b >= 0.8)
			}
			bad := l.rate(useCase, first) / l.rate(useCase, oneBad)
			say("one bad in 100: less than 2 times as long as a clean batch", where, round(bad), bad < 2)
		}
		n := r.lanes[0].found[cell{ours100, first}].requests
		say("one request for a clean batch", r.name, round(n), n == 1)
	}
}

type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...) // a strings.Builder takes everything
}

// machine says what the run was made on.
func machine() string {
	memory := ""
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			memory = fmt.Sprintf(", %.0f GiB", float64(kb)/(1<<20))
		}
	}
	return fmt.Sprintf("%s/%s, %d cores%s, %s%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), memory, runtime.Version(), load())
}

// load says how busy the machine is: figures of a busy one are worth little.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return ", load average at the end " + strings.Join(strings.Fields(string(text))[:3], " ")
}

// round keeps three digits: more would be noise.
func round(f float64) string {
	if f <= 0 {
		return "-"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(f))))
	scale := math.Pow(10, 2-math.Floor(math.Log10(f)))
	return fmt.Sprintf("%.*f", digits, math.Round(f*scale)/scale)
}
