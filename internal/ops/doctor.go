package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/run"
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

// DoctorRequest has no parameters.
type DoctorRequest struct{}

// DoctorAnswer has what only the app can see of its deployment.
type DoctorAnswer struct {
	Rows []DoctorRow `json:"rows"`
}

// Place is one container or queue.
type Place struct {
	// Setting names it; its value is said to nobody.
	Setting string
	Look    func(ctx context.Context) error
}

// DatabaseView is what a login sees of its database.
type DatabaseView struct {
	// User is the login's user in the database; empty where the engine has none. At is the server's clock.
	User string
	At   time.Time
	// OtherMapping: the app's mapping is another than the chosen one.
	OtherMapping bool
}

// Lease is one range of the change feed.
type Lease struct {
	// Owner is the instance that reads it; empty when nobody does. RenewedAt is when it was written last.
	Owner     string
	RenewedAt time.Time
}

// Trial writes in a service, and leaves nothing there.
type Trial interface {
	// Try makes, changes or reads, and deletes something of its own.
	Try(ctx context.Context, id string) error
	// Sweep deletes what a Try that was killed before a time has left.
	Sweep(ctx context.Context, before time.Time) error
}

// SignInView is what the app sees of the platform's sign-in.
type SignInView struct {
	// Says begins with on, off or open. Forged: the operators' pages believed a header that anybody can send.
	Says   string
	Forged bool
}

// DoctorPorts are what Doctor looks at. It asks no breaker and feeds none. Errors are classified (internal/fault).
type DoctorPorts struct {
	// Database checks login, rights, procedures, tables and adoption anew. A view comes also with an error.
	Database           func(ctx context.Context) (DatabaseView, error)
	Containers, Queues []Place
	// Leases are those of the environment's prefix.
	Leases func(ctx context.Context) ([]Lease, error)
	// Documents tries the control container, Files the store of evidence.
	Documents, Files Trial
	SignIn           func(ctx context.Context) (SignInView, error)
	// Explain describes an error as Health does, and gives a command against it. of is the setting of a Place, if any.
	Explain func(of string, err error) (found, do string)
	// Began is when this process did.
	Began time.Time
}

const (
	// lookWithin bounds each row of Doctor.
	lookWithin = 10 * time.Second
	// leftFor is the age of what a killed Trial left, before another run deletes it.
	leftFor = time.Hour
	// clockOff is the most that the clocks of the app and of SQL may differ.
	clockOff = time.Minute
	// leaseOld is the age of a lease that nobody renews; the host renews each every 17 seconds. beginsWithin is what a
	// new process has for its trigger to begin.
	leaseOld     = 5 * time.Minute
	beginsWithin = 2 * time.Minute
	restart      = "az functionapp restart -g GROUP -n APP"
	stop         = "az functionapp stop -g GROUP -n APP"
)

// seen is something that a row says. Where has the settings that it is about.
type seen struct{ where, state, found, do string }

// Doctor looks at all that a deployment needs, at once. It leaves nothing of its own, and deletes what one that was
// killed an hour ago has left.
func (o *Ops) Doctor(ctx context.Context, _ DoctorRequest) (DoctorAnswer, error) {
	if o.p.Doctor == nil {
		return DoctorAnswer{}, nil
	}
	type look struct {
		name string
		look func(ctx context.Context) []seen
	}
	return DoctorAnswer{together([]look{
		{DepSQL, o.lookSQL},
		{DepCosmos, func(ctx context.Context) []seen {
			return append(o.lookPlaces(ctx, o.p.Doctor.Containers), o.lookTrial(ctx, o.p.Doctor.Documents)...)
		}},
		{RowLeases, o.lookLeases},
		{DepServiceBus, func(ctx context.Context) []seen { return o.lookPlaces(ctx, o.p.Doctor.Queues) }},
		{RowBlobs, func(ctx context.Context) []seen { return o.lookTrial(ctx, o.p.Doctor.Files) }},
		{RowSignIn, o.lookSignIn},
		{DepTimer, o.lookTimer},
	}, func(l look) DoctorRow {
		ctx, cancel := context.WithTimeout(ctx, lookWithin)
		defer cancel()
		return rowOf(l.name, l.look(ctx))
	})}, nil
}

// together does something to each at the same time, and gives the results in their order.
func together[A, B any](all []A, do func(A) B) []B {
	results := make([]B, len(all))
	var doing sync.WaitGroup
	for i, a := range all {
		doing.Go(func() { results[i] = do(a) })
	}
	doing.Wait()
	return results
}

// rowOf keeps the worst of what was seen. What is so in several places is said once.
func rowOf(name string, all []seen) DoctorRow {
	order := []string{RowOK, RowNotLooked, RowNotYet, RowWrong}
	r := DoctorRow{Name: name, State: RowOK}
	for _, s := range all {
		if slices.Index(order, s.state) > slices.Index(order, r.State) {
			r.State = s.state
		}
	}
	var texts []string
	where := map[string][]string{}
	for _, s := range all {
		if s.state != r.State || s.found == "" {
			continue
		}
		if !slices.Contains(texts, s.found) {
			texts = append(texts, s.found)
		}
		if s.where != "" {
			where[s.found] = append(where[s.found], s.where)
		}
		r.Do = cmp.Or(r.Do, s.do)
	}
	for i, text := range texts {
		if at := where[text]; len(at) > 0 {
			texts[i] = strings.Join(at, ", ") + ": " + text
		}
	}
	r.Found = strings.Join(texts, "; ")
	return r
}

// failed is what was seen of an error.
func (o *Ops) failed(where string, err error) seen {
	found, do := o.p.Doctor.Explain(where, err)
	return seen{where, RowWrong, found, do}
}

// told is what was seen of a condition, in its words.
func told(code, reason string) seen {
	c, _ := condition.Of(code)
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return seen{"", RowWrong, c.Code + ": " + c.Means + reason, Command(c.Do)}
}

// Command is the first command that a text names, else the text.
func Command(text string) string {
	if m := regexp.MustCompile("`((?:az|make|sqlwriterctl) [^`]+)`").FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

func (o *Ops) lookSQL(ctx context.Context) (all []seen) {
	before := o.o.Now()
	view, err := o.p.Doctor.Database(ctx)
	after := o.o.Now()
	if o.p.Breaker.Seen().Control.Breaker.RefusesDatabase() {
		all = append(all, told(condition.DatabaseRefused, ""))
	}
	if err != nil {
		all = append(all, o.failed("", err))
	}
	if view.OtherMapping {
		all = append(all, told(condition.OtherMapping, ""))
	}
	if off := max(before.Sub(view.At), view.At.Sub(after)); off > clockOff && !view.At.IsZero() {
		found := fmt.Sprintf("the clocks of this instance and of SQL differ by %s", off.Round(time.Second))
		all = append(all, seen{"", RowWrong, found, restart})
	}
	user := ""
	if view.User != "" {
		user = "user " + run.Truncate(view.User, run.MaxBy) + "; "
	}
	return append(all,
		seen{"", RowOK, user + "rights, procedures of this build, adoption and clock are as they must be", ""})
}

func (o *Ops) lookPlaces(ctx context.Context, places []Place) []seen {
	return together(places, func(p Place) seen {
		if err := p.Look(ctx); err != nil {
			return o.failed(p.Setting, err)
		}
		return seen{p.Setting, RowOK, "there, and allowed", ""}
	})
}

func (o *Ops) lookTrial(ctx context.Context, t Trial) []seen {
	if err := cmp.Or(t.Try(ctx, rand.Text()), t.Sweep(ctx, o.o.Now().Add(-leftFor))); err != nil {
		return []seen{o.failed("", err)}
	}
	return []seen{{"", RowOK, "written and deleted", ""}}
}

func (o *Ops) lookLeases(ctx context.Context) []seen {
	leases, err := o.p.Doctor.Leases(ctx)
	now := o.o.Now()
	owners, old, oldest := map[string]bool{}, 0, time.Duration(0)
	for _, l := range leases {
		age := max(0, now.Sub(l.RenewedAt)).Truncate(time.Second)
		if oldest = max(oldest, age); age > leaseOld {
			old++
		}
		if l.Owner != "" {
			owners[l.Owner] = true
		}
	}
	n, of := len(leases), Plural(len(leases), "lease", "leases")
	one := seen{"", RowOK, fmt.Sprintf("%d %s of %d %s, renewed in the last %s", n, of, len(owners),
		Plural(len(owners), "owner", "owners"), oldest), ""}
	switch {
	case err != nil:
		one = o.failed("LEASE_CONTAINER", err)
	case n == 0 && now.Sub(o.p.Doctor.Began) < beginsWithin:
		one.state, one.found = RowNotYet, "no lease of LEASE_PREFIX yet: the app has just begun"
	case n == 0:
		one = seen{"", RowWrong, "no lease of LEASE_PREFIX: the trigger of CommitResults never began", restart}
	case old > 0:
		one = seen{"", RowWrong, fmt.Sprintf("%d of %d %s not renewed, for up to %s: no instance of CommitResults reads",
			old, n, of, oldest), restart}
	}
	return []seen{one}
}

func (o *Ops) lookSignIn(ctx context.Context) []seen {
	view, err := o.p.Doctor.SignIn(ctx)
	one := seen{"", RowOK, view.Says, ""}
	if err != nil {
		one = o.failed("", err)
	} else if view.Forged {
		one = seen{"", RowWrong, "the operators' pages believe a forged header X-MS-CLIENT-PRINCIPAL", stop}
	}
	return []seen{one}
}

func (o *Ops) lookTimer(ctx context.Context) []seen {
	saved, err := o.p.Counts.LoadCounts(ctx)
	one := seen{"", RowOK, "the last tick was at " + o.clock(saved.At), ""}
	switch timer := o.timerView(saved.Counts, err, o.p.Breaker.Seen(), o.o.Now()); {
	case err != nil:
		one.state, one.found = RowNotLooked, timer.Reason
	case timer.State == DepSilent:
		one = told(condition.TimerSilent, timer.Reason)
	case timer.State == DepUnknown:
		one.state, one.found = RowNotYet, timer.Reason
	}
	return []seen{one}
}
