package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/retention"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/servicebus"
)

var update = flag.Bool("update", false, "rewrite what is produced from the table of settings")

// good returns valid settings: those of the sample file.
func good(t *testing.T) map[string]string {
	t.Helper()
	var sample struct{ Values map[string]string }
	require.NoError(t, json.Unmarshal(Sample(), &sample))
	return sample.Values
}

func load(values map[string]string) (Config, error) {
	return Load(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
}

func TestTheSampleIsAGoodSetOfSettings(t *testing.T) {
	c, err := load(good(t))
	require.NoError(t, err)
	require.Equal(t, "web", c.SysName)
	require.Equal(t, ModeLive, c.Mode)
	require.Equal(t, "America/Chicago", c.Location.String())
	require.Equal(t, SQLite, c.SQL.Engine)
	require.Equal(t, "sqlite:../.local/sqlwriter.db", c.SQL.Connection.Reveal())
	require.Equal(t, 10, c.SQL.MaxOpen)
	require.Equal(t, "AI_PROCESS_LOGS", c.Cosmos.Container)
	require.Equal(t, Blob{Connection: "UseDevelopmentStorage=true"}, c.Blob)
	require.Equal(t, servicebus.ConnectionString("127.0.0.1:5672"), c.ServiceBus.Connection.Reveal())
	require.Equal(t, "sqlwriter-web-batches", c.ServiceBus.BatchesQueue)
	require.Equal(t, 100, c.MaxPoisonPerHour)
	require.Equal(t, "AccountEndpoint=http://127.0.0.1:8081/;AccountKey="+cosmosdb.DefaultKey+";",
		c.Cosmos.Connection.Reveal())
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	c, err := load(map[string]string{TimeZone: "Mars/Olympus", SQLMaxOpen: "0"})
	var problems Problems
	require.True(t, errors.As(err, &problems))
	var names []string
	for _, p := range problems {
		names = append(names, p.Setting)
	}
	require.Equal(t, []string{
		LeasePrefix, TimeZone, CosmosConnection, CosmosDatabase, CosmosContainer, LeaseContainer,
		SQLConnection, SQLMaxOpen,
		BlobConnection, ServiceBusConnection, RunsQueue, BatchesQueue,
	}, names)
	require.Equal(t, "info", c.LogLevel)
	require.NotNil(t, c.Location)
}

func TestEachSettingIsChecked(t *testing.T) {
	const pass = "pa55word"
	for _, c := range []struct {
		name, value, expected, found string
	}{
		{SysName, "we b", "letters, digits, - and _", "the character ' '"},
		{SysName, strings.Repeat("w", 64), "at most 63", "64 characters"},
		{LeasePrefix, "dev-", `a text that begins with "web-"`, `"dev-"`},
		{LeasePrefix, "webs-", `a text that begins with "web-"`, `"webs-"`},
		{TimeZone, "CST6", "an IANA time zone", `"CST6"`},
		{TimeZone, "Local", "an IANA time zone", `"Local"`},
		{LogLevel, "loud", "one of debug, info, warn, error", `"loud"`},
		{CosmosConnection, "", "a value: the host reads it too", "nothing"},
		{Mode, "Shadow", "one of live, shadow", `"Shadow"`},
		{
			CosmosConnection, pass, "AccountEndpoint=...;AccountKey=...;",
			"a text of 8 characters without AccountEndpoint",
		},
		{CosmosConnection, "AccountEndpoint=https://" + pass + "/;AccountKey=", "AccountKey", "without AccountKey"},
		{CosmosEndpoint, "http://" + pass, "https://NAME.documents.azure.com:443/", "a text of 15 characters"},
		{CosmosClientID, "0000", CosmosEndpoint + " beside it", "alone"},
		{LeaseContainer, "AI_PROCESS_LOGS", "another container than " + CosmosContainer, "the same name"},
		{LeaseContainer, "sqlwriter-control", "another container than sqlwriter-control", "the same name"},
		{CosmosContainer, "sqlwriter-control", "another container than sqlwriter-control", "the same name"},
		{
			SQLConnection, "sqlserver:sa:" + pass + "@db:1433", "sqlserver://... or sqlite:PATH",
			"sqlserver: without // behind it",
		},
		{SQLConnection, "postgres://u:" + pass + "@db", "sqlite:PATH", `the scheme "postgres"`},
		{SQLConnection, "server=db;password=" + pass, "sqlite:PATH", "a text of 27 characters without a scheme"},
		{SQLConnection, "server=db;password=" + pass + ":1", "sqlite:PATH", "a text of 29 characters without a scheme"},
		{SQLConnection, "sqlite:", "sqlite:PATH", "no path"},
		{SQLSchema, " dbo", "the name of a schema", `blanks around " dbo"`},
		{SQLSchema, strings.Repeat("s", 129), "the name of a schema", "a text of 129 characters"},
		{SQLSchema, "d\x00bo", "the name of a schema", "a text of 4 characters that cannot be one"},
		{SQLMaxOpen, "0", "a whole number from 1 to 100", `"0"`},
		{SQLMaxOpen, "101", "a whole number from 1 to 100", `"101"`},
		{SQLMaxOpen, "many", "a whole number from 1 to 100", `"many"`},
		{BlobConnection, pass, "AccountName=...;AccountKey=...;", "a text of 8 characters without AccountName"},
		{BlobConnection, "AccountName=" + pass, "AccountKey=...;", "without AccountKey and SharedAccessSignature"},
		{BlobConnection, "AccountName=;AccountKey=" + pass, "AccountName=...;", "without AccountName and BlobEndpoint"},
		{BlobServiceURI, "http://" + pass, "https://NAME.blob.core.windows.net/", "a text of 15 characters"},
		{
			BlobServiceURI, "https://name.blob.core.windows.net/?sig=" + pass, "https://NAME.blob.core.windows.net/",
			"a text of 48 characters",
		},
		{BlobClientID, "0000", BlobServiceURI + " beside it", "alone"},
		{ServiceBusConnection, "", "a value: the host reads it too", "nothing"},
		{ServiceBusConnection, pass, "Endpoint=sb://...;", "a text of 8 characters without Endpoint"},
		{
			ServiceBusConnection, "Endpoint=sb://ns;SharedAccessKey=" + pass, "SharedAccessKeyName=...;",
			"without SharedAccessKeyName and SharedAccessKey",
		},
		{
			ServiceBusConnection, "Endpoint=sb://ns;SharedAccessKeyName=k;SharedAccessKey=" + pass + ";EntityPath=q",
			"of the namespace", "that of one queue",
		},
		{ServiceBusNamespace, "sb://" + pass, "NAME.servicebus.windows.net", "a text of 13 characters"},
		{ServiceBusClientID, "0000", ServiceBusNamespace + " beside it", "alone"},
		{RunsQueue, "", "a value: the host reads it too", "nothing"},
		{
			RunsQueue, "sqlwriter-dev-runs",
			`a name with "web" in it (SYS_NAME), as sqlwriter-web-runs`, `"sqlwriter-dev-runs"`,
		},
		{RunsQueue, "sqlwriter-webs-runs", `"web" in it`, `"sqlwriter-webs-runs"`},
		{RunsQueue, "sqlwriter-myweb-runs", `"web" in it`, `"sqlwriter-myweb-runs"`},
		{RunsQueue, "web runs", "letters, digits and . - _ /", `"web runs"`},
		{RunsQueue, "web/$DeadLetterQueue", "letters, digits and . - _ /", `"web/$DeadLetterQueue"`},
		{RunsQueue, "-web", "letters, digits and . - _ /", `"-web"`},
		{RunsQueue, "web-" + strings.Repeat("a", 257), "at most 260", `"web-aaa`},
		{BatchesQueue, "batches", `"web" in it`, `"batches"`},
		{BatchesQueue, "SQLWriter-web-RUNS", "another queue than RUNS_QUEUE", "the same name"},
		{ReconcileRU, "9", "from 10 to 1000000", `"9"`},
		{ReconcileLines, "0", "from 100 to 1000000", `"0"`},
		{LinesKeptDays, "0", "from 1 to 3650", `"0"`},
		{LinesKeptDays, "13m", "from 1 to 3650", `"13m"`},
		{UIAuth, "off", "platform, none", `"off"`},
		{UIOrigin, "operators.example.com", "a scheme and a host", `"operators.example.com"`},
		{UIOrigin, "https://operators.example.com/", "a scheme and a host", `com/"`},
		{UIOrigin, "https://Operators.example.com", "lower case", `Operators`},
		{RetentionDays, "29", "0, which keeps all, or a whole number from 30 to 3650", `"29"`},
		{RetentionDays, "1", "0, which keeps all, or", `"1"`},
		{RetentionDays, "3651", "0, which keeps all, or", `"3651"`},
		{RetentionDays, "-90", "0, which keeps all, or", `"-90"`},
		{RetentionDays, "90d", "0, which keeps all, or", `"90d"`},
		{MaxPoisonPerHour, "-1", "a whole number from 0 to 10000", `"-1"`},
		{MaxPoisonPerHour, "10001", "a whole number from 0 to 10000", `"10001"`},
		{MaxPoisonPerHour, "1e2", "a whole number from 0 to 10000", `"1e2"`},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			values := good(t)
			values[c.name] = c.value
			_, err := load(values)
			var problems Problems
			require.True(t, errors.As(err, &problems), "%v", err)
			var lines []string
			for _, p := range problems {
				if p.Setting == c.name {
					lines = append(lines, p.Expected+", found "+p.Found)
					require.Equal(t, !p.showsValue, strings.Contains(p.String(), ", found "),
						"a secret may stand there by mistake")
				}
			}
			require.Len(t, lines, 1, "%v", problems)
			require.Contains(t, lines[0], c.expected)
			require.Contains(t, lines[0], c.found)
			require.NotContains(t, err.Error(), pass)
		})
	}
}

// Each setting has a value of its own here, and each field has the value of its setting.
func TestEverySettingIsInItsField(t *testing.T) {
	want, fields := map[string]string{}, 0
	for i, s := range Settings() {
		want[s.Name] = fmt.Sprint(1000 + i)
	}
	want[ReconcileAt] = "17:04" // a time of day, kept as a duration
	c := Of(func(name string) string { return want[name] })
	for _, s := range Settings() {
		if s.field == nil {
			continue
		}
		fields++
		field := reflect.ValueOf(s.field(&c)).Elem()
		got := field.String() // of a secret too
		if field.CanInt() {
			got = fmt.Sprint(field.Int())
		}
		if s.Name == ReconcileAt {
			require.Equal(t, fmt.Sprint(int64(17*time.Hour+4*time.Minute)), got)
			continue
		}
		require.Equal(t, want[s.Name], got, s.Name)
	}
	require.Greater(t, fields, len(want)/2)
}

func TestTheSchemeSaysWhichEngine(t *testing.T) {
	for connection, want := range map[string]Engine{
		"sqlserver://sa:p@db?database=d": SQLServer, "sqlite:x.db": SQLite, "sqlserver:x": "", "": "", "server=db": "",
	} {
		require.Equal(t, want, EngineOf(connection), connection)
	}
	values := good(t)
	values[SQLConnection], values["WEBSITE_SITE_NAME"] = "sqlserver://sa:p@db?database=d", "app"
	c, err := load(values)
	require.NoError(t, err)
	require.Equal(t, SQLServer, c.SQL.Engine)
}

func TestTheTimeOfANight(t *testing.T) {
	values := good(t)
	for at, want := range map[string]time.Duration{
		"": 2 * time.Hour, "00:00": 0, "23:59": 24*time.Hour - time.Minute, "2:05": 125 * time.Minute,
	} {
		values[ReconcileAt] = at
		c, err := load(values)
		require.NoError(t, err)
		require.Equal(t, want, c.Reconcile.At)
	}
	for _, bad := range []string{"24:00", "2", "02:60", "02:00:00", "2 am", "0 0 2 * * *"} {
		expected, found := timeOfDay(bad, nil)
		require.Equal(t, []string{"a time of day such as 02:00", strconv.Quote(bad)}, []string{expected, found})
	}
}

func TestWhatIsKeptForHowLong(t *testing.T) {
	require.Equal(t, retention.LeastDays, leastKept, "the database refuses less")
	for days, want := range map[string]int{"": 365, "0": 0, "30": 30, "3650": 3650} {
		values := good(t)
		values[RetentionDays] = days
		c, err := load(values)
		require.NoError(t, err, days)
		require.Equal(t, want, c.RetentionDays)
	}
}

func TestNoPoisonMessageMayBeAllowed(t *testing.T) {
	values := good(t)
	delete(values, MaxPoisonPerHour)
	c, err := load(values)
	require.NoError(t, err)
	require.Equal(t, 100, c.MaxPoisonPerHour)
	values[MaxPoisonPerHour] = "0"
	c, err = load(values)
	require.NoError(t, err)
	require.Negative(t, c.MaxPoisonPerHour, "none; the breaker's 0 is the default")
}

func TestSQLiteIsRefusedInAzure(t *testing.T) {
	values := good(t)
	values["WEBSITE_SITE_NAME"] = "app"
	_, err := load(values)
	require.ErrorContains(t, err, "sqlite: its file would be lost with the instance")
}

func TestAnIdentityTakesTheConnectionStringsPlace(t *testing.T) {
	values := good(t)
	delete(values, CosmosConnection)
	values[CosmosEndpoint], values[CosmosClientID] = "https://a.documents.azure.com:443/", "0000"
	_, err := load(values)
	require.ErrorContains(t, err, "COSMOS_CONNECTION__credential=managedidentity",
		"the host's trigger wants it beside the client id")
	values[cosmosCredential] = "workload"
	_, err = load(values)
	require.ErrorContains(t, err, "COSMOS_CONNECTION__credential=managedidentity")
	values[cosmosCredential] = "managedidentity"
	c, err := load(values)
	require.NoError(t, err)
	require.Equal(t, "https://a.documents.azure.com:443/", c.Cosmos.Endpoint)
	require.Equal(t, "0000", c.Cosmos.ClientID)

	values[CosmosConnection] = good(t)[CosmosConnection]
	_, err = load(values)
	require.ErrorContains(t, err, "not both")
}

func TestAnIdentityForServiceBus(t *testing.T) {
	values := good(t)
	delete(values, ServiceBusConnection)
	values[ServiceBusNamespace], values[ServiceBusClientID] = "ns.servicebus.windows.net", "0000"
	_, err := load(values)
	require.ErrorContains(t, err, "SERVICEBUS_CONNECTION__credential=managedidentity",
		"the host's triggers want it beside the client id")
	values[serviceBusCredential] = "managedidentity"
	c, err := load(values)
	require.NoError(t, err)
	require.Empty(t, c.ServiceBus.Connection)
	require.Equal(t, "ns.servicebus.windows.net", c.ServiceBus.Namespace)
	require.Equal(t, "0000", c.ServiceBus.ClientID)
	values[ServiceBusConnection] = good(t)[ServiceBusConnection]
	_, err = load(values)
	require.ErrorContains(t, err,
		"SERVICEBUS_CONNECTION: expected this or SERVICEBUS_CONNECTION__fullyQualifiedNamespace, not both")
	values = good(t)
	values[ServiceBusConnection] = "Endpoint=sb://ns/;SharedAccessSignature=SharedAccessSignature sr=x&sig=y"
	_, err = load(values)
	require.NoError(t, err)
}

func TestQueuesCarryTheEnvironment(t *testing.T) {
	for _, name := range []string{"sqlwriter-web-runs", "web", "web.runs", "runs_web", "team/Web/runs"} {
		values := good(t)
		values[RunsQueue] = name
		_, err := load(values)
		require.NoError(t, err, name)
	}
	values := good(t)
	values[SysName], values[LeasePrefix] = "eu-1", "eu-1-"
	_, err := load(values)
	require.ErrorContains(t, err, "RUNS_QUEUE")
	require.ErrorContains(t, err, "BATCHES_QUEUE")
	values[RunsQueue], values[BatchesQueue] = "sqlwriter-eu-1-runs", "sqlwriter-eu-1-batches"
	_, err = load(values)
	require.NoError(t, err)
}

func TestWhereEvidenceIsKept(t *testing.T) {
	const ours, hosts, uri = "AccountName=ours;AccountKey=pa55word", "AccountName=hosts;AccountKey=pa55word",
		"https://ours.blob.core.windows.net/"
	for name, c := range map[string]struct {
		set  map[string]string
		want Blob
	}{
		"ours":         {map[string]string{BlobConnection: ours, hostStorage: hosts}, Blob{Connection: ours}},
		"our identity": {map[string]string{BlobServiceURI: uri, hostStorage: hosts}, Blob{ServiceURI: uri}},
		"one of many": {
			map[string]string{BlobServiceURI: uri, BlobClientID: "0000", hostStorageClient: "1111"},
			Blob{ServiceURI: uri, ClientID: "0000"},
		},
		"the host's": {map[string]string{hostStorage: hosts}, Blob{Connection: hosts}},
		"a signature": {
			map[string]string{hostStorage: "BlobEndpoint=https://x/;SharedAccessSignature=sig=1"},
			Blob{Connection: "BlobEndpoint=https://x/;SharedAccessSignature=sig=1"},
		},
		"its identity": {
			map[string]string{hostStorageURI: uri, hostStorageClient: "1111"}, Blob{ServiceURI: uri, ClientID: "1111"},
		},
		"by its name": {
			map[string]string{hostStorageAccount: "hosts"}, Blob{ServiceURI: "https://hosts.blob.core.windows.net/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := good(t)
			delete(values, hostStorage)
			for setting, value := range c.set {
				values[setting] = value
			}
			got, err := load(values)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Blob)
		})
	}
	values := good(t)
	delete(values, hostStorage)
	_, err := load(values)
	require.ErrorContains(t, err,
		"BLOB_CONNECTION: expected a value here, in BLOB_CONNECTION__blobServiceUri or in AzureWebJobsStorage, found nothing in any of them")
	values[BlobConnection], values[BlobServiceURI] = ours, uri
	_, err = load(values)
	require.ErrorContains(t, err, "BLOB_CONNECTION: expected this or BLOB_CONNECTION__blobServiceUri, not both")
	values = good(t)
	values[hostStorage] = "pa55word"
	_, err = load(values)
	require.ErrorContains(t, err, "AzureWebJobsStorage: expected AccountName=...;AccountKey=...;")
	require.NotContains(t, err.Error(), "pa55word")
}

func TestASecretDoesNotPrint(t *testing.T) {
	c := Cosmos{Connection: "key-marker"}
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	for _, text := range []string{
		fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.Connection.String(), string(encoded),
	} {
		require.NotContains(t, text, "key-marker")
		require.Contains(t, text, "(secret)")
	}
	require.Equal(t, "key-marker", c.Connection.Reveal())
}

func TestEverySecretSettingHidesItsValue(t *testing.T) {
	for _, s := range Settings() {
		if !s.Secret {
			continue
		}
		for _, value := range []string{
			"marker", "marker:", "x:marker", "sqlite:marker", "sqlserver://marker", "AccountKey=marker", "marker=1",
		} {
			values := good(t)
			values["WEBSITE_SITE_NAME"], values[s.Name] = "app", value
			_, err := load(values)
			if s.Name == SQLConnection && value == "sqlserver://marker" {
				require.NoError(t, err, "of the right form; the adapter reads the rest")
				continue
			}
			require.Error(t, err)
			require.NotContains(t, err.Error(), "marker", s.Name)
		}
	}
}

func TestProducedSampleFile(t *testing.T) {
	const path = "../../local.settings.sample.json"
	if *update {
		require.NoError(t, os.WriteFile(path, Sample(), 0o600))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(Sample()), string(got), "make update rewrites it")
}

func TestProducedSettingsPage(t *testing.T) {
	const path = "../../docs/settings.md"
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), TableBegin+"\n")
	require.True(t, found, "%s in docs/settings.md", TableBegin)
	table, after, found := strings.Cut(rest, TableEnd)
	require.True(t, found, "%s in docs/settings.md", TableEnd)
	if *update && table != Table() {
		require.NoError(t, os.WriteFile(path, []byte(before+TableBegin+"\n"+Table()+TableEnd+after), 0o600))
		table = Table()
	}
	require.Equal(t, Table(), table, "make update rewrites it")
}

// The pages are never open to everybody in Azure, and a setting that says so stops nothing else.
// The platform may write the value in capitals.
func TestThePlatformSaysThatPeopleSignIn(t *testing.T) {
	for value, on := range map[string]bool{"": false, "False": false, "true": true, "True": true} {
		c := Of(func(name string) string { return map[string]string{"WEBSITE_AUTH_ENABLED": value}[name] })
		require.Equal(t, on, c.SignIn, value)
	}
}

func TestThePagesAreOpenInDevelopmentOnly(t *testing.T) {
	for _, c := range []struct {
		environment, site string
		open              bool
	}{
		{"Development", "", true},
		{"development", "", true},
		{"Development", "app", false},
		{"", "", false},
		{"Production", "", false},
		{"Staging", "", false},
	} {
		got := Of(func(name string) string {
			return map[string]string{
				UIAuth: "none", "WEBSITE_SITE_NAME": c.site, "AZURE_FUNCTIONS_ENVIRONMENT": c.environment,
			}[name]
		})
		require.Equal(t, c.open, got.OpenUI, "%+v", c)
	}
	require.False(t, Of(func(string) string { return "" }).OpenUI, "by default a sign-in is wanted")
}
