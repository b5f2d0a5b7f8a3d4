package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/timer"
)

// RowFeed is the row of DoctorRequest.Send: the change feed brings a canary (commit.CanaryPrefix) to CommitResults,
// which may patch it.
const RowFeed = "feed"

// Canaries is the container of results, for canaries. Errors by kind, for all calls: those of commit.Documents.
type Canaries interface {
	Read(ctx context.Context, id string) (json.RawMessage, error)
	// CreateCanary makes a document of a sys_name. The members of the partition key that it lacks are its id. Errors
	// also: infrastructure (it may be there); document, where the key allows no such document.
	CreateCanary(ctx context.Context, id, sysName string) error
	// Delete deletes the document with an id. One that is gone is no error.
	Delete(ctx context.Context, id string) error
}

const (
	// feedWithin bounds the row in all its steps: the tool waits 120 s for an answer, of which the other rows take ten.
	// lookWithin of it stays for deleting the canary.
	feedWithin = 100 * time.Second
	// seenWithin is how long a canary is waited for; seenCold while the app is younger than coldFor.
	seenWithin, seenCold, coldFor = 30 * time.Second, 90 * time.Second, 2 * time.Minute
	// canaryLeft is the age of a canary that a killed call left. One that another call waits for is younger, also where
	// clocks differ by a minute.
	canaryLeft = 3 * time.Minute
	// askSeen is the time between two looks.
	askSeen = 200 * time.Millisecond
)

// lookFeed sends a canary, waits until it is marked, and deletes it. It sends none while nothing would take it.
func (o *Ops) lookFeed(ctx context.Context) DoctorRow {
	if o.o.ReadOnly != "" {
		return DoctorRow{State: RowNotLooked, Found: "shadow: not sent, and none that is left is deleted"}
	}
	working, cancel := context.WithTimeout(ctx, feedWithin-lookWithin)
	defer cancel()
	if held := o.feedHeld(working, false); held.State != "" {
		return held
	}
	within := seenWithin
	if o.o.Now().Sub(o.began) < coldFor {
		within = seenCold
	}
	id, sent := commit.CanaryPrefix+strings.ToLower(rand.Text()), o.o.Now()
	mark, held, err := o.waitSeen(working, id, within)
	took := o.o.Now().Sub(sent)
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	err = cmp.Or(err, o.p.Canaries.Delete(deleting, id))
	switch {
	case fault.KindOf(err) == fault.Document:
		return DoctorRow{State: RowNotLooked, Found: fault.As(err).Reason}
	case err != nil:
		return o.p.CanaryFailed(err)
	case !mark.At.IsZero(): // by the clock of another instance
		return DoctorRow{State: RowOK, Found: fmt.Sprintf("seen after %d ms, patched after %d ms by %s, build %s",
			min(max(0, mark.At.Sub(sent)), took).Milliseconds(), took.Milliseconds(), mark.Instance, mark.Build)}
	case held.State != "":
		return held
	}
	return DoctorRow{State: RowWrong, Do: Restart, Found: fmt.Sprintf("no mark within %s, and nothing holds the feed: the "+
		"trigger of CommitResults does not run; or the document came and could not be marked: the log has canary_not_marked",
		took.Round(time.Second))}
}

// feedHeld is why nothing takes a canary, in the words of a condition; empty when nothing is known. A batch that was
// not sent yet needs no SQL.
func (o *Ops) feedHeld(ctx context.Context, sent bool) (one DoctorRow) {
	view := o.p.Breaker.View(ctx)
	flow, sql := view.Control.Breaker, view.Status.Dependencies[DepSQL]
	switch {
	case flow.Name == breaker.Paused:
		one = holds(condition.FlowPaused, o.flowSays(view))
		one.State = RowNotLooked
	case flow.Name == breaker.Open:
		one = holds(condition.FlowStopped, o.flowSays(view))
		one.State, one.Do = RowNotYet, "sqlwriterctl explain "+flow.Code
	case sent && sql.State == DepFailing:
		one = holds(condition.DependencyFailing, o.flowSays(view))
		one.State, one.Do = RowNotYet, "sqlwriterctl explain "+sql.Code
	}
	return one
}

// DeleteCanaries deletes the canaries that killed calls left. A shadow changes nothing among the results, so it leaves
// them there. Errors as those of commit.Finder and Canaries.Delete.
func (o *Ops) DeleteCanaries(ctx context.Context) error {
	if o.o.ReadOnly != "" {
		return nil
	}
	old := commit.Query{
		SysName: commit.CanaryName(o.o.SysName), To: o.o.Now().Add(-canaryLeft).Unix(), Size: commit.MaxPage,
	}
	return commit.Each(ctx, o.p.Finder, old, func(page commit.Page) (bool, error) {
		for _, whole := range page.Documents {
			d, unreadable := o.o.Reader.ReadSnapshot(json.RawMessage(whole), o.o.Now())
			if unreadable != nil || !commit.IsCanary(d, o.o.SysName) {
				continue // it is somebody else's
			}
			if err := o.p.Canaries.Delete(ctx, d.ID); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// waitSeen sends a canary, and looks at it until it is marked or something holds the feed. The last look's error counts
// when it is not marked.
func (o *Ops) waitSeen(ctx context.Context, id string, within time.Duration) (
	mark commit.Seen, held DoctorRow, err error,
) {
	if err = o.p.Canaries.CreateCanary(ctx, id, commit.CanaryName(o.o.SysName)); err != nil {
		return mark, held, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	doc := struct {
		Seen *commit.Seen `json:"seen"`
	}{&mark}
	for mark.At.IsZero() && held.State == "" && timer.Wait(ctx, askSeen) == nil {
		raw, failed := o.p.Canaries.Read(ctx, id)
		if failed == nil || ctx.Err() == nil && !fault.Has(failed, fault.Gone) {
			err = failed
		}
		_ = json.Unmarshal(raw, &doc) // what cannot be read is not marked
		held = o.feedHeld(ctx, true)
	}
	return mark, held, err
}
