package bench

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"sqlwriter/test/sqlservertest"
)

// page is the section of docs/figures.md about the speed of a write.
func page(t testing.TB, began time.Time, runs []run) string {
	t.Helper()
	p := &printer{}
	p.line("## Speed of a write")
	p.line("")
	p.line("Written by `make bench` on %s, in one run of %.0f s on %s.",
		began.UTC().Format("2006-01-02 15:04 UTC"), time.Since(began).Seconds(), machine())
	p.line("")
	d := makeDoc(t, firstLine, first.turn(), "")
	p.line(
		"A document has a main line and %d duplicates: %d rows in each of the user's two tables, with %d bytes of values each. Figures are documents a",
		duplicates, linesOf, valueBytes(d))
	p.line(
		"second, the median of rounds in which the ways take turns. *First* results meet lines without a tracking row and a ledger row, *repeat* ones are newer")
	p.line("results for the same lines.")
	p.line("")
	p.line("- **(a) row at a time**, as the original does it: statements prepared once, a transaction for each document.")
	p.line("- **(b) bare**: one request with one JSON parameter, no ledger, guard, verdict or count: what cannot be done without.")
	p.line("- **(c) ours**, through the use case: reads documents, writes them, records outcomes to nowhere. *One bad* is found by dividing.")
	p.line("")
	p.line("Aimed at, for 100 documents a request: 0.75 of (b), on SQLite 0.6; over the wire 20 times (a), and 80 times at 2 ms;")
	p.line("one bad document in 100 costs less than 3 times a clean batch.")
	for _, r := range runs {
		p.line("")
		p.line("### %s", r.name)
		p.line("")
		p.line("%s", r.remark)
		for _, l := range r.lanes {
			p.table(r, l)
		}
	}
	if len(runs) == 1 {
		p.line("")
		p.line("No T-SQL server was measured: `%s` named none.", sqlservertest.Variable)
	}
	return p.String()
}

// where names an engine at a distance.
func (r run) where(l laneRun) string {
	if r.file {
		return r.name
	}
	return fmt.Sprintf("%s, %d ms", r.name, l.distance.Milliseconds())
}

// table prints what was found on an engine at a distance.
func (p *printer) table(r run, l laneRun) {
	p.line("")
	if !r.file {
		p.line("The smallest request took %.2f ms at %d ms.", float64(l.trip.Microseconds())/1000,
			l.distance.Milliseconds())
		p.line("")
	}
	p.line("| %s | first | repeat | of (b), first | requests per 100 documents, first / repeat |", r.where(l))
	p.line("|---|---|---|---|---|")
	counted := r.lanes[len(r.lanes)-1].found // at a distance nothing is direct
	for _, w := range l.ways {
		row := "| " + w.name + " |"
		var requests []string
		for _, k := range []kind{first, repeat} {
			row += fmt.Sprintf(" %s |", round(l.rate(w.name, k)))
			if f := counted[cell{w.name, k}]; f != nil {
				requests = append(requests, round(f.requests))
			}
		}
		p.line("%s %s | %s |", row, round(l.rate(w.name, first)/l.rate(bare, first)), strings.Join(requests, " / "))
	}
}

// rate is a way's documents per second; 0 where it was not measured.
func (l laneRun) rate(name string, k kind) float64 {
	if f := l.found[cell{name, k}]; f != nil {
		return median(f.rates)
	}
	return 0
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
	return fmt.Sprintf("%s/%s, %d cores%s, %s%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), memory,
		runtime.Version(), load())
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
	if f <= 0 || math.IsNaN(f) {
		return "-"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(f))))
	scale := math.Pow(10, 2-math.Floor(math.Log10(f)))
	return fmt.Sprintf("%.*f", digits, math.Round(f*scale)/scale)
}
