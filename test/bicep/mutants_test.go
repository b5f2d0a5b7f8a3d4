package bicep_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/bicep"
)

// mutant is a template with one mistake: a text, once for each place where it stands, and what stands there instead.
type mutant struct{ file, old, new string }

const (
	mainFile   = "deploy/azure/main.bicep"
	cosmosFile = "deploy/azure/cosmos.bicep"
)

// byHand are mistakes in expressions.
var byHand = []mutant{
	{mainFile, "clientId: client\n", "clientId: principal\n"},
	{mainFile, "principalId: principal,", "principalId: client,"},
	{mainFile, "scope: bus\n", "scope: storage\n"},
	{mainFile, "roleDefinitionId: metricsPublisher", "roleDefinitionId: blobDataOwner"},
	{mainFile, "MODE: mode", "MODE: 'live'"},
	{mainFile, "LEASE_PREFIX: leasePrefix", "LEASE_PREFIX: '${sysName}-'"},
	{mainFile, "RUNS_QUEUE: runsQueue", "RUNS_QUEUE: batchesQueue"},
	{mainFile, "COSMOS_CONNECTION__accountEndpoint: endpoint", "COSMOS_CONNECTION__accountEndpoint: cosmosEndpoint"},
	{mainFile, "MAPPING: mapping", "FUNCTIONS_WORKER_RUNTIME: mapping"},
	{mainFile, "      SQL_SCHEMA: sqlSchema\n", "      SQL_SCHEMA: sqlSchema\n      WEBSITE_RUN_FROM_PACKAGE: '1'\n"},
	{mainFile, "      MODE: mode\n", "      MODE: mode\n      COSMOS_CONNECTION: 'AccountEndpoint=x;AccountKey=y;'\n"},
	{mainFile, "union(settings, {", "union({"},
	{mainFile, "MAPPING: mapping })", "MAPPING: mapping }, settings)"},
	{mainFile, "insights.properties.ConnectionString", "listKeys(insights.id, '2020-02-02').key"},
	{mainFile, "insights.properties.ConnectionString", "insights.properties.connectionstring"},
	{mainFile, "sid: sqlAdmin.objectId", "sid: deployer().objectId"},
	{mainFile, "dataContributors array = []", "dataContributors array = [deployer().objectId]"},
	{mainFile, "principals: concat([principal], dataContributors)", "principals: [principal]"},
	{mainFile, "[runsQueue, batchesQueue]", "[runsQueue]"},
	{mainFile, "missingRoles array = assignRoles ?", "missingRoles array = !assignRoles ?"},
	{mainFile, " = if (assignRoles) {", " = {"},
	{mainFile, " = if (newCosmos) {", " = {"},
	{mainFile, " = if (newSql) {", " = {"},
	{mainFile, " = if (!empty(signInClientId)) {", " = {"},
	{mainFile, " = if (locks && newSql) {", " = if (newSql) {"},
	{mainFile, "empty(subnetId) ? null : subnetId", "subnetId"},
	{mainFile, "instanceCount: 1", "instanceCount: '1'"},
	{mainFile, "administrators: empty(sqlAdmin) ? null : {", "administrators: {"},
	{mainFile, "uniqueString(resourceGroup().id, sysName)", "uniqueString(utcNow())"},
	{mainFile, "'Microsoft.Storage/storageAccounts@2025-06-01'", "'Microsoft.Storage/storageAccounts@2025-06-31'"},
	{mainFile, "param locks bool = false", "param locks bool"},
	{mainFile, "param mapping string = ''", "param mapping string = ''\nparam unused string = ''"},
	{mainFile, "principals: concat", "principal: concat"},
	{mainFile, "minimumTlsVersion: 'TLS1_2'", "minimumTLSVersion: 'TLS1_2'"},
	{mainFile, "storage::blobs::package]", "storage::blobs::packages]"},
	{cosmosFile, "principalId: principal", "principalId: principals[0]"},
	{cosmosFile, "for name in own", "for name in [leaseContainer]"},
	{cosmosFile, " = if (createDatabase) {", " = {"},
	{cosmosFile, "param principals array", "param principals string"},
	{cosmosFile, "/dbs/${database}", ""},
	{cosmosFile, "container string = database", "container string = ''"},
	{theirs, "param cosmosEndpoint =", "param cosmosEndpiont ="},
	{theirs, "param mode = 'shadow'", "param mode = 'shade'"},
	{theirs, "param sqlSchema = 'dbo'", "param sqlSchema = 1"},
	{theirs, "using 'main.bicep'", "using 'mine.bicep'"},
	{theirs, "param mode = 'shadow'", ""},
}

// bounds are values at the edge of what is taken, and beyond it.
var bounds = map[string]bool{
	"sysName = 'a'": true, "sysName = 'abcdefghijklmnopqrst'": true, "sysName = ''": false,
	"sysName = 'abcdefghijklmnopqrstu'": false, "maximumInstances = 1": true, "maximumInstances = 1000": true,
	"maximumInstances = 0": false, "maximumInstances = 1001": false, "mode = 'dead'": false,
}

// mechanical makes a mutant of each member without its line, of each resource without its block, and of each literal
// and output with another value or name.
func mechanical(t *testing.T, file string) []mutant {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, file))
	require.NoError(t, err)
	source, made := string(b), []mutant{}
	for _, block := range regexp.MustCompile(`(?m)^ *(?:resource|module) .*\{$`).FindAllString(source, -1) {
		indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
		from := strings.Index(source, block)
		to := regexp.MustCompile(`(?m)^` + indent + `\}\]?\n`).FindStringIndex(source[from:])
		made = append(made, mutant{file, source[from : from+to[1]], ""})
	}
	member := regexp.MustCompile(`^ +\w+: .*[^{\[(]\n$`)
	literal := regexp.MustCompile(`'[^'$]+'|\b(?:true|false)\b|-?\b\d+\b|^output \w+`)
	for line := range strings.Lines(source) {
		if strings.HasPrefix(strings.TrimSpace(line), "//") || strings.HasPrefix(line, "@description") {
			continue
		}
		if member.MatchString(line) {
			made = append(made, mutant{file, line, ""})
		}
		for _, at := range literal.FindAllStringIndex(line, -1) {
			made = append(made, mutant{file, line, line[:at[0]] + otherThan(line[at[0]:at[1]]) + line[at[1]:]})
		}
	}
	return made
}

func otherThan(literal string) string {
	switch {
	case literal == "true":
		return "false"
	case literal == "false":
		return "true"
	case literal[0] == '\'':
		return literal[:len(literal)-1] + "x'"
	}
	return literal + "1"
}

// look names what is wrong with the templates below root, and which of the looks saw it.
func look(t *testing.T, python answers, root string) (by string, named []string) {
	t.Helper()
	got := python.of(root, evaluated, person{})
	for template, unused := range got.Unused {
		for _, name := range unused {
			got.Findings = append(got.Findings, template+": not used: "+name)
		}
	}
	if len(got.Findings) > 0 {
		return "check", got.Findings
	}
	deployed := got.Deployed
	if found := problems(deployed); len(found) > 0 {
		return "meaning", found
	}
	for value, ok := range bounds {
		const file = "deploy/azure/bounds.bicepparam"
		written := []byte("using 'main.bicep'\nparam " + value + "\n")
		require.NoError(t, os.WriteFile(filepath.Join(root, file), written, 0o600))
		if got := python.of(root, []string{file}, person{}); (len(got.Findings) == 0) != ok {
			return "bounds", []string{fmt.Sprintf("%s: taken: %v", value, !ok)}
		}
	}
	golden, err := bicep.Deployed()
	require.NoError(t, err)
	for file, want := range golden {
		got := deployed[file]
		for i, made := range want.Resources {
			if i == len(got.Resources) || !reflect.DeepEqual(made, got.Resources[i]) {
				return "golden", []string{file + ": another " + made.ID}
			}
		}
		if len(got.Resources) > len(want.Resources) || !reflect.DeepEqual(want.Outputs, got.Outputs) {
			return "golden", []string{file + ": more resources, or other outputs"}
		}
	}
	return "none", nil
}

func TestEachMistakeIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of templates: make bicep")
	}
	mutants := append(append(mechanical(t, mainFile), mechanical(t, cosmosFile)...), byHand...)
	const workers = 2
	for worker := range workers {
		t.Run(strconv.Itoa(worker), func(t *testing.T) {
			t.Parallel()
			python, root := python(t), t.TempDir()
			require.NoError(t, os.CopyFS(filepath.Join(root, "deploy"), os.DirFS(filepath.Join(repository, "deploy"))))
			require.NoError(t, os.CopyFS(filepath.Join(root, "test/bicep/testdata"), os.DirFS("testdata")))
			_, named := look(t, python, root)
			require.Empty(t, named)
			seen := map[string]int{}
			for i := worker; i < len(mutants); i += workers {
				try(t, python, root, mutants[i], seen)
			}
			t.Logf("seen by: %v", seen)
		})
	}
}

// try makes one mistake at each place where it can be made.
func try(t *testing.T, python answers, root string, m mutant, seen map[string]int) {
	t.Helper()
	path := filepath.Join(root, m.file)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	pieces := strings.Split(string(whole), m.old)
	require.Greater(t, len(pieces), 1, m.old)
	for i := 1; i < len(pieces); i++ {
		mistaken := strings.Join(pieces[:i], m.old) + m.new + strings.Join(pieces[i:], m.old)
		require.NoError(t, os.WriteFile(path, []byte(mistaken), 0o600))
		by, named := look(t, python, root)
		seen[by]++
		t.Logf("%s: %q instead of %q: %.200q", by, m.new, m.old, strings.Join(named, "; "))
		if by == "none" {
			t.Errorf("nothing sees %q instead of %q", m.new, m.old)
		}
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
}
