// Package config reads the settings. Settings is the one table behind validation, the sample file, docs/settings.md and
// the check of every function.json. A new setting is one more row, a field of Config, and `make update`.
package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Setting is one row of the table of settings.
type Setting struct {
	// Name is the name of the app setting and environment variable.
	Name string
	// Default applies when the setting is not set; may be empty.
	Default string
	// Sample is the value in local.settings.sample.json, for the local stack's usual ports. Empty omits the setting.
	Sample string
	// Required makes a missing setting a problem.
	Required bool
	// Host means that a function.json uses the setting as %NAME% or as a connection. It is then required: the host
	// reads it without a default and silently leaves the function out (docs/facts.md F35).
	Host bool
	// Secret keeps the value out of all messages.
	Secret bool
	// Meaning is one line for operators.
	Meaning string
	// check returns what was expected and found, or "" for a valid value. Nil accepts every value.
	check func(value string, s lookup) (expected, found string)
	// field is the field of Config that has the value: a *string, *Secret or *int. It is nil where Of makes something
	// else of the value, and for settings that only the host reads.
	field func(c *Config) any
}

// lookup returns the effective value of a setting; "" when unset.
type lookup func(name string) string

// Names of settings, and bounds and samples of their values. leastKept and mostKept are days.
const (
	SysName              = "SYS_NAME"
	LeasePrefix          = "LEASE_PREFIX"
	TimeZone             = "TIME_ZONE"
	Mode                 = "MODE"
	LogLevel             = "LOG_LEVEL"
	CosmosConnection     = "COSMOS_CONNECTION"
	CosmosEndpoint       = "COSMOS_CONNECTION__accountEndpoint"
	CosmosClientID       = "COSMOS_CONNECTION__clientId"
	CosmosDatabase       = "COSMOS_DATABASE"
	CosmosContainer      = "COSMOS_CONTAINER"
	LeaseContainer       = "LEASE_CONTAINER"
	SQLConnection        = "SQL_CONNECTION"
	SQLSchema            = "SQL_SCHEMA"
	SQLCertificate       = "SQL_CERTIFICATE"
	SQLMaxOpen           = "SQL_MAX_OPEN"
	OneWriter            = "ONE_WRITER"
	Mapping              = "MAPPING"
	BlobConnection       = "BLOB_CONNECTION"
	BlobServiceURI       = "BLOB_CONNECTION__blobServiceUri"
	BlobClientID         = "BLOB_CONNECTION__clientId"
	ServiceBusConnection = "SERVICEBUS_CONNECTION"
	ServiceBusNamespace  = "SERVICEBUS_CONNECTION__fullyQualifiedNamespace"
	ServiceBusClientID   = "SERVICEBUS_CONNECTION__clientId"
	RunsQueue            = "RUNS_QUEUE"
	BatchesQueue         = "BATCHES_QUEUE"
	MaxPoisonPerHour     = "MAX_POISON_PER_HOUR"
	ReconcileAt          = "RECONCILE_AT"
	ReconcileRU          = "RECONCILE_RU"
	ReconcileLines       = "RECONCILE_LINES"
	LinesKeptDays        = "LINES_KEPT_DAYS"
	UIAuth               = "UI_AUTH"
	UIOrigin             = "UI_ORIGIN"
	openUI               = "none"
	platformUI           = "platform"
	RetentionDays        = "RETENTION_DAYS"
	azureSite            = "WEBSITE_SITE_NAME"
	environment          = "AZURE_FUNCTIONS_ENVIRONMENT" // the Core Tools set it to development, nothing else does
	development          = "Development"
	cosmosCredential     = CosmosConnection + "__credential" // the host's, as the next
	serviceBusCredential = ServiceBusConnection + "__credential"
	platformSignIn       = "WEBSITE_AUTH_ENABLED"
	sqliteScheme         = "sqlite:"
	sqlserverScheme      = "sqlserver://"
	maxConnections       = 100
	maxPoisonPerHour     = 10_000
	leastRU, mostRU      = 10, 1_000_000 // a request for a page of documents charges about ten
	leastLines           = 100
	mostLines            = 1_000_000
	leastKept, mostKept  = 30, 3650
	sampleCosmosKey      = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==" //nolint:gosec // published for the emulator
	sampleCosmosServer   = "http://127.0.0.1:8081/"
	sampleServiceBus     = "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;" //nolint:gosec // published for the emulator
)

// The names of the app's own containers, for the control document and for evidence. With another name an app would
// begin without its pauses, its breaker and its proofs, and would not find the evidence of what failed before. Both
// keep environments apart by SYS_NAME.
const (
	ControlContainer  = "sqlwriter-control"
	EvidenceContainer = "sqlwriter"
)

// The values of MODE.
const (
	ModeLive   = "live"
	ModeShadow = "shadow"
)

// AnyCertificate is the value of SQL_CERTIFICATE that lets nobody check.
const AnyCertificate = "any"

// Settings is the table of settings.
func Settings() []Setting {
	return []Setting{
		{
			Name: SysName, Default: "web", Sample: "web", check: checkName,
			field:   func(c *Config) any { return &c.SysName },
			Meaning: "environment: only documents whose `request_details.sys_name` is exactly this are touched",
		},
		{
			Name: LeasePrefix, Sample: "web-", Host: true, check: checkLeasePrefix,
			field:   func(c *Config) any { return &c.Cosmos.LeasePrefix },
			Meaning: "prefix of the change feed's leases, `{SYS_NAME}-` or longer; a new one replays the container once",
		},
		{
			Name: Mode, Default: ModeLive, Sample: ModeLive, check: oneOf(ModeLive, ModeShadow),
			field:   func(c *Config) any { return &c.Mode },
			Meaning: "`live`, or `shadow`: compare with what the old writer has done, and write nothing but the counts of its own timer (docs/cutover.md)",
		},
		{
			Name: TimeZone, Default: "America/Chicago", Sample: "America/Chicago", check: checkZone,
			Meaning: "zone of the stamps written into documents (IANA name)",
		},
		{
			Name: LogLevel, Default: "info", Sample: "info", check: oneOf("debug", "info", "warn", "error"),
			field:   func(c *Config) any { return &c.LogLevel },
			Meaning: "least level that is logged: debug, info, warn or error",
		},
		{
			Name:   CosmosConnection,
			Sample: "AccountEndpoint=" + sampleCosmosServer + ";AccountKey=" + sampleCosmosKey + ";",
			Secret: true, Host: true, check: checkCosmos, field: func(c *Config) any { return &c.Cosmos.Connection },
			Meaning: "Cosmos DB connection string; with an identity set `" + CosmosEndpoint + "` instead",
		},
		{
			Name: CosmosEndpoint, check: checkEndpoint, field: func(c *Config) any { return &c.Cosmos.Endpoint },
			Meaning: "Cosmos DB account address, to connect with a managed identity and no key",
		},
		{
			Name: CosmosClientID, check: checkClientID, field: func(c *Config) any { return &c.Cosmos.ClientID },
			Meaning: "client id of a user-assigned identity, with the host's `" + cosmosCredential +
				"=managedidentity` beside it; empty means the system-assigned one, else `az login`",
		},
		{
			Name: CosmosDatabase, Sample: "invoices", Host: true, field: func(c *Config) any {
				return &c.Cosmos.Database
			},
			Meaning: "database that holds the containers",
		},
		{
			Name: CosmosContainer, Sample: "AI_PROCESS_LOGS", Host: true, check: checkContainer,
			field:   func(c *Config) any { return &c.Cosmos.Container },
			Meaning: "container of the results; its partition key is found (docs/settings.md, Partition key)",
		},
		{
			Name: LeaseContainer, Sample: "leases", Host: true, check: checkLeaseContainer,
			field:   func(c *Config) any { return &c.Cosmos.LeaseContainer },
			Meaning: "container of the change feed's leases, partition key `/id`, time to live on (-1); it must exist",
		},
		{
			Name: SQLConnection, Sample: "sqlite:../.local/sqlwriter.db", Required: true, Secret: true, check: checkSQL,
			field:   func(c *Config) any { return &c.SQL.Connection },
			Meaning: "SQL database: `sqlserver://...` (an identity: `fedauth=ActiveDirectoryManagedIdentity`), or `sqlite:PATH` (local only; relative to the script root)",
		},
		{
			Name: SQLCertificate, Default: "checked", check: oneOf("checked", AnyCertificate),
			Meaning: "`any` accepts `TrustServerCertificate=true` in `SQL_CONNECTION` for another machine, in a test network: nobody checks whose server gets the password, and Health says so",
		},
		{
			Name: SQLSchema, Default: "dbo", Sample: "dbo", check: checkSchema,
			field:   func(c *Config) any { return &c.SQL.Schema },
			Meaning: "schema of `IVCE_DTL` and `IVCE_TRKG_MSTR` on SQL Server",
		},
		{
			Name: SQLMaxOpen, Default: "10", Sample: "10", check: wholeNumber(1, maxConnections),
			field:   func(c *Config) any { return &c.SQL.MaxOpen },
			Meaning: "most connections of one instance to SQL Server",
		},
		{
			Name: OneWriter, Default: "false", check: oneOf("false", "true"),
			Meaning: "`true`: of all instances one transaction at a time writes the two tables (docs/settings.md, How many instances)",
		},
		{
			Name: Mapping, field: func(c *Config) any { return &c.SQL.Mapping },
			Meaning: "file that says which values go into which columns, relative to the script root; `mapping.json` in the project's root is deployed with the app (docs/rules.md, Columns)",
		},
		{
			Name: BlobConnection, Secret: true, check: checkBlob,
			Meaning: "connection string of the storage account that keeps evidence; empty means `" + hostStorage + "`",
		},
		{
			Name: BlobServiceURI, check: checkBlobURI,
			Meaning: "address of the storage account, to connect with a managed identity and no key",
		},
		{
			Name: BlobClientID, check: checkBlobClientID,
			Meaning: "client id of a user-assigned identity; empty means the system-assigned one, else `az login`",
		},
		{
			Name: ServiceBusConnection, Sample: sampleServiceBus, Secret: true, Host: true, check: checkServiceBus,
			field: func(c *Config) any { return &c.ServiceBus.Connection },
			Meaning: "Service Bus connection string of the namespace; with an identity set `" +
				ServiceBusNamespace + "` instead",
		},
		{
			Name: ServiceBusNamespace, check: checkNamespace, field: func(c *Config) any {
				return &c.ServiceBus.Namespace
			},
			Meaning: "host name of the Service Bus namespace, to connect with a managed identity and no key",
		},
		{
			Name: ServiceBusClientID, check: checkServiceBusClientID,
			field: func(c *Config) any { return &c.ServiceBus.ClientID },
			Meaning: "client id of a user-assigned identity, with the host's `" + serviceBusCredential +
				"=managedidentity` beside it; empty means the system-assigned one, else `az login`",
		},
		{
			Name: RunsQueue, Sample: "sqlwriter-web-runs", Host: true, check: checkQueue,
			field:   func(c *Config) any { return &c.ServiceBus.RunsQueue },
			Meaning: "queue of messages about runs; `SYS_NAME` is a part of its name; it must exist",
		},
		{
			Name: BatchesQueue, Sample: "sqlwriter-web-batches", Host: true, check: checkBatchesQueue,
			field:   func(c *Config) any { return &c.ServiceBus.BatchesQueue },
			Meaning: "queue of messages about batches; `SYS_NAME` is a part of its name; it must exist",
		},
		{
			Name: MaxPoisonPerHour, Default: "100", Sample: "100", check: wholeNumber(0, maxPoisonPerHour),
			Meaning: "most documents that the app gives up in one hour; the others stay scheduled for a retry",
		},
		{
			Name: ReconcileAt, Default: "02:00", Sample: "02:00", check: timeOfDay,
			field: func(c *Config) any { return &c.Reconcile.At },
			Meaning: "time of day in `" + TimeZone +
				"` at which the night's comparison of documents, ledger and rows begins: `HH:MM`. A night that was missed begins late",
		},
		{
			Name: ReconcileRU, Default: "200", Sample: "200", check: wholeNumber(leastRU, mostRU),
			field:   func(c *Config) any { return &c.Reconcile.RU },
			Meaning: "most request units of Cosmos DB a second that a comparison uses",
		},
		{
			Name: ReconcileLines, Default: "1000", Sample: "1000", check: wholeNumber(leastLines, mostLines),
			field:   func(c *Config) any { return &c.Reconcile.Lines },
			Meaning: "most lines and documents a second that a comparison reads, in two of five minutes: 1000 are 34 million a day",
		},
		{
			Name: LinesKeptDays, check: wholeNumber(1, mostKept),
			field: func(c *Config) any { return &c.Reconcile.LinesKeptDays },
			Meaning: "for how many days `IVCE_DTL` keeps lines after a write, where its owner archives them: a comparison counts " +
				"older ones without a row as `archived`, and no finding",
		},
		{
			Name: UIAuth, Default: platformUI, Sample: openUI, check: oneOf(platformUI, openUI),
			Meaning: "who may use the operators' pages: `platform` wants a sign-in (docs/settings.md, Sign-in); `none` makes everybody an operator who " +
				"asks for them on this machine by a loopback address, where `func start` or `make run` is the host; elsewhere it means `platform`",
		},
		{
			Name: UIOrigin, check: checkOrigin, field: func(c *Config) any { return &c.UIOrigin },
			Meaning: "origin of the operators' pages as browsers see it, such as `https://operators.example.com`: actions of that Origin are accepted from " +
				"browsers that send no `Sec-Fetch-Site`; empty accepts none of them",
		},
		{
			Name: RetentionDays, Default: "365", Sample: "365", check: daysKept,
			field: func(c *Config) any { return &c.RetentionDays },
			Meaning: "for how many days runs and comparisons that ended, batches and error details are kept, 30 or more; 0 keeps all. The audit log has its own days. " +
				"Each tick of the recovery timer deletes some (docs/rules.md, How long rows are kept)",
		},
	}
}

// checkOrigin takes a scheme and a host, as a browser writes an origin.
func checkOrigin(value string, _ lookup) (string, string) {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" ||
		value != u.Scheme+"://"+strings.ToLower(u.Host) {
		return "a scheme and a host in lower case, such as https://operators.example.com", strconv.Quote(value)
	}
	return "", ""
}

// checkName refuses a name that cannot be part of a lease prefix or a path.
func checkName(value string, _ lookup) (string, string) {
	const most = 63 // a blob's name also has a file's name and a slash
	if len(value) > most {
		return fmt.Sprintf("at most %d letters, digits, - and _", most), fmt.Sprintf("%d characters", len(value))
	}
	for _, c := range value {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "letters, digits, - and _", fmt.Sprintf("the character %q", c)
		}
	}
	return "", ""
}

// checkLeasePrefix keeps environments apart: with one prefix, two would split the changes between them (docs/facts.md
// F39).
func checkLeasePrefix(value string, s lookup) (string, string) {
	if want := s(SysName) + "-"; !strings.HasPrefix(value, want) {
		return "a text that begins with " + strconv.Quote(want) + " (SYS_NAME and a hyphen)", strconv.Quote(value)
	}
	return "", ""
}

func checkZone(value string, _ lookup) (string, string) {
	if _, err := time.LoadLocation(value); err != nil || value == "Local" {
		return "an IANA time zone such as America/Chicago", strconv.Quote(value)
	}
	return "", ""
}

func oneOf(values ...string) func(string, lookup) (string, string) {
	return func(value string, _ lookup) (string, string) {
		if !slices.Contains(values, value) {
			return "one of " + strings.Join(values, ", "), strconv.Quote(value)
		}
		return "", ""
	}
}

// partsOf gives the parts of a connection string by their names in lower case.
func partsOf(value string) map[string]string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(value, ";") {
		name, text, _ := strings.Cut(part, "=")
		parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(text)
	}
	return parts
}

// checkCosmos checks the form only; internal/cosmos parses it.
func checkCosmos(value string, s lookup) (string, string) {
	if s(CosmosEndpoint) != "" {
		return "this or " + CosmosEndpoint + ", not both", "both"
	}
	const form = "AccountEndpoint=...;AccountKey=...;"
	parts := partsOf(value)
	switch {
	case parts["accountendpoint"] == "":
		return form, fmt.Sprintf("a text of %d characters without AccountEndpoint", len(value))
	case parts["accountkey"] == "":
		return form, fmt.Sprintf("a text of %d characters without AccountKey", len(value))
	}
	return "", ""
}

func checkEndpoint(value string, _ lookup) (string, string) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "an address such as https://NAME.documents.azure.com:443/",
			fmt.Sprintf("a text of %d characters", len(value))
	}
	return "", ""
}

func checkClientID(_ string, s lookup) (string, string) {
	return checkIdentity(CosmosEndpoint, cosmosCredential, s)
}

// checkIdentity requires the address and the credential beside a client id. The host reads the credential: without it
// our client would connect and the host's trigger would not (docs/facts.md F46).
func checkIdentity(address, credential string, s lookup) (string, string) {
	switch {
	case s(address) == "":
		return address + " beside it", "this setting alone"
	case !strings.EqualFold(s(credential), "managedidentity"):
		return credential + "=managedidentity beside it", "this setting without it"
	}
	return "", ""
}

// checkContainer keeps the control document out of the change feed and the leases.
func checkContainer(value string, _ lookup) (string, string) {
	if value == ControlContainer {
		return "another container than " + ControlContainer + ", which has the control document", "the same name"
	}
	return "", ""
}

func checkLeaseContainer(value string, s lookup) (string, string) {
	if value == s(CosmosContainer) {
		return "another container than " + CosmosContainer, "the same name"
	}
	return checkContainer(value, s)
}

// checkSQL checks the form only; the adapters parse it. Messages have the scheme only, because the rest may have a
// password.
func checkSQL(value string, s lookup) (string, string) {
	const form = "sqlserver://... or sqlite:PATH"
	scheme, _, _ := strings.Cut(value, ":") // printed only if known: it may be part of a password
	switch {
	case strings.HasPrefix(value, sqlserverScheme):
		return "", ""
	case scheme == "sqlserver":
		return form, "sqlserver: without // behind it"
	case slices.Contains(
		[]string{"mssql", "azuresql", "jdbc", "odbc", "postgres", "postgresql", "mysql", "file"}, scheme):
		return form, fmt.Sprintf("the scheme %q", scheme)
	case !strings.HasPrefix(value, sqliteScheme):
		return form, fmt.Sprintf("a text of %d characters without a scheme that is known", len(value))
	case value == sqliteScheme:
		return form, "no path"
	case s(azureSite) != "":
		return "a database server in Azure (" + azureSite + " is set)",
			"sqlite: its file would be lost with the instance"
	}
	return "", ""
}

// checkSchema refuses invalid schema names. The adapter checks at the start that the schema exists.
func checkSchema(value string, _ lookup) (string, string) {
	const most = 128 // SQL Server's sysname, in UTF-16 units
	switch {
	case strings.TrimSpace(value) != value:
		return "the name of a schema", "blanks around " + strconv.Quote(value)
	case strings.ContainsFunc(value, unicode.IsControl) || len(utf16.Encode([]rune(value))) > most:
		return "the name of a schema",
			fmt.Sprintf("a text of %d characters that cannot be one", utf8.RuneCountInString(value))
	}
	return "", ""
}

// wholeNumber accepts the numbers from least to most.
func wholeNumber(least, most int) func(string, lookup) (string, string) {
	return func(value string, _ lookup) (string, string) {
		if n, err := strconv.Atoi(value); err != nil || n < least || n > most {
			return fmt.Sprintf("a whole number from %d to %d", least, most), strconv.Quote(value)
		}
		return "", ""
	}
}

// timeOfDay accepts hours and minutes.
func timeOfDay(value string, _ lookup) (string, string) {
	if _, err := sinceMidnight(value); err != nil {
		return "a time of day such as 02:00", strconv.Quote(value)
	}
	return "", ""
}

func sinceMidnight(value string) (time.Duration, error) {
	t, err := time.Parse("15:04", value)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

// daysKept accepts 0, which keeps all, and else what the database accepts (retention.LeastDays).
func daysKept(value string, s lookup) (string, string) {
	expected, found := wholeNumber(leastKept, mostKept)(value, s)
	if expected == "" || value == "0" {
		return "", ""
	}
	return "0, which keeps all, or " + expected, found
}
