package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the module's path; packages below are written without it.
const module = "sqlwriter/"

// direction says what the packages of one row may import of our own and from outside the standard library.
type direction struct {
	pkg string
	// own are prefixes of our packages; outside are prefixes of foreign modules.
	own, outside []string
	because      string
}

// directions is the agreed shape: host -> handlers -> use case -> port -> adapter (docs/architecture.md).
func directions() []direction {
	zerolog := []string{"github.com/rs/zerolog"}
	return []direction{
		{"internal/fault", nil, nil, "the table of kinds is read by everybody and may depend on nobody"},
		{"internal/timer", nil, nil, "it waits, and that is all"},
		{"internal/condition", nil, nil, "the log, the status, Health and explain read it, so it knows none of them"},
		{
			"internal/events",
			[]string{"internal/condition", "internal/fault"},
			zerolog,
			"every package logs by it, so it knows none of them",
		},
		{
			"internal/neterr", nil, nil,
			"what a lost call died of is read alike by the adapters of every service, so it knows none of them and no SDK",
		},
		{
			"internal/invoice",
			[]string{"internal/fault"},
			nil,
			"what a document means must not depend on how it travels",
		},
		{
			"internal/breaker",
			[]string{"internal/condition", "internal/fault", "internal/events", "internal/timer"},
			zerolog, "whether SQL may be used depends on no document and on no use case",
		},
		{
			"internal/commit",
			[]string{"internal/fault", "internal/breaker", "internal/events", "internal/invoice", "internal/timer"},
			append([]string{"golang.org/x/sync/errgroup"}, zerolog...),
			"use cases know no SDK: their rules are tested without one",
		},
		{
			"internal/azure",
			[]string{"internal/fault", "internal/neterr"},
			[]string{
				"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity",
			},
			"the adapters of three services use it, so it knows none of them",
		},
		{
			"internal/cosmos",
			[]string{
				"internal/azure", "internal/fault", "internal/neterr", "internal/timer", "internal/breaker",
				"internal/invoice", "internal/commit", "internal/ops",
			},
			[]string{"github.com/Azure/azure-sdk-for-go/sdk/", "golang.org/x/sync/singleflight"},
			"adapters never import each other",
		},
		{
			"internal/blob",
			[]string{
				"internal/azure", "internal/fault", "internal/neterr", "internal/invoice", "internal/commit",
				"internal/ops", "internal/reconcile",
			},
			[]string{"github.com/Azure/azure-sdk-for-go/sdk/"},
			"adapters never import each other",
		},
		{
			"internal/servicebus",
			[]string{"internal/azure", "internal/fault", "internal/neterr", "internal/ops", "internal/run"},
			[]string{"github.com/Azure/azure-sdk-for-go/sdk/", "github.com/Azure/go-amqp"},
			"adapters never import each other",
		},
		{
			"test/emulators/azurite",
			[]string{"test/emulators/loopback"},
			[]string{"github.com/stretchr/testify"},
			"tests of any package get a blob server from it, so it knows none of them",
		},
		{"internal/retention", []string{"internal/fault"}, nil, "what is deleted when is a rule: it knows no database"},
		{
			"internal/store/migration",
			[]string{"internal/fault"},
			nil,
			"numbered files and what a database says of them; it knows no engine",
		},
		{
			"internal/adopt",
			[]string{"internal/fault", "internal/invoice", "internal/commit", "internal/timer"},
			nil,
			"a use case knows no SDK",
		},
		{
			"internal/reconcile",
			[]string{
				"internal/fault", "internal/breaker", "internal/events", "internal/invoice", "internal/commit",
				"internal/run", "internal/timer",
			},
			zerolog, "what is compared is a use case: it knows no SDK",
		},
		{
			"internal/fit",
			[]string{"internal/fault", "internal/invoice", "internal/commit"},
			nil,
			"whether a mapping is right is a use case: it knows no SDK",
		},
		{
			"internal/ops",
			[]string{
				"internal/condition", "internal/events", "internal/fault", "internal/breaker", "internal/invoice",
				"internal/commit", "internal/reconcile", "internal/run", "internal/timer",
			},
			[]string{"golang.org/x/sync/errgroup"},
			"what operators do is a use case: it knows no SDK",
		},
		{
			"internal/opsapi",
			[]string{"internal/fault", "internal/ops", "internal/reconcile", "internal/run"},
			nil,
			"the table of calls knows use cases, and no function and no command",
		},
		{
			"internal/explain",
			[]string{"internal/condition", "internal/fault", "internal/reconcile"},
			nil,
			"words about codes; it knows no adapter, and gets their tables",
		},
		{
			"internal/ui",
			[]string{
				"internal/explain", "internal/fault", "internal/breaker", "internal/commit", "internal/events",
				"internal/invoice", "internal/ops", "internal/opsapi", "internal/reconcile", "internal/run",
			},
			nil,
			"pages make the operators' calls: they know no function, no host and no SDK",
		},
		{
			"test/storybook",
			[]string{
				"internal/app/open", "internal/explain", "internal/fault", "internal/breaker", "internal/commit",
				"internal/invoice", "internal/ops", "internal/opsapi", "internal/reconcile",
				"internal/run", "internal/ui",
			},
			nil,
			"stories are canned answers for pages",
		},
		{
			"internal/run",
			[]string{
				"internal/fault", "internal/breaker", "internal/events", "internal/invoice",
				"internal/commit", "internal/timer",
			},
			zerolog, "what runs do is a use case: it knows no SDK",
		},
		{
			"internal/store/shared",
			[]string{
				"internal/fault", "internal/fit", "internal/invoice", "internal/commit", "internal/adopt",
				"internal/ops", "internal/reconcile", "internal/run",
			},
			nil,
			"what the SQL adapters do alike; it knows no driver, and of a dialect a few words",
		},
		{
			"internal/store/sqlite",
			[]string{
				"internal/fault", "internal/fit", "internal/breaker", "internal/invoice", "internal/commit",
				"internal/adopt", "internal/ops", "internal/reconcile", "internal/retention", "internal/run",
				"internal/store/migration",
				"internal/store/shared",
			},
			[]string{"modernc.org/sqlite"},
			"adapters never import each other",
		},
		{
			"internal/store/sqlserver",
			[]string{
				"internal/fault", "internal/fit", "internal/breaker", "internal/invoice", "internal/commit",
				"internal/adopt", "internal/ops", "internal/reconcile", "internal/retention", "internal/run",
				"internal/store/migration",
				"internal/store/shared", "deploy/sql",
			},
			[]string{"github.com/microsoft/go-mssqldb", "golang.org/x/text"},
			"adapters never import each other",
		},
		{
			"test/sqlservertest", nil,
			[]string{"github.com/microsoft/go-mssqldb", "github.com/stretchr/testify"},
			"tests of any package get a T-SQL server from it, so it knows none of them",
		},
		{
			"test/sqlitetest",
			[]string{"internal/store/sqlite", "test/mapping"},
			[]string{"github.com/stretchr/testify"},
			"tests of any package get a file from it",
		},
		{
			"test/sqltest",
			[]string{
				"internal/commit", "internal/invoice", "internal/run", "internal/store/shared", "test/conformance",
				"test/mapping",
			},
			[]string{"github.com/stretchr/testify"},
			"the tests of both SQL adapters read and change a database with it",
		},
		{
			"test/inmem",
			[]string{
				"internal/fault", "internal/breaker", "internal/invoice", "internal/commit", "internal/adopt",
				"internal/ops", "internal/reconcile", "internal/retention", "internal/run", "test/mapping",
			},
			nil, "adapters never import each other",
		},
		{"internal/config", []string{"internal/fault"}, nil, "settings are plain values"},
		{
			"handlers",
			[]string{
				"internal/fault", "internal/events", "internal/invoice", "internal/commit", "internal/ops",
				"internal/opsapi", "internal/run", "internal/timer", "internal/ui",
			},
			append([]string{"github.com/go-json-experiment/json/jsontext"}, zerolog...),
			"handlers only translate: a trigger on one side, a use case on the other",
		},
		{
			"internal/app",
			[]string{
				"internal/fault", "internal/breaker", "internal/events", "internal/invoice", "internal/commit",
				"internal/ops", "internal/reconcile", "internal/retention", "internal/run", "internal/timer",
				"internal/condition", "internal/explain", "internal/ui", "internal/config", "internal/cosmos",
				"internal/store/migration", "internal/store/shared", "internal/store/sqlserver", "handlers",
			},
			zerolog,
			"the handler's adapters are opened by internal/app/open",
		},
		{
			"internal/app/open",
			[]string{"internal/"},
			zerolog,
			"the composition root knows every product package and no emulator",
		},
		{
			"cmd/handler",
			[]string{"internal/app", "internal/config", "handlers"},
			zerolog,
			"main only starts the composition root",
		},
		{
			"test/emulators/cosmosdb",
			[]string{"test/emulators/cosmosdb", "test/emulators/loopback"},
			append([]string{"github.com/Azure/azure-sdk-for-go/sdk/", "github.com/stretchr/testify"}, zerolog...),
			"an emulator that knew the product would agree with its mistakes",
		},
		{
			"test/emulators/funchost",
			[]string{"test/emulators/funchost"},
			append(
				[]string{
					"github.com/Azure/azure-sdk-for-go/sdk/", "github.com/adhocore/gronx", "github.com/google/uuid",
				}, zerolog...),
			"an emulator that knew the product would agree with its mistakes",
		},
		{
			"test/browser", nil,
			[]string{"github.com/chromedp/", "github.com/stretchr/testify"},
			"tests of any package look at pages with it, so it knows none of them",
		},
		{"test/emulators/loopback", nil, nil, "it gives ports to tests of any package, so it knows none of them"},
		{"test/emulators/servicebus", nil, nil, "an emulator that knew the product would agree with its mistakes"},
		{
			"test/emulators/servicebus/servicebustest",
			[]string{"test/emulators/servicebus", "test/emulators/loopback"},
			[]string{"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus", "github.com/stretchr/testify"},
			"tests of any package get a Service Bus from it, so it knows none of them",
		},
		{
			"test/sdkchecks",
			[]string{"test/emulators/"},
			nil,
			"it compares an emulator with a client of the vendor's; the product has no part in it",
		},
		{
			"cmd/internal/stackfile", nil, nil,
			"a file that the local stack writes and sqlwriterctl reads; it knows neither",
		},
		{"cmd/azure", nil, nil, "a tool that asks az and func; the product has no part in it"},
		{"cmd/stage", []string{"cmd/stage/staging"}, nil, "a tool that lays out files"},
		{
			"cmd/stage/staging",
			[]string{"cmd/internal/stackfile"},
			nil,
			"it copies, builds and stamps; of a local stack it knows the file alone",
		},
		{
			"cmd/sqlwriterctl",
			[]string{
				"internal/opsapi", "internal/ops", "internal/explain", "internal/fault", "internal/neterr",
				"internal/azure", "internal/timer", "internal/run", "internal/reconcile", "internal/commit",
				"internal/invoice", "internal/config", "internal/app/open", "internal/adopt", "internal/cosmos",
				"internal/fit", "internal/store", "cmd/internal/stackfile", "examples",
			},
			[]string{
				"github.com/alecthomas/kong", "golang.org/x/term",
				"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity",
			},
			"a client of the app: it has no breaker, no queue and no evidence of its own. The stores and the container are for what is needed before an app runs",
		},
		{
			"cmd/local",
			[]string{
				"internal/", "cmd/internal/stackfile", "cmd/local", "cmd/stage/staging", "examples", "test/emulators",
				"test/expect", "test/outage", "test/sample",
			},
			[]string{"github.com/", "golang.org/x/sync", "modernc.org/sqlite"},
			"the local stack is made of everything",
		},
		{
			"test/azuretest",
			[]string{"internal/azure", "internal/fault"},
			[]string{"github.com/Azure/azure-sdk-for-go/sdk/", "github.com/stretchr/testify"},
			"the suite of a table of errors knows no adapter",
		},
		{
			"test/conformance",
			[]string{
				"internal/fault", "internal/breaker", "internal/invoice", "internal/commit", "internal/adopt",
				"internal/ops", "internal/reconcile", "internal/retention", "internal/run", "test/inmem",
				"test/mapping",
			},
			[]string{"github.com/stretchr/testify", "pgregory.net/rapid"},
			"a suite knows no adapter but inmem, the oracle that random histories are compared with",
		},
		{"examples", nil, nil, "documents by name"},
		{"deploy/sql", nil, nil, "scripts for people, which the product runs too"},
		{
			"test/logcheck",
			[]string{"internal/events"},
			zerolog,
			"tests of any package compare log lines with the table",
		},
		{"test/bicep", nil, nil, "tests of any package take the settings of a deployment from it"},
		{"test/seeds", nil, []string{"github.com/stretchr/testify"}, "random histories of any package begin where it says"},
		{"test/mapping", []string{"internal/invoice"}, nil, "tests of any package read documents by it, so it knows none of them"},
		{"test/fill", []string{"internal/invoice", "test/mapping"}, nil, "documents of tests follow the mapping"},
		{
			"test/spies",
			[]string{"internal/invoice", "internal/run", "test/inmem"},
			nil, "they stand before ports, not before an adapter",
		},
		{"test/e2e", nil, nil, "tests only"},
		{"test/bench", nil, nil, "tests only"},
		{"test/comparison", nil, nil, "tests only"},
		{"test/crashtest", nil, nil, "tests only"},
		{"test/scenario", nil, nil, "tests only"},
		{"functions", nil, nil, "data only"},
		{"test/arch", nil, nil, "tests only"},
		{"test/mutants", []string{}, []string{"golang.org/x/sync"}, "a tool that runs go test over broken files"},
		{"test/outage", nil, nil, "it takes a database away from any program, so it knows none"},
		{
			"test/sample",
			[]string{"test/expect", "examples"},
			[]string{},
			"the documents that local runs and end-to-end tests submit, by what each must end as",
		},
		{"test/columntypes", nil, []string{}, "it reads SQL texts alone"},
		{
			"test/expect", nil,
			[]string{"modernc.org/sqlite"},
			"the second mapping checks the first one only if it shares nothing with it",
		},
	}
}

type pkg struct {
	ImportPath, Dir string
	Imports         []string
	Standard        bool
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,Standard", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

func TestImportsGoInTheAgreedDirection(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		d, ok := directionOf(name)
		require.True(t, ok, "%s has no row in directions(): add one with what it may import, and why", name)
		for _, imported := range p.Imports {
			if why, bad := wrong(d, name, imported); bad {
				t.Errorf("%s imports %s: %s (%s)", name, imported, why, d.because)
			}
		}
	}
}

// directionOf finds the most specific direction for a package.
func directionOf(name string) (direction, bool) {
	var found direction
	ok := false
	for _, d := range directions() {
		if (name == d.pkg || strings.HasPrefix(name, d.pkg+"/")) && len(d.pkg) > len(found.pkg) {
			found, ok = d, true
		}
	}
	return found, ok
}

func wrong(d direction, name, imported string) (string, bool) {
	if own, ours := strings.CutPrefix(imported, module); ours {
		if own == name || strings.HasPrefix(own, d.pkg) {
			return "", false
		}
		if !hasPrefix(d.own, own) {
			return "not one of its rooms", true
		}
		return "", false
	}
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && !hasPrefix(d.outside, imported) {
		return "not one of its modules", true
	}
	return "", false
}

func hasPrefix(prefixes []string, s string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return strings.HasPrefix(s, p)
	})
}

// The second mapping is written by hand for the default one: a package that opens no file cannot read mapping.json.
func TestTheSecondMappingOpensNoFile(t *testing.T) {
	all := packages(t)
	at := slices.IndexFunc(all, func(p pkg) bool { return p.ImportPath == module+"test/expect" })
	require.GreaterOrEqual(t, at, 0)
	for _, opens := range []string{"embed", "io/fs", "os", "syscall"} {
		require.NotContains(t, all[at].Imports, opens)
	}
}

func TestTheImportRulesFindViolations(t *testing.T) {
	for _, c := range []struct{ from, imported string }{
		{"internal/fault", "sqlwriter/internal/invoice"},
		{"internal/neterr", "github.com/Azure/azure-sdk-for-go/sdk/azcore"},
		{"internal/neterr", "sqlwriter/internal/blob"},
		{"internal/commit", "sqlwriter/internal/neterr"},
		{"internal/invoice", "github.com/rs/zerolog"},
		{"internal/commit", "sqlwriter/internal/cosmos"},
		{"internal/commit", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"},
		{"internal/cosmos", "sqlwriter/internal/store/sqlite"},
		{"internal/store/sqlite", "sqlwriter/internal/store/sqlserver"},
		{"internal/store/sqlserver", "github.com/Azure/azure-sdk-for-go/sdk/azidentity"},
		{"internal/store/shared", "github.com/microsoft/go-mssqldb"},
		{"internal/store/shared", "sqlwriter/internal/store/sqlserver"},
		{"test/inmem", "sqlwriter/internal/store/shared"},
		{"internal/app", "sqlwriter/test/sqlservertest"},
		{"internal/app", "sqlwriter/test/emulators/azurite"},
		{"internal/blob", "sqlwriter/internal/cosmos"},
		{"internal/servicebus", "sqlwriter/internal/blob"},
		{"internal/run", "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"},
		{"test/inmem", "sqlwriter/internal/blob"},
		{"internal/app", "github.com/microsoft/go-mssqldb"},
		{"test/expect", "sqlwriter/internal/store/sqlserver"},
		{"handlers", "sqlwriter/internal/cosmos"},
		{"cmd/sqlwriterctl", "sqlwriter/test/outage"},
		{"cmd/sqlwriterctl", "sqlwriter/internal/app"},
		{"cmd/sqlwriterctl", "sqlwriter/internal/breaker"},
		{"cmd/sqlwriterctl", "sqlwriter/internal/servicebus"},
		{"internal/app", "sqlwriter/internal/servicebus"},
		{"internal/app", "sqlwriter/test/emulators/cosmosdb"},
		{"test/emulators/cosmosdb", "sqlwriter/internal/cosmos"},
		{"test/expect", "sqlwriter/internal/invoice"},
		{"test/expect", "sqlwriter/test/mapping"},
	} {
		d, ok := directionOf(c.from)
		require.True(t, ok, c.from)
		_, bad := wrong(d, c.from, c.imported)
		require.True(t, bad, "%s may import %s", c.from, c.imported)
	}
}
