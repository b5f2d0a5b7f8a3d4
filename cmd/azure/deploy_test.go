package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	evaluated "sqlwriter/test/bicep"
)

var update = flag.Bool("update", false, "rewrite testdata") //nolint:gochecknoglobals // a flag

// group is a resource group as az tells of it. A call that it does not know fails the test.
type group struct {
	t *testing.T
	// person answers `az ad signed-in-user show`; nobody may ask when it is empty.
	person string
	// deployed are the parameters of the last deployment, settings those of the app; nil before the first.
	deployed map[string]any
	settings map[string]string
	outputs  string
	refuses  string // what az says in place of deploying
	file     string // that was deployed last
	says     []string
	looked   bool   // at what would change
	next     string // the file that was looked at
	answer   bool
}

// ownOutputs and theirOutputs are what the template says, as az prints it.
const (
	ownOutputs = `{"app": {"type": "String", "value": "func-sqlwriter-web-abcdefgh"}, "url": {"value": "https://func-sqlwriter-web-abcdefgh.azurewebsites.net"},
		"identityName": {"value": "func-sqlwriter-web-abcdefgh"},
		"clientId": {"value": "11111111-2222-3333-4444-555555555555"},
		"principalId": {"value": "99999999-8888-7777-6666-555555555555"}, "sqlDatabase": {"value": "sqlwriter"},
		"sqlServer": {"value": "sql-sqlwriter-abcdefgh.database.windows.net"}, "cosmosEndpoint": {"value": "https://cosmos-sqlwriter-abcdefgh.documents.azure.com:443/"},
		"cosmosDatabase": {"value": "invoices"}, "missingRoles": {"type": "Array", "value": []}}`
	roleOfStorage = `{"role": "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
		"scope": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/stabc", "principal": "99999999-8888-7777-6666-555555555555"}`
)

const ann = `{"id": "00000000-0000-4000-8000-000000000006", "displayName": "Ann", "userPrincipalName": "ann@example.com"}`

func (g *group) run(_ context.Context, how program, name string, args ...string) ([]byte, error) {
	g.t.Helper()
	require.Equal(g.t, "az", name)
	if how.shown {
		require.Equal(g.t, "deployment group what-if -g g -n sqlwriter -f deploy/azure/main.bicep -p g.next.bicepparam",
			strings.Join(args, " "))
		g.looked = true
		next, err := os.ReadFile("g.next.bicepparam")
		require.NoError(g.t, err)
		require.Contains(g.t, string(next), "using 'deploy/azure/main.bicep'\n")
		g.next = string(next)
		return nil, nil
	}
	require.Equal(g.t, []string{"-o", "json"}, args[len(args)-2:])
	line := strings.Join(args[:len(args)-2], " ")
	switch {
	case line == "deployment group show -g g -n sqlwriter" && g.deployed == nil:
		return nil, errors.New("az: (DeploymentNotFound) Deployment 'sqlwriter' could not be found")
	case line == "deployment group show -g g -n sqlwriter":
		each := map[string]any{}
		for name, value := range g.deployed {
			each[name] = map[string]any{"type": "String", "value": value}
		}
		properties := map[string]any{"parameters": each, "outputs": json.RawMessage(g.outputs)}
		return json.Marshal(map[string]any{"properties": properties})
	case line == "resource list -g g":
		return g.resources()
	case line == "ad signed-in-user show" && g.person != "":
		return []byte(g.person), nil
	case line == "ad group show --group Invoices' DBAs":
		return []byte(`{"id": "dddddddd-0000-0000-0000-00000000000d", "displayName": "Invoices' DBAs"}`), nil
	case line == "functionapp config appsettings list -g g -n func-sqlwriter-web-abcdefgh" && g.settings != nil:
		var list []map[string]string
		for name, value := range g.settings {
			list = append(list, map[string]string{"name": name, "value": value})
		}
		return json.Marshal(list)
	case line == "deployment group create -g g -n sqlwriter -f deploy/azure/main.bicep -p g.bicepparam" && g.refuses == "":
		g.file = parameterFile(g.t)
		g.deployed, g.settings = g.effect()
		return []byte(`{"properties": {"outputs": ` + g.outputs + `}}`), nil
	case strings.HasPrefix(line, "deployment group create") && g.refuses != "":
		return nil, &failure{err: errors.New("az: exit status 1"), said: g.refuses}
	}
	g.t.Errorf("az does not know: %s", line)
	return nil, errors.New("unknown")
}

// resources are those of the group: what others made, and with the app a server.
func (g *group) resources() ([]byte, error) {
	list := []map[string]string{{"type": "Microsoft.Web/sites", "name": "others"}}
	if g.settings != nil {
		for kind, name := range map[string]string{
			"Microsoft.Web/sites": "func-sqlwriter-web-abcdefgh", "Microsoft.Sql/servers": "sql-sqlwriter-abcdefgh",
		} {
			list = append(list, map[string]string{"type": kind, "name": name})
		}
	}
	return json.Marshal(list)
}

// effect is what a deployment of the file makes: all parameters of the template, and the app's settings of them.
func (g *group) effect() (deployed map[string]any, settings map[string]string) {
	g.t.Helper()
	file, err := os.ReadFile("g.bicepparam")
	require.NoError(g.t, err)
	text, err := os.ReadFile(bicep)
	require.NoError(g.t, err)
	deployed = map[string]any{}
	for _, m := range regexp.MustCompile(`(?m)^param (\w+)`).FindAllSubmatch(text, -1) {
		name := string(m[1])
		p := parameters(file)
		if p.get(name) == "" {
			p = parameters(text)
		}
		switch value := p.get(name); {
		case strings.HasPrefix(value, "'"):
			deployed[name] = p.text(name)
		case name == "partitionKeyPaths":
			deployed[name] = []any{strings.Trim(value, "[ '\n]")}
		}
	}
	settings = map[string]string{}
	for setting, name := range map[string]string{
		"MODE": "mode", "LEASE_PREFIX": "leasePrefix", "SYS_NAME": "sysName", "COSMOS_DATABASE": "cosmosDatabase",
		"COSMOS_CONTAINER": "cosmosContainer", "LEASE_CONTAINER": "leaseContainer", "SQL_SCHEMA": "sqlSchema",
		"COSMOS_CONNECTION__accountEndpoint": "cosmosEndpoint",
	} {
		settings[setting] = deployed[name].(string)
	}
	if settings["COSMOS_CONNECTION__accountEndpoint"] == "" {
		settings["COSMOS_CONNECTION__accountEndpoint"] = "https://cosmos-sqlwriter-abcdefgh.documents.azure.com:443/"
	}
	settings["SQL_CONNECTION"] = fmt.Sprintf("sqlserver://%s?database=%s&fedauth=ActiveDirectoryManagedIdentity&user+id=1",
		cmp.Or(deployed["sqlServer"].(string), "sql-sqlwriter-abcdefgh.database.windows.net"), deployed["sqlDatabase"])
	return deployed, settings
}

// deploy is make azure.
func (g *group) deploy(change func(*deployment)) error {
	g.t.Helper()
	g.says, g.looked = nil, false
	d := deployment{group: "g", tool: tool{
		run: g.run,
		say: func(line string) { g.says = append(g.says, line) },
		ask: func(context.Context, string) bool {
			if !g.answer { // and who is killed here leaves the file as it is
				g.file = parameterFile(g.t)
			}
			return g.answer
		},
	}}
	if change != nil {
		change(&d)
	}
	return d.deploy(g.t.Context())
}

// inCheckout moves the test into a folder with the templates.
func inCheckout(t *testing.T) {
	t.Helper()
	source, err := filepath.Abs("../../deploy/azure")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.CopyFS("deploy/azure", os.DirFS(source)))
}

func parameterFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("g.bicepparam")
	require.NoError(t, err)
	return string(text)
}

// TestGoldenOfTheFirstMakeAzure compares the parameter file and what is said with goldens.
func TestGoldenOfTheFirstMakeAzure(t *testing.T) {
	golden, err := filepath.Abs("testdata")
	require.NoError(t, err)
	evaluated, err := os.ReadFile("../../test/bicep/testdata/own.bicepparam")
	require.NoError(t, err)
	for name, first := range map[string]struct {
		outputs string
		change  func(*deployment)
	}{
		"own": {ownOutputs, nil},
		"theirs": {
			strings.ReplaceAll(strings.Replace(ownOutputs, "cosmos-sqlwriter-abcdefgh", "theirs", 1),
				"sql-sqlwriter-abcdefgh", "theirs"),
			func(d *deployment) { d.from = "deploy/azure/theirs.bicepparam" },
		},
		"pipeline": {
			strings.Replace(ownOutputs, `"value": []`, `"value": [`+roleOfStorage+`]`, 1),
			func(d *deployment) { // a second environment
				file := []byte("param sysName = 'test'\r\n")
				require.NoError(t, os.WriteFile("x.bicepparam", file, 0o600))
				d.admins, d.from = "Invoices' DBAs", "x.bicepparam"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCheckout(t)
			g := &group{t: t, outputs: first.outputs}
			if name == "own" { // else nobody is asked for
				g.person = ann
			}
			require.NoError(t, g.deploy(first.change))
			require.False(t, g.looked, "there is nothing that could change")
			if name == "own" {
				require.Equal(t, string(evaluated), strings.Replace(g.file, "'deploy/", "'../../../deploy/", 1),
					"test/bicep evaluates such a file")
			}
			got := parameterFile(t) + "----\n" + strings.Join(g.says, "\n")
			path := filepath.Join(golden, name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// TestWhatIsPrintedIsTyped: a shell gives each line's words to a program as they are, whatever the names.
func TestWhatIsPrintedIsTyped(t *testing.T) {
	inCheckout(t)
	role := strings.Replace(roleOfStorage, "resourceGroups/g/", "resourceGroups/g (it's)/", 1)
	outputs := strings.NewReplacer(`"value": []`, `"value": [`+role+`]`, `"value": "invoices"`, `"value": "All invoices"`)
	g := &group{t: t, outputs: outputs.Replace(ownOutputs)}
	require.NoError(t, g.deploy(func(d *deployment) { d.from = "deploy/azure/theirs.bicepparam" }))
	lines := regexp.MustCompile(`(?m)^  az .*--scope .*|^  az .*database=.*`).FindAllString(strings.Join(g.says, "\n"), -1)
	require.Len(t, lines, 4)
	for _, line := range lines {
		script := `az() { printf '%s\n' "$@"; }` + "\n" + line
		words, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
		require.NoError(t, err, line)
		require.Regexp(t, `(?m)^(database=All invoices|/subscriptions/s/resourceGroups/g \(it's\)/.*)$`, string(words))
	}
}

// TestTheSecondMakeAzureChangesNothing: another person, a pipeline, in mid-shadow. Nobody is asked who is signed in.
func TestTheSecondMakeAzureChangesNothing(t *testing.T) {
	for name, first := range map[string]func(*deployment){
		"own": nil, "in mid-shadow": func(d *deployment) { d.mode, d.prefix = "shadow", "web-shadow-" },
		"theirs": func(d *deployment) { d.from = "deploy/azure/theirs.bicepparam" },
	} {
		t.Run(name, func(t *testing.T) {
			inCheckout(t)
			g := &group{t: t, outputs: ownOutputs, person: ann}
			require.NoError(t, g.deploy(first))
			file, deployed, settings := parameterFile(t), maps.Clone(g.deployed), maps.Clone(g.settings)
			require.NotRegexp(t, `sqlAdmin = \{.+\}`, file, "Azure may refuse it for a server that is there")
			g.person = ""
			require.NoError(t, g.deploy(nil))
			require.False(t, g.looked)
			require.Equal(t, file, parameterFile(t))
			require.Equal(t, deployed, g.deployed)
			require.Equal(t, settings, g.settings)
			said := strings.Join(g.says, "\n")
			require.NotRegexp(t, "sample-tables|history|examples/", said, "documents of others are there")
			require.Contains(t, said, "make publish APP=func-sqlwriter-web-abcdefgh")
		})
	}
}

// TestTheAdministratorIsSentOnce: also after a run that was killed while Azure worked, or as it ended. What comes next
// it has not said then.
func TestTheAdministratorIsSentOnce(t *testing.T) {
	inCheckout(t)
	g := &group{t: t, outputs: ownOutputs, person: ann, refuses: "killed"}
	require.ErrorContains(t, g.deploy(nil), "killed")
	before := parameterFile(t)
	g.refuses = ""
	require.NoError(t, g.deploy(nil), "without a server it is needed")
	require.Regexp(t, `sqlAdmin = \{.+\}`, g.file)
	require.NoError(t, os.WriteFile("g.bicepparam", []byte(before), 0o600))
	require.NoError(t, g.deploy(nil))
	require.NotRegexp(t, `sqlAdmin = \{.+\}`, g.file)
	require.Contains(t, strings.Join(g.says, "\n"), "--sample-tables --history empty")
}

// TestTheTemplateSaysWhatIsPrinted: its outputs have the names that are read.
func TestTheTemplateSaysWhatIsPrinted(t *testing.T) {
	text, err := os.ReadFile("../../" + bicep)
	require.NoError(t, err)
	for field := range reflect.TypeFor[outputs]().Fields() {
		require.Regexp(t, `(?mi)^output `+field.Name+` `, string(text))
	}
}

func TestTheSecondMakeAzureNeedsTheFile(t *testing.T) {
	inCheckout(t)
	g := &group{t: t, outputs: ownOutputs, person: ann}
	require.NoError(t, g.deploy(func(d *deployment) { d.mode, d.prefix = "shadow", "web-shadow-" }))
	require.NoError(t, os.Remove("g.bicepparam"))
	require.ErrorContains(t, g.deploy(nil), "az deployment group show -g g -n sqlwriter --query properties.parameters")
	require.NoFileExists(t, "g.bicepparam")
}

// TestWhatMakeAzureAsksBefore: a mode with the leases of the other is refused, and what moves the app is looked at.
func TestWhatMakeAzureAsksBefore(t *testing.T) {
	for _, c := range []struct {
		name         string
		mode, prefix string            // of make azure
		file         [2]string         // a line of the parameter file that a person has changed
		settings     map[string]string // of the app, that a person has changed
		last         string            // deployment: failed, or forgotten by Azure
		refused      string
		looked       bool
	}{
		{name: "nothing"},
		{name: "live as it is", mode: "live"},
		{name: "to shadow with its leases", mode: "shadow", refused: "LEASE_PREFIX=web-shadow-"},
		{name: "to shadow", mode: "shadow", prefix: "web-shadow-", looked: true},
		{
			name: "to live with the leases of a shadow", mode: "live", prefix: "web-shadow-",
			settings: map[string]string{"MODE": "shadow", "LEASE_PREFIX": "web-shadow-"},
			refused:  "LEASE_PREFIX=web-live-",
		},
		{name: "a shadow that a person made", settings: map[string]string{"MODE": "shadow"}, refused: "MODE=shadow"},
		{
			name: "a shadow whose name a person took", refused: "MODE=shadow",
			settings: map[string]string{"MODE": "shadow", "SYS_NAME": ""},
		},
		{name: "an app that is live without MODE", settings: map[string]string{"MODE": ""}},
		{name: "leases that a person gave it", settings: map[string]string{"LEASE_PREFIX": "web-2-"}, looked: true},
		{
			name:     "documents that a person gave it",
			settings: map[string]string{"COSMOS_CONTAINER": "others"}, looked: true,
		},
		{
			name:     "an account that a person gave it",
			settings: map[string]string{"COSMOS_CONNECTION__accountEndpoint": "https://cosmos-sqlwriter-2.documents.azure.com/"},
			looked:   true,
		},
		{
			name: "rows that a person gave it", looked: true,
			settings: map[string]string{"SQL_CONNECTION": "sqlserver://sql-sqlwriter-abcdefgh.database.windows.net?database=x"},
		},
		{
			name: "a server that a person gave it", looked: true,
			settings: map[string]string{"SQL_CONNECTION": "sqlserver://sql.x:1433?database=sqlwriter"},
		},
		{name: "a connection that nobody can read", settings: map[string]string{"SQL_CONNECTION": "%"}, looked: true},
		{
			name: "to shadow after a failure",
			mode: "shadow", prefix: "web-", last: "failed", refused: "LEASE_PREFIX=web-shadow-",
		},
		{
			name: "to shadow, no deployment known",
			mode: "shadow", last: "forgotten", refused: "LEASE_PREFIX=web-shadow-",
		},
		{name: "nothing after a failure", last: "failed"},
		{name: "nothing, no deployment known", last: "forgotten"},
		{
			name: "leases that Bicep puts together", mode: "shadow", refused: "write the value itself",
			file: [2]string{"param leasePrefix = 'web-'\n", "param x = 'web'\nparam leasePrefix = '${x}-'\n"},
		},
		{
			name: "a mode that Bicep finds", refused: "write the value itself",
			file: [2]string{"param mode = 'live'\n", "param mode = empty('') ? 'shadow' : 'live'\n"},
		},
		{
			name: "another environment", looked: true,
			file: [2]string{"'web'\nparam mode = 'live'\nparam leasePrefix = 'web-'", "'test'\nparam leasePrefix = 'test-'"},
		},
		{name: "a name that the app refuses", file: [2]string{"'web'", "'web.1'"}, refused: "letters, digits, - and _"},
		{name: "leases that the app refuses", prefix: "shadow-", refused: "begins with web-"},
		{name: "another schema, with blanks", file: [2]string{"", " param\tsqlSchema = 'pay'\n"}, looked: true},
		{
			name: "a mode in a comment", refused: "/* */",
			file: [2]string{"param mode = 'live'\n", "/*\nparam mode = 'live'\n*/\nparam mode = 'shadow'\n"},
		},
		{name: "the same documents again", prefix: "web-2-", looked: true},
		{name: "another key", file: [2]string{"", "param partitionKeyPaths = ['/id']\n"}, looked: true},
		{name: "another account", file: [2]string{"", "param cosmosEndpoint = 'https://x/'\n"}, looked: true},
		{name: "another schema", file: [2]string{"", "param sqlSchema = 'pay'\n"}, looked: true},
		{name: "more memory", file: [2]string{"", "param instanceMemoryMB = 4096\n"}},
		{
			name: "a mode that is left to the template", refused: "",
			file: [2]string{"param mode = 'live'\n", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCheckout(t)
			g := &group{t: t, outputs: ownOutputs, person: ann}
			require.NoError(t, g.deploy(nil))
			text := parameterFile(t)
			if c.file[0] == "" {
				text += c.file[1]
			} else {
				text = strings.Replace(text, c.file[0], c.file[1], 1)
			}
			require.NoError(t, os.WriteFile("g.bicepparam", []byte(text), 0o600))
			maps.Copy(g.settings, c.settings)
			switch c.last {
			case "failed":
				g.outputs = "{}"
				g.deployed["mode"], g.deployed["leasePrefix"] = "shadow", "web-shadow-" // which it did not reach
			case "forgotten":
				g.deployed = nil
			}
			was, settings := maps.Clone(g.deployed), maps.Clone(g.settings)
			change := func(d *deployment) { d.mode, d.prefix = c.mode, c.prefix }

			err := g.deploy(change)
			require.Equal(t, c.looked, g.looked)
			if !c.looked && c.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, cmp.Or(c.refused, "nothing was changed"))
			require.Equal(t, was, g.deployed)
			require.Equal(t, text, parameterFile(t), "the file is as it was")
			require.NoFileExists(t, "g.next.bicepparam")
			if c.refused != "" {
				require.Error(t, g.deploy(func(d *deployment) { change(d); d.yes = true }))
				require.Equal(t, was, g.deployed)
				return
			}
			require.Equal(t, text, g.file, "also while somebody is asked")
			g.answer = true
			require.NoError(t, g.deploy(change))
			require.Equal(t, g.next, g.file, "what was looked at is deployed")
			require.NotEqual(t, []any{was, settings}, []any{g.deployed, g.settings})
			g.answer = false
			require.NoError(t, g.deploy(change), "it is so now")
			require.False(t, g.looked)
		})
	}
	t.Run("YES answers", func(t *testing.T) {
		inCheckout(t)
		g := &group{t: t, outputs: ownOutputs, person: ann}
		require.NoError(t, g.deploy(nil))
		require.NoError(t, g.deploy(func(d *deployment) { d.mode, d.prefix, d.yes = "shadow", "web-shadow-", true }))
		require.True(t, g.looked)
		require.Equal(t, "web-shadow-", g.settings["LEASE_PREFIX"])
	})
}

// TestTheSettingsTellWhatTheFileSays: an app with the settings that the template writes, as evaluated, has nothing that
// its parameter file would change.
func TestTheSettingsTellWhatTheFileSays(t *testing.T) {
	template, err := os.ReadFile("../../" + bicep)
	require.NoError(t, err)
	files, err := evaluated.Deployed()
	require.NoError(t, err)
	for _, file := range []string{
		"deploy/azure/theirs.bicepparam", "test/bicep/testdata/all.bicepparam", "test/bicep/testdata/own.bicepparam",
	} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		d := deployment{defaults: parameters(template)}
		p, err := d.complete(t.Context(), parameters(text), false)
		require.NoError(t, err)
		apps := files[file].Of("Microsoft.Web/sites")
		require.Len(t, apps, 1, file)
		p = p.set("partitionKeyPaths", d.defaults.get("partitionKeyPaths")) // no setting has it
		require.Empty(t, p.changes(d.defaults, inUse(apps[0].Name, files[file].Settings())), file)
	}
}

// TestParametersAreReadAsTheyAreWritten: what literal writes, get and text read, and set replaces nothing else.
func TestParametersAreReadAsTheyAreWritten(t *testing.T) {
	p := parameters("using 'main.bicep'\n\nparam a = 'x' // a comment\nparam many = [\n  '/a'\n  '/b'\n]\nparam ab = true\n")
	require.Equal(t, []string{"'x'", "[\n  '/a'\n  '/b'\n]", "true", ""},
		[]string{p.get("a"), p.get("many"), p.get("ab"), p.get("b")})
	const hard = `O'Brien ${x} \ end`
	p = p.set("a", literal(hard)).set("many", literal([]any{}))
	p = p.set("new", literal(map[string]any{"n": 40.0, "o": nil, "deep": []any{true}}))
	require.Equal(t, hard, p.text("a"))
	require.Equal(t, parameters("using 'main.bicep'\n\nparam a = 'O\\'Brien \\${x} \\\\ end' // a comment\nparam many = []\nparam ab = true\n"+
		"param new = {'deep': [true], 'n': 40, 'o': null}\n"), p)
	require.Equal(t, p, p.set("new", p.get("new")))
}

// TestARefusalNamesTheCommandThatEndsIt: the texts are those of azure-cli 2.91.0 and of ARM.
func TestARefusalNamesTheCommandThatEndsIt(t *testing.T) {
	for says, advice := range map[string]string{
		"ERROR: Please run 'az login' to setup account.":                                                             "nobody is signed in: az login",
		"ERROR: (ResourceGroupNotFound) Resource group 'g' could not be found.":                                      "az group create -n GROUP",
		`exec: "az": executable file not found in $PATH`:                                                             "install-azure-cli",
		`exec: "func": executable file not found in $PATH`:                                                           "npm install -g azure-functions-core-tools@4",
		"ERROR: Error while attempting to download Bicep CLI: <urlopen error>":                                       "az config set bicep.use_binary_from_path=true",
		"ERROR: Error while attempting to retrieve the latest Bicep version: HTTP":                                   "az config set bicep.use_binary_from_path=true",
		"(MissingSubscriptionRegistration) The subscription is not registered to use namespace 'Microsoft.App'. See": "az provider register --namespace Microsoft.App --wait",
		"Invalid value given for parameter AzureADOnlyAuthentication.":                                               "param sqlAdmin = {}",
		"InvalidParameterValue: Invalid value given for parameter ExternalAdministratorLoginSid. Specify":            "param sqlAdmin = {}`",
		"(AuthorizationFailed) ... action 'Microsoft.Authorization/roleAssignments/write' over scope":                "param assignRoles = false",
	} {
		t.Run(says, func(t *testing.T) {
			inCheckout(t)
			require.ErrorContains(t, (&group{t: t, person: ann, refuses: says}).deploy(nil), advice)
		})
	}
	require.EqualError(t, &failure{err: errors.New("az: exit status 1"), said: "other\n"}, "az: exit status 1\nother")
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	inCheckout(t)
	require.NoError(t, os.WriteFile("g.bicepparam", nil, 0o600))
	require.ErrorContains(t, (&group{t: t}).deploy(func(d *deployment) { d.from = "x" }), "leave PARAMS out")
	require.ErrorContains(t, tool{}.command(t.Context(), nil), "azure deploy or azure publish")
	require.ErrorContains(t, tool{}.command(t.Context(), []string{"deploy"}), "make azure GROUP=name")
}

// TestTheTargetsOfMake: what is typed after make azure and make publish arrives.
func TestTheTargetsOfMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	for variable := range strings.FieldsSeq("GROUP PARAMS SQL_ADMIN MODE LEASE_PREFIX YES APP MIGRATED") {
		t.Setenv(variable, "of-the-environment")
	}
	for want, typed := range map[string][]string{
		"azure deploy":           {"azure"},
		"azure deploy GROUP='g'": {"azure", "GROUP=g"},
		`azure deploy GROUP='g' PARAMS='f' SQL_ADMIN='Invoices'\'' DBAs' MODE='shadow' LEASE_PREFIX='web-2-' YES='1'`: {
			"azure", "GROUP=g", "PARAMS=f", "SQL_ADMIN=Invoices' DBAs", "MODE=shadow", "LEASE_PREFIX=web-2-", "YES=1",
		},
		"azure publish APP='a' MIGRATED='m'": {"publish", "APP=a", "MIGRATED=m"},
	} {
		args := append([]string{"-n", "--no-print-directory", "-C", "../.."}, typed...)
		cmd := exec.CommandContext(t.Context(), "make", args...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		printed := strings.Join(strings.Fields(strings.ReplaceAll(string(out), "\\\n", " ")), " ")
		require.Regexp(t, regexp.QuoteMeta(want)+"$", printed, "%v", typed)
		require.Contains(t, printed, " -o bin/ ", "it uses bin/sqlwriterctl, or prints its lines")
	}
}
