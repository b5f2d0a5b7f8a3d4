package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

const (
	// mostListedIDs is how many documents a run may be given by name.
	maxRunIDs = 10_000
	// mostPreviewed is how many documents a preview counts; more are "at least".
	maxPreviewed = 10_000
	// mostRunLimit is the largest limit that can be asked for.
	maxRunLimit = 100_000_000
	// mostRunsCounted is of how many runs in a list the batches are counted.
	maxRunsCounted = 100
	// mostBatchesRead is how many of the latest batches of a shared database are looked through for those of one environment;
	// seekFactor is how much more is asked for when these were not enough.
	maxBatchesRead = 10_000
	seekFactor     = 4
	// aloneSilent is for how long a run that one process does alone may say nothing before that is told: it says something after
	// each batch.
	aloneSilent = 10 * time.Minute
	// requeueWithin is how long one request sends batches again: Azure's front end gives an HTTP request up after 230 s.
	requeueWithin = 2 * time.Minute
	// sendWithin bounds the sending of a run's first message.
	sendWithin = 20 * time.Second
)

// StartRequest asks for a run that a manager and workers do.
type StartRequest struct {
	// Kind is drain, replay or reindex.
	Kind run.Kind `json:"kind"`
	run.Filter
	// All must be said when the filter is empty, and only then; a drain needs no filter.
	All bool `json:"all,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is how many documents are handed off a minute, Limit how many at most; 0 means no bound.
	Rate  int `json:"rate_per_minute,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Pattern is how batches are handed off; empty: two_phase, or checkpoint for more than 10,000 documents.
	Pattern string `json:"pattern,omitempty"`
	By      string `json:"by,omitempty"`
	Why     string `json:"why,omitempty"`
}

// check refuses what cannot be meant.
func (r StartRequest) check() error {
	empty := r.ErrorKind == "" && r.Code == "" && r.From.IsZero() && r.To.IsZero() && len(r.IDs) == 0 && r.Run == ""
	_, known := run.PatternOf(r.Pattern)
	switch {
	case !r.Kind.Known():
		return refuse(Usage, "kind: expected drain, replay or reindex, found %q", string(r.Kind))
	case r.ErrorKind != "" && !knownKind(fault.Kind(r.ErrorKind)):
		return refuse(Usage, "error_kind: expected one of %s, found %q", kinds(), r.ErrorKind)
	case !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To):
		return refuse(Usage, "to: expected a time after from")
	case len(r.IDs) > maxRunIDs:
		return refuse(Usage, "ids: expected at most %d, found %d", maxRunIDs, len(r.IDs))
	case len(r.IDs) > 0 && (r.ErrorKind != "" || r.Code != "" || !r.From.IsZero() || !r.To.IsZero()):
		return refuse(Usage, "ids: go with no other filter")
	case r.Run != "" && (r.Kind != run.Replay || r.ErrorKind != "" || !r.From.IsZero() || !r.To.IsZero() || len(r.IDs) > 0):
		return refuse(Usage, "run: goes with a replay, and with no other filter than a code")
	case r.Run != "" && !isRunID(r.Run):
		return notARun(r.Run)
	case r.Rate < 0 || r.Rate > maxRate:
		return refuse(Usage, "rate: expected 0 to %d documents a minute, found %d", maxRate, r.Rate)
	case r.Limit < 0 || r.Limit > maxRunLimit:
		return refuse(Usage, "limit: expected 0 to %d, found %d", maxRunLimit, r.Limit)
	case r.Pattern != "" && !known:
		return refuse(Usage, "pattern: expected two_phase, checkpoint or optimistic, found %q", r.Pattern)
	case empty && !r.All && r.Kind != run.Drain:
		return refuse(Usage, "all: expected a filter, or that all documents are meant")
	case r.All && !empty:
		return refuse(Usage, "all: goes with no filter")
	}
	for _, id := range r.IDs {
		if err := checkDocumentID(id); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	return checkReason(r.By, r.Why)
}

func knownKind(k fault.Kind) bool {
	return slices.ContainsFunc(fault.Rules(), func(rule fault.Rule) bool { return rule.Kind == k })
}

// Started is what a run was found to be, and that it runs.
type Started struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Run is its id; empty for a dry run, and when nothing matches.
	Run  string   `json:"run,omitempty"`
	Kind run.Kind `json:"kind"`
	// Matched is how many documents match now and are within the limit; with AtLeast there may be more: the count ended at
	// 10,000, or after a minute.
	Matched int  `json:"matched"`
	AtLeast bool `json:"at_least,omitempty"`
	// Pattern is how they are handed off, in batches of 100.
	Pattern string `json:"pattern"`
	// First are some of them, at most 20.
	First []Match `json:"first"`
	// Note says what is not as it should be although the run is there.
	Note string `json:"note,omitempty"`
}

// StartRun begins a run: its row, its entry in the audit log, its first message. A dry run counts and lists what it would take
// and changes nothing. When the message cannot be sent the run is there all the same: the timer sends one. Errors:
// *RequestError (usage; conflict in a shadow); infrastructure, throttled, quota, contention: then nothing was begun.
func (o *Ops) StartRun(ctx context.Context, r StartRequest) (Started, error) {
	r.IDs = distinct(r.IDs)
	if err := r.check(); err != nil {
		return Started{}, err
	}
	if o.o.ReadOnly != "" && !r.DryRun {
		return Started{}, refuse(Conflict, "%s", o.o.ReadOnly)
	}
	res, err := o.previewRun(ctx, r)
	if err != nil || r.DryRun || (res.Matched == 0 && !res.AtLeast) {
		return res, err
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return Started{}, fault.Wrap(fault.Internal, "ops: start run", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: newRunID(string(r.Kind), o.o.Now()), SysName: o.o.SysName, Kind: r.Kind, Filter: filter, Pattern: res.Pattern,
		Rate: r.Rate, Limit: r.Limit, Matched: res.Matched, AtLeast: res.AtLeast,
		RequestedBy: r.By, Why: r.Why,
	}
	res.Run = row.ID
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		return s.Runs.StartRun(ctx, row, run.Audit{
			Code: run.CodeRunStart, Level: run.LevelInfo, By: r.By, Why: r.Why, Run: row.ID,
			Detail: json.RawMessage(fmt.Sprintf(`{"kind":%q,"matched":%d,"at_least":%t,"pattern":%q}`, r.Kind, res.Matched, res.AtLeast, res.Pattern)),
		})
	})
	if err != nil {
		return Started{}, unaudited(err)
	}
	res.Note = o.notify(ctx, row)
	return res, nil
}

// notify sends the message that a manager begins with, and says what is to be said when that fails.
func (o *Ops) notify(ctx context.Context, row run.Run) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	errs := o.p.RunQueue.Send(ctx, []run.Outgoing{run.RunPayload(row).Outgoing(0)})
	if len(errs) == 1 && errs[0] == nil {
		return ""
	}
	why := "no answer"
	if len(errs) > 0 {
		why = errorText(errs[0])
	}
	return "its message could not be sent, the timer sends one within about ten minutes: " + why
}

// previewRun counts what a run would take.
func (o *Ops) previewRun(ctx context.Context, r StartRequest) (Started, error) {
	res := Started{DryRun: r.DryRun, Kind: r.Kind, Pattern: r.Pattern, First: []Match{}}
	if len(r.IDs) > 0 {
		res.Matched = len(r.IDs)
		for _, id := range r.IDs[:min(len(r.IDs), shown)] {
			res.First = append(res.First, Match{ID: id})
		}
	} else if r.Run != "" {
		if err := o.previewLeft(ctx, r, &res); err != nil {
			return Started{}, err
		}
	} else {
		finding, cancel := context.WithTimeout(ctx, findWithin)
		defer cancel()
		err := run.Preview(finding, o.p.Selection, o.o.SysName, r.Kind, r.Filter, o.o.Now(), func(doc commit.PendingDoc) bool {
			if res.Matched++; len(res.First) < shown {
				res.First = append(res.First, o.match(doc))
			}
			res.AtLeast = res.Matched > maxPreviewed
			return !res.AtLeast
		})
		if err != nil {
			late := finding.Err() != nil && ctx.Err() == nil
			if !late && fault.CodeOf(err) != "continuation" { // the container forgot where the search was: what was found counts
				return Started{}, err
			}
			res.AtLeast = true
		}
	}
	if r.Limit > 0 && res.Matched > r.Limit {
		res.Matched, res.AtLeast = r.Limit, false
		res.First = res.First[:min(len(res.First), r.Limit)]
	}
	if res.AtLeast {
		res.Matched = min(res.Matched, maxPreviewed)
	}
	if res.Pattern == "" {
		res.Pattern = run.ChoosePattern(res.Matched, res.AtLeast)
	}
	return res, nil
}

// previewLeft counts what is left of another run.
func (o *Ops) previewLeft(ctx context.Context, r StartRequest, res *Started) error {
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		row, err := o.requireRun(ctx, s, r.Run)
		switch {
		case err != nil:
			return err
		case row.Pattern == "":
			return notItemised(r.Run)
		}
		return run.PreviewLeft(ctx, s.Runs, r.Filter, func(id string) bool {
			if res.Matched++; len(res.First) < shown {
				res.First = append(res.First, Match{ID: id})
			}
			res.AtLeast = res.Matched > maxPreviewed
			return !res.AtLeast
		})
	})
}

// newRunID names a run: what it is, when it was asked for, and something that no other has.
func newRunID(kind string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%08x", kind, now.UTC().Format("20060102-150405"), rand.Uint32())
}
