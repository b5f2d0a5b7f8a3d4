package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/azuretest"
)

// asProgram makes this test binary az or func: it asks the test at this address what to print.
const asProgram = "SQLWRITER_E2E_PROGRAM"

// typed is what az or func was called with, and spoken what it prints then.
type typed struct {
	Dir  string
	Args []string
}

type spoken struct {
	Out, Err string
	Code     int
}

// programFrom asks the test what az or func prints.
func programFrom(address string) int {
	dir, _ := os.Getwd()
	call, _ := json.Marshal(typed{Dir: dir, Args: os.Args[1:]})
	reply, err := http.Post(address, "application/json", bytes.NewReader(call)) //nolint:gosec,noctx // the test's
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer reply.Body.Close() //nolint:errcheck // this process ends
	var a spoken
	if err := json.NewDecoder(reply.Body).Decode(&a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(a.Out)
	fmt.Fprint(os.Stderr, a.Err)
	return a.Code
}

// What Azure has in the walk.
const (
	walkApp    = "func-sqlwriter-web-5tl76yt4"
	walkClient = "00000000-0000-4000-8000-000000000003"
)

// azure is a subscription as az and func show it, with the local stack in the place of what the template makes.
// What they are not known to be asked for fails the test.
type azure struct {
	*stack

	arm      *azuretest.ARM
	site     *httptest.Server
	checkout string
	env      []string // of a shell
	// group, deployed and published are what was done so far.
	group, deployed, published bool
}

// TestTheWalkToAzure types what docs/deploy.md says to somebody with a clone and an `az login`. The lines after make
// azure are those that it prints: each fits its line of the page.
func TestTheWalkToAzure(t *testing.T) {
	t.Parallel()
	a := newAzure(t)
	steps := commandsOf(t, "../../docs/deploy.md")
	require.Len(t, steps, 1)
	lines := steps[0].commands
	require.Len(t, lines, 6, "with two repeats of the last one there are eight")
	var printed []string
	values := map[string]string{}
	for i, line := range lines {
		require.NotRegexp(t, `(?i)export|password|key|token|connection`, line, "nothing is set, and no key is typed")
		if i > 1 {
			line = filled(t, line, printed, values)
		}
		out := a.types(line)
		if _, next, found := strings.Cut(out, "\nNext:\n"); found {
			printed = strings.Split(strings.TrimSpace(next), "\n")
			require.Len(t, printed, len(lines)-2, "it prints the lines that the page has after it")
		}
		if strings.Contains(line, "document submit") {
			a.waitUntilQuiet(1)
		}
		if i == len(lines)-1 {
			require.Regexp(t, `(?m)^status +committed`, out)
		}
	}
	require.Equal(t, map[string]string{"APP": walkApp, "IDENTITY": walkApp, "CLIENT_ID": walkClient}, values)
	require.Equal(t, 1, a.rows("SELECT count(*) FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421549 AND CLN_MFR_PRT_NUM = '425'"))

	before, err := os.ReadFile(filepath.Join(a.checkout, "sqlwriter.bicepparam"))
	require.NoError(t, err)
	a.types(lines[1])
	after, err := os.ReadFile(filepath.Join(a.checkout, "sqlwriter.bicepparam"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "a second make azure changes nothing")
}

// filled finds the printed line that fits a line of the page, in which words in capitals are to be filled in.
func filled(t *testing.T, line string, printed []string, values map[string]string) string {
	t.Helper()
	pattern := regexp.MustCompile(`\b(APP|IDENTITY|CLIENT_ID)( |$)`).
		ReplaceAllString(regexp.QuoteMeta(line), `(?P<$1>[\w-]+)$2`)
	fits := regexp.MustCompile("^" + pattern + "$")
	for _, p := range printed {
		m := fits.FindStringSubmatch(strings.TrimSpace(p))
		for i, name := range fits.SubexpNames() {
			if m != nil && name != "" {
				require.Equal(t, cmp.Or(values[name], m[i]), m[i], "one %s", name)
				values[name] = m[i]
			}
		}
		if m != nil {
			return m[0]
		}
	}
	require.Fail(t, "make azure prints no such line", "%s\n%v", line, printed)
	return ""
}

// newAzure puts az and func on the PATH, and a copy of this repository into a folder.
func newAzure(t *testing.T) *azure {
	t.Helper()
	a := &azure{stack: newContainers(t), checkout: clone(t)}
	a.connection = "sqlite:" + filepath.Join(a.dir, "sqlwriter.db")
	a.site = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.published {
			http.Error(w, "the app is not published", http.StatusServiceUnavailable)
			return
		}
		to := &url.URL{Scheme: "http", Host: a.host.Address()}
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
	}))
	t.Cleanup(a.site.Close)
	a.arm = azuretest.NewARM(t)
	programs := http.NewServeMux()
	for name, program := range map[string]func(typed) spoken{"az": a.az, "func": a.funcTools} {
		programs.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			var call typed
			if err = cmp.Or(err, json.Unmarshal(text, &call)); err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(program(call)) // the program fails if it does not come
		})
	}
	server := httptest.NewServer(programs)
	t.Cleanup(server.Close)
	bin := t.TempDir()
	for _, name := range []string{"az", "func"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s/%s exec %s \"$@\"\n", asProgram, server.URL, name, os.Args[0])
		//nolint:gosec // a program must be executable
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	trusted := filepath.Join(bin, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.arm.Certificate().Raw})
	require.NoError(t, os.WriteFile(trusted, certificate, 0o600))
	for _, variable := range os.Environ() { // of those that run this test, none is a setting
		if !regexp.MustCompile(`^(SQL|COSMOS|SYS_NAME|MODE|LEASE|MAKE|MFLAGS|PATH)`).MatchString(variable) {
			a.env = append(a.env, variable)
		}
	}
	a.env = append(a.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "SSL_CERT_FILE="+trusted)
	return a
}

// clone copies what git knows of this repository into a repository of its own.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = "../.."
	files, err := list.Output()
	require.NoError(t, err)
	for file := range strings.SplitSeq(strings.Trim(string(files), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../..", file))
		if os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
	}
	for _, args := range []string{"init -q", "add -A", "-c user.name=e2e -c user.email=e2e@localhost commit -qm all"} {
		cmd := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return dir
}

// types runs a line as a shell does, in the clone, and returns what it prints.
func (a *azure) types(line string) string {
	a.t.Helper()
	a.t.Logf("$ %s", line)
	cmd := exec.CommandContext(a.t.Context(), "sh", "-c", line)
	cmd.Dir = a.checkout
	cmd.Env = a.env
	out, err := cmd.CombinedOutput()
	require.NoError(a.t, err, "%s", out)
	return string(out)
}

func (a *azure) rows(query string) (n int) {
	a.t.Helper()
	db, err := sqlite.Open(a.t.Context(), strings.TrimPrefix(a.connection, sqlite.Scheme), sqlite.Options{})
	require.NoError(a.t, err)
	defer func() { require.NoError(a.t, db.Close()) }()
	require.NoError(a.t, db.Reader().QueryRowContext(a.t.Context(), query).Scan(&n))
	return n
}

// outputs are those of the template.
func (a *azure) outputs() map[string]any {
	outputs := map[string]any{}
	for name, value := range map[string]any{
		"app": walkApp, "url": a.site.URL, "identityName": walkApp, "clientId": walkClient,
		"principalId": "00000000-0000-4000-8000-000000000004",
		"sqlServer":   "sql-sqlwriter-5tl76yt4.database.windows.net", "sqlDatabase": "sqlwriter",
		"sqlConnection": a.connection, "cosmosEndpoint": a.cosmos.URL,
		"cosmosDatabase": database, "cosmosContainer": container, "missingRoles": []any{},
	} {
		outputs[name] = map[string]any{"value": value}
	}
	return outputs
}

// az is what az answers.
func (a *azure) az(call typed) spoken {
	line := strings.Join(call.Args, " ")
	show := func(value any) spoken {
		text, err := json.Marshal(value)
		require.NoError(a.t, err)
		return spoken{Out: string(text)}
	}
	id := "/subscriptions/" + a.arm.Subscription + "/resourceGroups/sqlwriter/providers/Microsoft.Web/sites/" + walkApp
	switch answers := a.arm.Answers(nil); {
	case answers[line] != "":
		return spoken{Out: answers[line]}
	case line == "group create -n sqlwriter -l westeurope":
		a.group = true
		return show(map[string]string{"name": "sqlwriter"})
	case line == "deployment group show -g sqlwriter -n sqlwriter -o json" && !a.deployed:
		return spoken{Err: "ERROR: (DeploymentNotFound) Deployment 'sqlwriter' could not be found.\n", Code: 3}
	case line == "deployment group show -g sqlwriter -n sqlwriter -o json":
		return show(map[string]any{"properties": map[string]any{"outputs": a.outputs()}})
	case line == "functionapp config appsettings list -g sqlwriter -n "+walkApp+" -o json" && a.deployed:
		return show([]map[string]string{{"name": "MODE", "value": "live"}, {"name": "LEASE_PREFIX", "value": "web-"}})
	case line == "ad signed-in-user show -o json":
		return show(map[string]string{"id": a.arm.Person, "userPrincipalName": "ann@contoso.example"})
	case line == "deployment group create -g sqlwriter -n sqlwriter -f deploy/azure/main.bicep "+
		"-p sqlwriter.bicepparam -o json" && a.group:
		require.Equal(a.t, a.checkout, call.Dir)
		require.FileExists(a.t, filepath.Join(call.Dir, "deploy/azure/main.bicep"))
		if !a.deployed {
			require.NoError(a.t, os.WriteFile(strings.TrimPrefix(a.connection, sqlite.Scheme), nil, 0o600))
			host := strings.TrimPrefix(a.site.URL, "https://")
			a.arm.Sites = []azuretest.Site{{ID: id, Host: host, Settings: a.settings(), SignIn: "{}"}}
		}
		a.deployed = true
		return show(map[string]any{"properties": map[string]any{"outputs": a.outputs()}})
	case line == "resource list --resource-type Microsoft.Web/sites --name "+walkApp+" --query [0].id --output tsv":
		return spoken{Out: id + "\n"}
	case strings.HasPrefix(line, "rest --method get --url "+id+"/hostruntime/admin/functions/"):
		return show(map[string]any{})
	}
	a.t.Errorf("az does not know: %s", line)
	return spoken{Err: "ERROR: unknown\n", Code: 2}
}

// funcTools is what func answers. What it publishes runs.
func (a *azure) funcTools(call typed) spoken {
	functions, err := filepath.Glob(filepath.Join(a.checkout, ".stage", "*", "function.json"))
	require.NoError(a.t, err)
	switch line := strings.Join(call.Args, " "); {
	case line == "azure functionapp publish "+walkApp+" --custom --no-build" && a.deployed:
		require.Equal(a.t, filepath.Join(a.checkout, ".stage"), call.Dir)
		require.Len(a.t, functions, 9)
		require.FileExists(a.t, filepath.Join(call.Dir, "host.json"))
		require.NoFileExists(a.t, filepath.Join(call.Dir, "local.settings.json"))
		root := call.Dir
		if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" { // what is published runs on Azure alone
			root = scriptRoot
		}
		a.handler = a.launchFrom(root, "walk", nil)
		a.host, a.published = a.handler.Host, true
		a.arm.Sites[0].Keys = map[string]string{"operator-" + a.arm.Person: functionKey}
		return spoken{Out: "The deployment was successful!\n"}
	case line == "azure functionapp list-functions "+walkApp && a.published:
		list := []string{"Functions in " + walkApp + ":"}
		for _, path := range slices.Sorted(slices.Values(functions)) {
			list = append(list, "    "+filepath.Base(filepath.Dir(path))+" - [someTrigger]", "")
		}
		return spoken{Out: strings.Join(list, "\n")}
	}
	a.t.Errorf("func does not know: %v", call.Args)
	return spoken{Err: "unknown\n", Code: 1}
}
