package ui

import (
	"maps"
	"slices"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// runsPage is what the page of runs shows.
type runsPage struct {
	Runs []ops.RunSummary
	// First says that it is the first page; Next is the address of the next one.
	First bool
	Next  string
}

// runs lists the runs.
func (v *visit) runs() (content, error) {
	q, err := query(v, opsapi.RunList)
	if err != nil {
		return content{}, err
	}
	if q.Limit == 0 {
		q.Limit = shownOnPage
	}
	found, err := do(v, opsapi.RunList, q)
	if err != nil {
		return content{}, err
	}
	p := runsPage{Runs: found.Runs, First: q.Page == ""}
	p.Next = v.nextPage(found.Next)
	return content{Title: "Runs", Command: "sqlwriterctl run list", Main: p, Live: p.First}, nil
}

// runPage is what the page of a run shows.
type runPage struct {
	ops.RunProgress

	// Meaning describes the kind.
	Meaning string
	// Known is how many documents it has as far as known; More says that there may be more.
	Known int
	More  bool
	// Outcomes are counts of documents.
	Outcomes []outcomeCount
	// Left are documents for which something is left to do, ItemsProblem why they could not be read. LeftNext is the
	// address of their next page.
	Left         []run.ItemOutcome
	LeftNext     string
	ItemsProblem string
	// Failed are the first failed batches.
	Failed []run.Batch
	// FailedBatches counts all failed batches.
	FailedBatches int
	// Commands are those of the actions that make sense now; none for a reader. Audit lists who did what in it.
	Commands []string
	Audit    string
}

// outcomeCount counts documents with an outcome. Kind is that of a state.
type outcomeCount struct {
	Outcome string
	Kind    string
	Count   int
}

// run shows a run.
func (v *visit) run() (content, error) {
	q, err := query(v, opsapi.RunItems)
	if err != nil {
		return content{}, err
	}
	progress, err := do(v, opsapi.RunShow, opsapi.Run{Run: q.Run})
	if err != nil {
		return content{}, err
	}
	p := runPage{RunProgress: progress}
	kind, _ := run.Kinds().Find(p.Kind)
	p.Meaning = kind.Meaning
	p.Known, p.More = progress.Known()
	p.Outcomes = outcomesOf(progress.Stats.Outcomes)
	if progress.Stats.Failed() {
		q.Outcomes, q.Limit = invoice.Unfinished(), shownOnPage
		items, err := do(v, opsapi.RunItems, q)
		if err != nil {
			p.ItemsProblem = reasonOf(err)
		}
		p.Left = items.Items
		p.LeftNext = v.nextPage(items.Next)
		if p.FailedBatches = progress.Stats.Batches[run.Failed]; p.FailedBatches > 0 {
			failed, err := do(v, opsapi.BatchList, ops.BatchQuery{Run: q.Run, Status: run.Failed, Limit: shownOnPage})
			if err != nil {
				p.ItemsProblem = reasonOf(err)
			}
			p.Failed = failed.Batches
		}
	}
	p.Audit = "sqlwriterctl audit list --all --run " + shellWord(q.Run)
	if v.Who.May() {
		p.Commands = commandsOf(p, !kind.Rewrite)
	}
	return content{
		Title: "Run " + p.ID, Command: "sqlwriterctl run show " + shellWord(q.Run), Main: p, Live: q.Page == "",
	}, nil
}

// commandsOf are the commands that act on a run now. again says that what it left can be tried again.
func commandsOf(p runPage, again bool) (all []string) {
	running, id := p.Status == run.RunRunning, shellWord(p.ID)
	for command, fits := range map[string]bool{
		"run cancel " + id:             running && !p.Cancel,
		"run resume " + id:             p.Status == run.RunFailed || p.Status == run.RunCancelled,
		"batch requeue --run " + id:    p.FailedBatches > 0 && p.Status.Requeueable(),
		"run start replay --run " + id: again && !running && p.Status != run.RunPurged && p.Stats.Left() > 0,
	} {
		if fits {
			all = append(all, "sqlwriterctl "+command+` --why "..."`)
		}
	}
	slices.Sort(all)
	return all
}

// outcomesOf are the counts of a receipt. Documents without an outcome are left out.
func outcomesOf(counts map[invoice.Outcome]int) (all []outcomeCount) {
	for _, o := range slices.Sorted(maps.Keys(counts)) {
		if o == "" {
			continue
		}
		state := "good"
		switch {
		case o == invoice.OutcomeFailed:
			state = "bad"
		case !o.Success():
			state = "wait"
		}
		all = append(all, outcomeCount{Outcome: strings.ReplaceAll(string(o), "_", " "), Kind: state, Count: counts[o]})
	}
	return all
}
