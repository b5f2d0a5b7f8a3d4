package funchost

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// cosmosTrigger is a cosmosDBTrigger binding of extension 4.x, resolved. Names and defaults:
// CosmosDBTriggerAttribute.cs and ChangeFeedLeaseOptions.cs.
type cosmosTrigger struct {
	connection, leaseConnection cosmosConnection
	database, container         string
	leaseDatabase, leases       string
	createLeases                bool
	prefix                      string
	feedPoll                    time.Duration
	acquire, expire, renew      time.Duration
	maxItems                    int32
	fromBeginning               bool
	fromTime                    time.Time
}

// cosmosProperties are the properties that extension 4.x knows, in lower case.
const cosmosProperties = " type name direction datatype connection databasename containername leaseconnection leasedatabasename " +
	"leasecontainername createleasecontainerifnotexists leasescontainerthroughput leasecontainerprefix feedpolldelay " +
	"leaseacquireinterval leaseexpirationinterval leaserenewinterval maxitemsperinvocation startfrombeginning startfromtime " +
	"preferredlocations "

// cosmosOldName maps the names of extension 3.x, which 4.x ignores without a word, to today's.
func cosmosOldName(lower string) string {
	switch lower {
	case "connectionstringsetting":
		return "connection"
	case "collectionname":
		return "containerName"
	case "leaseconnectionstringsetting":
		return "leaseConnection"
	case "leasecollectionname":
		return "leaseContainerName"
	case "leasecollectionprefix":
		return "leaseContainerPrefix"
	case "createleasecollectionifnotexists":
		return "createLeaseContainerIfNotExists"
	case "leasescollectionthroughput":
		return "leasesContainerThroughput"
	case "checkpointfrequency", "checkpointinterval", "checkpointdocumentcount", "usemultiplewritelocations":
		return "nothing (it is gone)"
	}
	return ""
}

func (b binding) checkCosmosNames() error {
	var problems []string
	for name := range b {
		switch old := cosmosOldName(name); {
		case old != "":
			problems = append(problems,
				fmt.Sprintf("'%s' is a name of extension 3.x, which 4.x ignores in silence: use %s", name, old))
		case name == "cardinality":
			problems = append(problems,
				"'cardinality' makes every batch fail: it turns the change feed's item type into an array (docs/facts.md F6); leave it out")
		case !strings.Contains(cosmosProperties, " "+name+" "):
			problems = append(problems,
				fmt.Sprintf("'%s' is not a property of cosmosDBTrigger; the host would ignore it in silence", name))
		}
	}
	if problems == nil {
		return nil
	}
	sort.Strings(problems)
	return errors.New(strings.Join(problems, "; "))
}

func (x indexer) cosmosTrigger(b binding) (*cosmosTrigger, error) {
	if err := b.checkCosmosNames(); err != nil {
		return nil, err
	}
	t := &cosmosTrigger{
		feedPoll: 5 * time.Second, acquire: 13 * time.Second, expire: 60 * time.Second, renew: 17 * time.Second,
	}
	r := reader{binding: b, settings: x.settings}
	if dataType := r.text("dataType", ""); !strings.EqualFold(dataType, "string") && dataType != "" {
		r.fail(fmt.Errorf("'dataType' %q: only string (the default) gives a custom handler the documents", dataType))
	}
	t.database = r.required("databaseName")
	t.container = r.required("containerName")
	t.leaseDatabase = r.text("leaseDatabaseName", t.database)
	t.leases = r.text("leaseContainerName", "leases")
	t.prefix = r.text("leaseContainerPrefix", "")
	r.text("preferredLocations", "")
	connection := r.plain("connection", "CosmosDB")
	t.connection = r.connection(connection)
	t.leaseConnection = r.connection(r.plain("leaseConnection", connection))
	t.createLeases = r.flag("createLeaseContainerIfNotExists")
	t.fromBeginning = r.flag("startFromBeginning")
	r.number("leasesContainerThroughput")
	t.maxItems = int32(r.number("maxItemsPerInvocation"))
	override(&t.feedPoll, r.millis("feedPollDelay"), x.tune.FeedPoll)
	override(&t.acquire, r.millis("leaseAcquireInterval"), x.tune.LeaseAcquire)
	override(&t.expire, r.millis("leaseExpirationInterval"), x.tune.LeaseExpiration)
	override(&t.renew, r.millis("leaseRenewInterval"), x.tune.LeaseRenew)
	if from := r.text("startFromTime", ""); from != "" {
		var err error
		if t.fromTime, err = time.Parse(time.RFC3339Nano, from); err != nil {
			r.fail(
				fmt.Errorf(
					"'startFromTime' %q is not in the correct format; use ISO 8601 with the UTC designator, e.g. 2021-02-16T14:19:29Z", from))
		}
		if t.fromBeginning {
			r.fail(errors.New("only one of startFromBeginning or startFromTime can be used"))
		}
	}
	if r.errs == nil && t.connection.endpoint == t.leaseConnection.endpoint && t.database == t.leaseDatabase &&
		t.container == t.leases {
		r.fail(errors.New("the monitored container cannot be the same as the container storing the leases"))
	}
	return t, errors.Join(r.errs...)
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
