package config

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Config has the checked settings.
type Config struct {
	SysName string
	// Mode is ModeLive or ModeShadow.
	Mode string
	// Location is nil where Of finds no such zone.
	Location *time.Location
	// LogLevel is debug, info, warn or error.
	LogLevel string
	Cosmos   Cosmos
	SQL      SQL
	Blob     Blob
	// ServiceBus is the namespace for messages about runs.
	ServiceBus ServiceBus
	// MaxPoisonPerHour is how many documents the app may give up in one hour; negative means none.
	MaxPoisonPerHour int
	// Reconcile bounds the comparison of documents and rows.
	Reconcile Reconcile
	// RetentionDays is for how many days rows of runs, comparisons and the audit log are kept; 0 keeps all.
	RetentionDays int
	// SignIn says that the platform's authentication is on. The platform sets it, nobody else may.
	SignIn bool
	// OpenUI lets everybody on this machine use the operators' pages as an operator, without a sign-in. UIOrigin is the
	// origin of the pages as browsers see it; empty trusts Sec-Fetch-Site alone.
	OpenUI   bool
	UIOrigin string
}

// mostPoison is the setting MAX_POISON_PER_HOUR as the breaker takes it, whose 0 is the default: none is negative.
func mostPoison(setting string) int {
	most, err := strconv.Atoi(setting)
	if err == nil && most == 0 {
		return -1
	}
	return most
}

// Cosmos locates the documents: by Connection, or by Endpoint and an identity.
type Cosmos struct {
	Connection          Secret
	Endpoint, ClientID  string
	Database, Container string
	// LeaseContainer has the leases of the host's change feed processor, which begin with LeasePrefix.
	LeaseContainer, LeasePrefix string
}

// SQL locates the user's tables.
type SQL struct {
	// Engine follows from the scheme of Connection.
	Engine Engine
	// Connection is SQL_CONNECTION: "sqlserver://..." or "sqlite:PATH".
	Connection Secret
	// Schema is the schema of the user's tables on SQL Server.
	Schema string
	// Mapping is the path of the file with this deployment's columns; empty means the default mapping.
	Mapping string
	// MaxOpen bounds the connections of one instance to SQL Server.
	MaxOpen int
	// OneWriter lets one transaction of all instances write the user's tables at a time.
	OneWriter bool
	// AnyCertificate accepts a server on another machine whose certificate nobody checks.
	AnyCertificate bool
}

// Reconcile are the settings of the comparison of documents and rows.
type Reconcile struct {
	// RU is the most request units a second.
	RU int
	// Lines is the most lines and documents a second.
	Lines int
	// LinesKeptDays is for how many days the user keeps a line's row after it was written; 0 means for ever.
	LinesKeptDays int
	// At is the time of day at which a night begins, since midnight.
	At time.Duration
}

// Engine is the kind of a SQL database.
type Engine string

// The engines.
const (
	SQLServer Engine = "sqlserver"
	SQLite    Engine = "sqlite"
)

// EngineOf returns the engine of a connection by its scheme; "" for another scheme.
func EngineOf(connection string) Engine {
	switch {
	case strings.HasPrefix(connection, sqlserverScheme):
		return SQLServer
	case strings.HasPrefix(connection, sqliteScheme):
		return SQLite
	}
	return ""
}

// Secret is a text that is never printed. Only Reveal returns it.
type Secret string

// String hides the value.
func (Secret) String() string { return "(secret)" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "(secret)" }

// MarshalText hides the value from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Problem is a setting that cannot be used.
type Problem struct {
	Setting string
	// Expected describes valid values. Found describes the value, without the value itself if the setting is secret.
	Expected, Found string
	// showsValue is true if Found may have the value.
	showsValue bool
}

// String returns the problem in one line. It leaves out the value, which may be a secret in the wrong place.
func (p Problem) String() string {
	if p.showsValue {
		return p.Setting + ": expected " + p.Expected
	}
	return p.Setting + ": expected " + p.Expected + ", found " + p.Found
}

// Problems is the error of Load.
type Problems []Problem

func (p Problems) Error() string {
	return "settings: " + strings.Join(p.Lines(), "; ")
}

// Lines returns one line per problem.
func (p Problems) Lines() []string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return lines
}

// Load reads and checks every setting; get is os.LookupEnv in the product. An empty value counts as not set, as in the
// host. The error is Problems, all of them together. The Config then has the readable settings, and always a LogLevel.
func Load(get func(string) (string, bool)) (Config, error) {
	values, problems := map[string]string{}, Problems{}
	for _, s := range Settings() {
		if v, _ := get(s.Name); v != "" {
			values[s.Name] = v
		} else {
			values[s.Name] = s.Default
		}
	}
	effective := func(name string) string {
		if v, ok := values[name]; ok {
			return v
		}
		v, _ := get(name)
		return v
	}
	for _, s := range Settings() {
		if p, bad := check(s, effective); bad {
			problems = append(problems, p)
			values[s.Name] = s.Default
		}
	}
	c := Of(effective)
	if c.Location == nil { // the default is in the embedded database
		c.Location = time.UTC
	}
	if len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// Of returns the settings with defaults and without checks, for tools that need only some of them. A number that does
// not parse is 0.
func Of(get func(name string) string) Config {
	values, c := map[string]string{}, Config{}
	for _, s := range Settings() {
		v := cmp.Or(get(s.Name), s.Default)
		values[s.Name] = v
		if s.field == nil {
			continue
		}
		switch to := s.field(&c).(type) {
		case *string:
			*to = v
		case *Secret:
			*to = Secret(v)
		case *int:
			*to, _ = strconv.Atoi(v)
		case *time.Duration:
			*to, _ = sinceMidnight(v)
		}
	}
	c.Location, _ = time.LoadLocation(values[TimeZone])
	c.SQL.Engine = EngineOf(values[SQLConnection])
	c.Blob = blobOf(func(name string) string { return cmp.Or(values[name], get(name)) })
	c.SQL.AnyCertificate = values[SQLCertificate] == AnyCertificate
	c.SQL.OneWriter = values[OneWriter] == "true"
	c.SignIn = strings.EqualFold(get(platformSignIn), "true")
	// Elsewhere everybody could come, also where these settings came by mistake.
	c.OpenUI = values[UIAuth] == openUI && get(azureSite) == "" && strings.EqualFold(get(environment), development)
	c.MaxPoisonPerHour = mostPoison(values[MaxPoisonPerHour])
	return c
}

// check checks one setting.
func check(s Setting, effective lookup) (Problem, bool) {
	value := effective(s.Name)
	if value == "" {
		switch {
		case s.Name == BlobConnection:
			return checkNoBlob(effective)
		case s.Name == CosmosConnection && effective(CosmosEndpoint) != "",
			s.Name == ServiceBusConnection && effective(ServiceBusNamespace) != "":
			return Problem{}, false // the identity's settings replace it, for the host too
		case s.Host:
			return Problem{s.Name, "a value: the host reads it too and knows no defaults", "nothing", false}, true
		case s.Required:
			return Problem{s.Name, "a value", "nothing", false}, true
		}
		return Problem{}, false
	}
	if s.check == nil {
		return Problem{}, false
	}
	expected, found := s.check(value, effective)
	return Problem{s.Name, expected, found, !s.Secret}, expected != ""
}
