package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// Outcomes are counts of documents in the order of the kind's receipt, then unknown ones.
	Outcomes []outcomeCount
	// Left are documents that failed or were deferred, ItemsProblem why they could not be read. LeftNext is the address of their next page.
	Left         []run.ItemOutcome
	LeftNext     string
	ItemsProblem string
	// Failed are the first failed batches.
	Failed []run.Batch
	// FailedBatches counts all failed batches.
	FailedBatches int
	// CanCancel, CanResume, CanRequeue, CanReplay say which actions make sense now.
	CanCancel, CanResume, CanRequeue, CanReplay bool
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
	p.Outcomes = outcomesOf(kind, progress.Stats.Outcomes)
	hasDocuments := len(kind.Passes) == 0
	if hasDocuments && progress.Stats.Failed() {
		q.Outcomes, q.Limit = []run.Outcome{run.DocFailed, run.DocDeferred}, shownOnPage
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
	running := p.Status == run.RunRunning
	p.CanCancel = running && !p.Cancel
	p.CanResume = p.Status == run.RunFailed || p.Status == run.RunCancelled
	p.CanRequeue = p.FailedBatches > 0 && p.Status.Requeueable()
	p.CanReplay = !running && p.Status != run.RunPurged && hasDocuments && !kind.Rewrite && progress.Stats.Outcomes[run.DocFailed]+progress.Stats.Outcomes[run.DocDeferred] > 0
	return content{Title: "Run " + p.ID, Command: "sqlwriterctl run show " + shellWord(q.Run), Main: p, Live: q.Page == ""}, nil
}

// outcomesOf are the counts of a receipt. Documents without an outcome are left out.
func outcomesOf(kind run.KindRow, counts map[run.Outcome]int) []outcomeCount {
	var all []outcomeCount
	seen := map[run.Outcome]bool{"": true}
	for _, o := range append(slices.Clone(kind.Outcomes), slices.Sorted(maps.Keys(counts))...) {
		if seen[o] || counts[o] == 0 {
			continue
		}
		seen[o] = true
		state := "good"
		switch {
		case len(kind.Passes) > 0:
			state = "off"
		case o == run.DocFailed:
			state = "bad"
		case o == run.DocDeferred:
			state = "wait"
		}
		all = append(all, outcomeCount{Outcome: strings.ReplaceAll(string(o), "_", " "), Kind: state, Count: counts[o]})
	}
	return all
}

// runAction is what the page of a run's action shows.
type runAction struct {
	Run     ops.RunProgress
	Confirm confirm
}

// runToAct reads the run that an action's page is about.
func (v *visit) runToAct() (p ops.RunProgress, c confirm, err error) {
	id := v.Query.Get("run")
	if v.Form != nil {
		id = v.Form.Get("run")
	}
	p, err = do(v, opsapi.RunShow, opsapi.Run{Run: id})
	return p, confirm{
		To: v.Path, Back: string(link("run", "run", id)), BackName: "Back to the run", Fields: []field{{"run", id}}, Why: v.Form.Get("why"),
	}, err
}

func (v *visit) cancel() (content, error) {
	p, c, err := v.runToAct()
	if err != nil {
		return content{}, err
	}
	c.Says = "The run ends. Batches that a worker has now are finished; the others do not start."
	c.Not = []string{"What was written stays.", "Its documents keep their status: those not reached are as they were.", "It can be resumed later."}
	c.Button, c.Danger = "Cancel the run"+withLeft(p), true
	if p.Status != run.RunRunning || p.Cancel {
		c.Nothing = fmt.Sprintf("the run is %s: there is nothing to cancel", inWords(string(p.Status), p.Cancel))
	}
	return v.runAction("Cancel run "+p.ID, "sqlwriterctl run cancel", p, c), nil
}

// withLeft says how many documents of a run have no outcome; empty when that is not known, or none.
func withLeft(p ops.RunProgress) string {
	known, more := p.Known()
	left := known - p.Done
	if left <= 0 {
		return ""
	}
	words := number(left) + " " + ops.Plural(left, "document", "documents")
	if more {
		words = "at least " + words
	}
	return " with " + words + " left"
}

func (v *visit) doCancel() (string, error) {
	p, err := do(v, opsapi.RunCancel, ops.RunRequest{Run: v.Form.Get("run"), Why: v.Form.Get("why")})
	return string(link("run", "run", p.ID)), err
}

func (v *visit) resume() (content, error) {
	p, c, err := v.runToAct()
	if err != nil {
		return content{}, err
	}
	c.Says = "The run goes on where it ended: unfinished batches, and those that its cancellation ended, are sent again."
	c.Not = []string{"Documents that have an outcome are not tried again.", "Batches that failed for another reason stay failed; requeue them."}
	c.Button = "Resume the run" + withLeft(p)
	if p.Status != run.RunFailed && p.Status != run.RunCancelled {
		c.Nothing = fmt.Sprintf("the run is %s: only a failed or cancelled run is resumed", inWords(string(p.Status), p.Cancel))
	}
	return v.runAction("Resume run "+p.ID, "sqlwriterctl run resume", p, c), nil
}

func (v *visit) doResume() (string, error) {
	p, err := do(v, opsapi.RunResume, ops.RunRequest{Run: v.Form.Get("run"), Why: v.Form.Get("why")})
	return string(link("run", "run", p.ID)), err
}

func (v *visit) requeue() (content, error) {
	p, c, err := v.runToAct()
	if err != nil {
		return content{}, err
	}
	failed := p.Stats.Batches[run.Failed]
	c.Says = fmt.Sprintf("%s failed %s sent again, at most %s at once.", number(failed), ops.Plural(failed, "batch is", "batches are"), number(ops.RequeuedAtOnce))
	c.Not = []string{"Their documents that have an outcome are not tried again: a replay does that.", "A completed run runs again until they have ended."}
	c.Button = fmt.Sprintf("Requeue %s %s", number(failed), ops.Plural(failed, "batch", "batches"))
	if failed > ops.RequeuedAtOnce {
		c.Button = fmt.Sprintf("Requeue %s of %s batches", number(ops.RequeuedAtOnce), number(failed))
	}
	switch {
	case failed == 0:
		c.Nothing = "no batch of the run has failed"
	case p.Status == run.RunPurged:
		c.Nothing = "retention deletes the run"
	case !p.Status.Requeueable():
		c.Nothing = fmt.Sprintf("the run is %s: resume it first", p.Status)
	}
	return v.runAction("Requeue failed batches of "+p.ID, "sqlwriterctl batch requeue --run", p, c), nil
}

func (v *visit) doRequeue() (string, error) {
	id := v.Form.Get("run")
	_, err := do(v, opsapi.BatchRequeue, ops.RequeueRequest{Run: id, Why: v.Form.Get("why")})
	return string(link("run", "run", id)), err
}

func (v *visit) runAction(title, command string, p ops.RunProgress, c confirm) content {
	return content{Title: title, Command: command + " " + shellWord(p.ID) + ` --why "..."`, Main: runAction{p, c}}
}

// inWords is a run's status for a sentence.
func inWords(status string, cancel bool) string {
	if cancel {
		return "to end already"
	}
	return strings.ReplaceAll(status, "_", " ")
}

// batchPage is what the page of a batch shows.
func (v *visit) batch() (content, error) {
	q, err := query(v, opsapi.BatchShow)
	if err != nil {
		return content{}, err
	}
	d, err := do(v, opsapi.BatchShow, q)
	if err != nil {
		return content{}, err
	}
	name := fmt.Sprintf("%s/%d", d.Run, d.Number)
	return content{Title: "Batch " + name, Command: "sqlwriterctl batch list " + shellWord(d.Run), Main: d, Live: true}, nil
}
