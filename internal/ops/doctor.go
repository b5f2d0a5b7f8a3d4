package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/events"
)

// DoctorRow is one thing that a deployment needs.
type DoctorRow struct {
	// Name is one of the Rows.
	Name string `json:"name"`
	// State is one of the RowStates.
	State string `json:"state"`
	// Found is what was found, without a value of a setting. Do is one command.
	Found string `json:"found,omitempty"`
	Do    string `json:"do,omitempty"`
}

// The rows of Doctor, in the order in which things depend on each other: DepSQL, DepCosmos, RowLeases, DepServiceBus,
// RowBlobs, RowSignIn, DepTimer.
const (
	RowLeases = "leases"
	RowBlobs  = "blobs"
	RowSignIn = "sign_in"
)

// The states of a row, the best first. RowNotLooked says that nobody could look: it is never ok.
const (
	RowOK        = "ok"
	RowNotLooked = "not_looked"
	RowNotYet    = "not_yet"
	RowWrong     = "wrong"
)

// DoctorRequest asks to look.
type DoctorRequest struct {
	// Send looks at RowFeed too, which takes half a minute where the feed does not come.
	Send bool `json:"send,omitempty"`
}

// DoctorAnswer has what only the app can see of its deployment.
type DoctorAnswer struct {
	Rows []DoctorRow `json:"rows"`
}

// Look is one look at what a row is about. Of several looks at one row the worst counts.
type Look struct {
	Row string
	At  func(ctx context.Context) DoctorRow
}

// Restart is the command that begins the app anew.
const Restart = "az functionapp restart -g GROUP -n APP"

// lookWithin bounds each row of Doctor. Who looks has two seconds less, to say itself what did not answer.
const lookWithin = 10 * time.Second

// Doctor looks at all that a deployment needs, at once; and then at the feed, if it is asked to.
func (o *Ops) Doctor(ctx context.Context, r DoctorRequest) (DoctorAnswer, error) {
	looking, cancel := context.WithTimeout(ctx, lookWithin-2*time.Second)
	defer cancel()
	looks := slices.Concat([]Look{{DepSQL, o.lookSQL}}, o.p.Doctor, []Look{{DepTimer, o.lookTimer}})
	found, answers := make([]DoctorRow, len(looks)), make(chan func(), len(looks))
	for i, l := range looks {
		found[i] = DoctorRow{State: RowWrong, Found: "no answer in " + lookWithin.String(), Do: "sqlwriterctl status"}
		go func() {
			row := o.looked(looking, l.At)
			answers <- func() { found[i] = row }
		}()
	}
	late := time.After(lookWithin)
	for waits := len(looks); waits > 0; waits-- {
		select {
		case take := <-answers:
			take()
		case <-late:
			waits = 0
		}
	}
	var a DoctorAnswer
	for i, l := range looks {
		if n := len(a.Rows); n == 0 || a.Rows[n-1].Name != l.Row {
			a.Rows = append(a.Rows, DoctorRow{Name: l.Row, State: RowOK})
		}
		a.Rows[len(a.Rows)-1].Add(found[i])
	}
	if r.Send && o.p.Canaries != nil {
		feed := o.looked(ctx, o.lookFeed)
		feed.Name = RowFeed
		a.Rows = append(a.Rows, feed)
	}
	return a, nil
}

// looked looks. A panic of ours is what is wrong with the row, and ends nothing else.
func (o *Ops) looked(ctx context.Context, at func(context.Context) DoctorRow) (row DoctorRow) {
	defer func() {
		if p := recover(); p != nil {
			err := o.o.Log(ctx).Panic("ops: doctor", events.Fields{}, p)
			row = DoctorRow{State: RowWrong, Found: errorText(err), Do: condition.Command("", err.Code)}
		}
	}()
	return at(ctx)
}

// Add adds what another look found. What is worse hides what is better, and what is the same is said once.
func (r *DoctorRow) Add(found DoctorRow) {
	states := []string{RowOK, RowNotLooked, RowNotYet, RowWrong}
	if worse := cmp.Compare(slices.Index(states, found.State), slices.Index(states, r.State)); worse > 0 {
		r.State, r.Found, r.Do = found.State, found.Found, found.Do
	} else if worse == 0 && !strings.Contains(r.Found, found.Found) {
		r.Found, r.Do = strings.TrimPrefix(r.Found+"; "+found.Found, "; "), cmp.Or(r.Do, found.Do)
	}
}

// holds is a row for which a condition holds: what Health says of it, and what the status does.
func holds(code, says string) DoctorRow {
	c, _ := condition.Of(code)
	return DoctorRow{State: RowWrong, Found: c.Says() + ": " + says, Do: condition.Command(c.Do, code)}
}

func (o *Ops) lookSQL(ctx context.Context) DoctorRow {
	if view := o.p.Breaker.Seen(); view.Control.Breaker.RefusesDatabase() {
		return holds(condition.DatabaseRefused, "the flow is "+o.flowView(view).Says)
	}
	if other := o.otherMapping(ctx, o.o.Mapping); other != "" {
		return holds(condition.OtherMapping, other)
	}
	return DoctorRow{State: RowOK}
}

func (o *Ops) lookTimer(ctx context.Context) DoctorRow {
	saved, err := o.p.Counts.LoadCounts(ctx)
	switch timer := o.timerView(saved.Counts, err, o.p.Breaker.Seen(), o.o.Now()); {
	case err != nil:
		return DoctorRow{State: RowNotLooked, Found: timer.Reason}
	case timer.State == DepSilent:
		return holds(condition.TimerSilent, timer.Reason)
	case timer.State == DepUnknown:
		return DoctorRow{State: RowNotYet, Found: timer.Reason}
	}
	return DoctorRow{State: RowOK, Found: "the last tick was at " + o.clock(saved.At)}
}
