package funchost

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// cosmosTrigger is a cosmosDBTrigger binding of extension 4.x, resolved. Names and defaults:
// CosmosDBTriggerAttribute.cs and ChangeFeedLeaseOptions.cs.
type cosmosTrigger struct {
	connection             cosmosConnection
	database, container    string
	leases                 string
	prefix                 string
	feedPoll               time.Duration
	acquire, expire, renew time.Duration
	maxItems               int32
}

// cosmosProperties are the properties that this emulator has, in lower case.
const cosmosProperties = "type name direction connection databasename containername leasecontainername " +
	"createleasecontainerifnotexists leasecontainerprefix feedpolldelay leaseacquireinterval leaseexpirationinterval " +
	"leaserenewinterval maxitemsperinvocation startfrombeginning"

func (x indexer) cosmosTrigger(b binding) (*cosmosTrigger, error) {
	t := &cosmosTrigger{
		feedPoll: 5 * time.Second, acquire: 13 * time.Second, expire: 60 * time.Second, renew: 17 * time.Second,
	}
	r := reader{binding: b, settings: x.settings}
	r.only(cosmosProperties)
	t.database = r.required("databaseName")
	t.container = r.required("containerName")
	t.leases = r.text("leaseContainerName", "leases")
	t.prefix = r.text("leaseContainerPrefix", "")
	t.connection = r.connection(r.plain("connection", "CosmosDB"))
	if !r.flag("startFromBeginning") {
		r.fail(errors.New("'startFromBeginning' must be true: this emulator has no other start"))
	}
	if r.flag("createLeaseContainerIfNotExists") {
		r.fail(errors.New("'createLeaseContainerIfNotExists' is not implemented by this emulator"))
	}
	t.maxItems = int32(r.number("maxItemsPerInvocation"))
	override(&t.feedPoll, r.millis("feedPollDelay"), x.tune.FeedPoll)
	override(&t.acquire, r.millis("leaseAcquireInterval"), x.tune.LeaseAcquire)
	override(&t.expire, r.millis("leaseExpirationInterval"), x.tune.LeaseExpiration)
	override(&t.renew, r.millis("leaseRenewInterval"), x.tune.LeaseRenew)
	if r.errs == nil && t.container == t.leases {
		r.fail(errors.New("the monitored container cannot be the same as the container storing the leases"))
	}
	return t, r.problem()
}

// override sets d to the first of the later values that is not zero, the last one first.
func override(d *time.Duration, property, tune time.Duration) {
	if property > 0 {
		*d = property
	}
	if tune > 0 {
		*d = tune
	}
}

// reader reads the properties of one binding and collects all that is wrong with them.
type reader struct {
	binding  binding
	settings map[string]string
	errs     []error
}

func (r *reader) fail(err error) { r.errs = append(r.errs, err) }

// only refuses properties that are not in a list of lower-case names. The host ignores a name that it does not know
// without a word, be it misspelt or of an older extension; some that it knows are not emulated.
func (r *reader) only(names string) {
	for name := range r.binding {
		if !slices.Contains(strings.Fields(names), name) {
			r.fail(fmt.Errorf("'%s' is not emulated, or the host would ignore it in silence", name))
		}
	}
}

// problem is all that is wrong, in a certain order.
func (r *reader) problem() error {
	slices.SortFunc(r.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(r.errs...)
}

// plain reads a text without resolving %NAME%: connection names are names of settings themselves.
func (r *reader) plain(name, fallback string) string {
	value, err := r.binding.text(name)
	if err != nil {
		r.fail(err)
	}
	if value == "" {
		return fallback
	}
	return value
}

func (r *reader) text(name, fallback string) string {
	value := r.plain(name, "")
	if value == "" {
		return fallback
	}
	resolved, err := resolve(value, r.settings)
	if err != nil {
		r.fail(fmt.Errorf("'%s': %w", name, err))
	}
	return resolved
}

func (r *reader) required(name string) string {
	if r.plain(name, "") == "" {
		r.fail(fmt.Errorf("'%s' is missing", name))
		return ""
	}
	return r.text(name, "")
}

func (r *reader) flag(name string) bool {
	value, err := r.binding.flag(name, false)
	if err != nil {
		r.fail(err)
	}
	return value
}

func (r *reader) number(name string) int {
	value, err := r.binding.number(name)
	if err != nil {
		r.fail(err)
	}
	return value
}

func (r *reader) millis(name string) time.Duration {
	return time.Duration(r.number(name)) * time.Millisecond
}

func (r *reader) connection(name string) cosmosConnection {
	c, err := parseCosmosConnection(name, r.settings)
	if err != nil {
		r.fail(err)
	}
	return c
}
