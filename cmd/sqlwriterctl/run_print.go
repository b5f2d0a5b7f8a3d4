package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// documentsMatched is the number of documents of a run in words.
func documentsMatched(s ops.Started) string {
	return atLeast(s.Matched, s.AtLeast) + " " + ops.Plural(s.Matched, "document", "documents")
}

func printStarted(a *app, s ops.Started) error {
	if s.Run != "" {
		a.printf("run %s: %s, in batches of %d", s.Run, documentsMatched(s), run.BatchSize)
		a.printf("`sqlwriterctl run show %s --watch` watches it", s.Run)
		return nil
	}
	a.printf("%s %s a %s", documentsMatched(s), ops.Plural(s.Matched, "matches", "match"), s.Kind)
	if len(s.First) == 0 {
		return nil
	}
	a.printf("in batches of %d", run.BatchSize)
	failures := [][]string{{"STATUS", "KIND", "CODE", "DOCUMENTS"}}
	for _, f := range s.Failures {
		failures = append(failures, []string{
			string(f.Status), orDash(f.Kind), orDash(f.Code), strconv.Itoa(f.Documents),
		})
	}
	first := [][]string{{"DOCUMENT", "STATUS", "KIND", "CODE", "FAILED OR CHANGED"}}
	for _, m := range s.First {
		first = append(first, []string{
			m.ID, orDash(string(m.Status)), orDash(m.Kind), orDash(m.Code), a.time(m.FailedAt),
		})
	}
	if err := a.tables(failures, first); err != nil {
		return err
	}
	if more := s.Matched - len(s.First); more > 0 {
		a.printf("and %s more", atLeast(more, s.AtLeast))
	}
	if len(s.Diffs) > 0 {
		a.printf("")
	}
	return printDiffs(a, s.Diffs)
}

// verdict is an error if a run ended otherwise than completed, has failures so far, or is a comparison and findings are
// open.
func verdict(p ops.RunProgress) error {
	switch {
	case p.Status == run.RunFailed || p.Status == run.RunCancelled:
		return advised(fmt.Errorf("run %s is %s", p.ID, p.Status), "`sqlwriterctl run resume %s --why TEXT` resumes it", p.ID)
	case p.Status == run.RunCompletedWithFailures:
		return failing(p, "completed with failures")
	case p.Status != run.RunRunning && p.Status != run.RunCompleted:
		return fmt.Errorf("run %s is %s", p.ID, p.Status)
	case p.Stats.Batches[run.Failed] > 0:
		return failing(p, "is running with failures")
	}
	return nil
}

// executed is verdict for a run that was executed here: it should have ended.
func executed(p ops.RunProgress) error {
	if p.Status == run.RunRunning {
		return fmt.Errorf("run %s is not over", p.ID)
	}
	return verdict(p)
}

// failing is the error of a run with failures, with the commands that list and retry them.
func failing(p ops.RunProgress, is string) error {
	var parts, advice, left []string
	documents := maps.Clone(p.Stats.Outcomes)
	maps.DeleteFunc(documents, func(o invoice.Outcome, _ int) bool { return o.Success() })
	for _, o := range slices.Sorted(maps.Keys(documents)) {
		left = append(left, string(o))
	}
	again, _ := run.Kinds().Find(p.Kind)
	tries := fmt.Sprintf(
		"`sqlwriterctl run start %s --id ID --why TEXT` tries one again, once its cause is mended", p.Kind)
	if !again.Rewrite { // a replay takes no committed documents
		if !again.OfRun {
			again = run.Kinds().OfRun()
		}
		tries = fmt.Sprintf("`sqlwriterctl run start %s --run %s --why TEXT` tries them again", again.Kind, p.ID)
	}
	if len(documents) > 0 {
		parts = append(parts, "documents: "+counted(documents))
		advice = append(advice, fmt.Sprintf("`sqlwriterctl run items %s --outcome %s` lists them, %s", p.ID,
			strings.Join(left, ","), tries))
	}
	if n := p.Stats.Batches[run.Failed]; n > 0 {
		parts = append(parts, batches(n)+" failed")
		advice = append(advice, fmt.Sprintf("`sqlwriterctl batch list %s --status failed` shows the errors, "+
			"`sqlwriterctl batch requeue --run %s --why TEXT` sends them again", p.ID, p.ID))
	}
	return advised(fmt.Errorf("run %s %s: %s", p.ID, is, strings.Join(parts, "; ")), "%s", strings.Join(advice, "; "))
}

// counted formats counts by outcome.
func counted(counts map[invoice.Outcome]int) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[o], outcomeName(o)))
	}
	return strings.Join(parts, ", ")
}

// batches formats a number of batches.
func batches(n int) string { return strconv.Itoa(n) + " " + ops.Plural(n, "batch", "batches") }

// printRun prints a run with its numbers.
func printRun(a *app, p ops.RunProgress) error {
	rows := [][]string{{"run", p.ID}, {"status", runStatus(p.Run, p.Stats.Batches)}}
	if p.State != ops.RunEnded { // its status says it
		rows = append(rows, []string{"now", a.says(p.Says)})
	}
	if p.Error != "" {
		rows = append(rows, []string{"error", a.says(p.Error)})
	}
	if p.LostManagers > 0 {
		lost := fmt.Sprintf("%d in a row, without another hand-off", p.LostManagers)
		rows = append(rows, []string{"lost managers", lost})
	}
	handOff := p.Says
	if !p.HandedOffAt.IsZero() {
		handOff = "done " + a.time(p.HandedOffAt)
	}
	for _, bound := range []struct {
		n    int
		text string
	}{{p.Rate, "%d documents a minute"}, {p.Limit, "at most %d documents"}} {
		if bound.n > 0 {
			handOff += ", " + fmt.Sprintf(bound.text, bound.n)
		}
	}
	rows = append(rows,
		[]string{"kind", string(p.Kind)}, []string{"filter", filterWords(p.Filter)},
		[]string{"requested by", fmt.Sprintf("%s at %s: %s", p.RequestedBy, a.time(p.StartedAt), oneLine(p.Why))},
		[]string{"hand-off", handOff}, []string{"documents", progressWords(p)},
		[]string{"batches", orDash(batchCounts(p.Stats.Batches))},
		[]string{"outcomes", orDash(counted(p.Stats.Outcomes))}, []string{"ended", a.time(p.EndedAt)},
	)
	return a.table(rows)
}

// progressWords describes the progress of a run.
func progressWords(p ops.RunProgress) string {
	text := fmt.Sprintf("%d of %s (%s), %s a second on average", p.Done, known(p.Run), percent(p), decimal(p.PerSecond))
	if p.LeftSeconds > 0 {
		text += ", about " + seconds(p.LeftSeconds) + " left"
	}
	return text
}

// filterWords formats the filter of a run.
func filterWords(filter json.RawMessage) string {
	if text := string(filter); text != "{}" {
		return orDash(text)
	}
	return "all"
}

// printRuns prints a list of runs.
func printRuns(a *app, runs []ops.RunSummary) error {
	rows := [][]string{{"RUN", "STATUS", "STATE", "DOCUMENTS", "BATCHES", "STARTED", "ENDED", "BY", "WHY"}}
	for _, s := range runs {
		documents := strconv.Itoa(s.Documents)
		if s.HandedOffAt.IsZero() {
			documents += " of " + known(s.Run)
		}
		documents += " handed off"
		rows = append(rows, []string{
			s.ID, runStatus(s.Run, s.Batches), orDash(s.State), documents, orDash(batchCounts(s.Batches)),
			a.time(s.StartedAt), a.time(s.EndedAt),
			s.RequestedBy, oneLine(s.Why),
		})
	}
	return a.table(rows)
}

// printActed prints the result of an action on a run.
func printActed(a *app, p ops.RunProgress, err error, result string) error {
	if err != nil {
		return err
	}
	if p.Note != "" {
		a.notef("%s", a.says(p.Note))
	}
	return a.emitLine(p, p.ID, "%s: %s", p.ID, result)
}

// runStatus is a run's status, with failed batches first.
func runStatus(r run.Run, counts map[run.BatchStatus]int) string {
	status := strings.ReplaceAll(string(r.Status), "_", " ")
	if r.Status == run.RunRunning && r.Cancel {
		status += ", to be cancelled"
	}
	if n := counts[run.Failed]; n > 0 {
		status = strings.ToUpper(batches(n)) + " FAILED, " + status
	}
	return status
}

// known is the known number of documents of a run, with a plus if there may be more.
func known(r run.Run) string {
	total, more := r.Known()
	if more {
		return strconv.Itoa(total) + "+"
	}
	return strconv.Itoa(total)
}

// percent is the done share of the known documents. It stays below 100 % while there may be more.
func percent(p ops.RunProgress) string {
	const all = 100
	total, more := p.Known()
	if total == 0 {
		return "-"
	}
	done := all * p.Done / total
	if more {
		done = min(done, all-1)
	}
	return strconv.Itoa(done) + "%"
}

// decimal formats a speed.
func decimal(n float64) string {
	const exact = 10
	if n >= exact || n == 0 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// batchCounts formats the numbers of batches by status: failed ones first, then in the order of a batch's life cycle.
func batchCounts(counts map[run.BatchStatus]int) string {
	var parts []string
	for _, s := range append([]run.BatchStatus{run.Failed},
		slices.DeleteFunc(run.BatchStatuses(), func(s run.BatchStatus) bool { return s == run.Failed })...) {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// outcomeName is the name of an outcome; "none" of a document that is not processed yet.
func outcomeName(o invoice.Outcome) string {
	if o == "" {
		return "none"
	}
	return string(o)
}
