package bicep_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/config"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/bicep"
)

// Types of what the templates make.
const (
	storage   = "Microsoft.Storage/storageAccounts"
	bus       = "Microsoft.ServiceBus/namespaces"
	queue     = bus + "/queues"
	logs      = "Microsoft.OperationalInsights/workspaces"
	insights  = "Microsoft.Insights/components"
	cosmos    = "Microsoft.DocumentDB/databaseAccounts"
	container = cosmos + "/sqlDatabases/containers"
	server    = "Microsoft.Sql/servers"
	site      = "Microsoft.Web/sites"
)

// rows say what own makes: what stands at a path in each resource of a type whose name ends with name. The words of
// docs/settings.md, What must exist, ask for it.
var rows = []struct {
	kind, name, path string
	want             any
	words            string
}{
	{queue, "", "properties.lockDuration", "PT1M", "lock duration 1 min or more"},
	{queue, "", "properties.maxDeliveryCount", 10.0, "maximum delivery count 10"},
	{queue, "", "properties.requiresDuplicateDetection", true, "duplicate detection on"},
	{queue, "", "properties.duplicateDetectionHistoryTimeWindow", "PT10M", "duplicate detection on (10 min)"},
	{queue, "", "properties.defaultMessageTimeToLive", "P14D", "time to live 14 days or more"},
	{bus, "", "sku.tier", "Standard", "the Basic tier"}, // has no duplicate detection
	{container, "/sqlwriter-leases", "properties.resource.partitionKey.paths", []any{"/id"}, "partition key `/id`"},
	{container, "/sqlwriter-leases", "properties.resource.defaultTtl", -1.0, "time to live on (-1)"},
	{container, "/sqlwriter-control", "properties.resource.partitionKey.paths", []any{"/id"}, "`sqlwriter-control`"},
	{container, "/" + config.ControlContainer, "properties.resource.defaultTtl", -1.0, "time to live on (-1)"},
	{storage + "/blobServices/containers", "/" + config.EvidenceContainer, "", nil, "container `sqlwriter` of evidence"},
	// No key and no password opens anything.
	{storage, "", "properties.allowSharedKeyAccess", false, ""},
	{storage, "", "properties.allowBlobPublicAccess", false, ""},
	{bus, "", "properties.disableLocalAuth", true, ""},
	{insights, "", "properties.DisableLocalAuth", true, ""},
	{logs, "", "properties.features.disableLocalAuth", true, ""},
	{cosmos, "", "properties.disableLocalAuth", true, ""},
	{server, "", "properties.administrators.azureADOnlyAuthentication", true, ""},
	{site + "/basicPublishingCredentialsPolicies", "/scm", "properties.allow", false, ""},
	{site + "/basicPublishingCredentialsPolicies", "/ftp", "properties.allow", false, ""},
	{site, "", "properties.httpsOnly", true, ""},
	{storage, "", "properties.supportsHttpsTrafficOnly", true, ""},
	{storage, "", "properties.minimumTlsVersion", "TLS1_2", ""},
	{bus, "", "properties.minimumTlsVersion", "1.2", ""},
	{cosmos, "", "properties.minimalTlsVersion", "Tls12", ""},
	{server, "", "properties.minimalTlsVersion", "1.2", ""},
	// The timer would never let a serverless database pause.
	{server + "/databases", "", "sku.name", "S0", ""},
}

// roles are those of the identity, by what they are given at.
var roles = []struct{ kind, id, words string }{
	{storage, "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", "Storage Blob Data Owner"},
	{bus, "090c5cfd-751d-490a-894a-3ce6f1109419", "Azure Service Bus Data Owner"},
	{insights, "3913510d-42f4-4e42-8a64-420c390055eb", ""},
	{cosmos, "00000000-0000-0000-0000-000000000002", "Built-in Data Contributor, a data-plane role at the database"},
}

// ofTheHost are settings that config does not know. refused are those that the plan refuses, or by which the host would
// be misled.
var (
	ofTheHost = []string{
		"APPLICATIONINSIGHTS_AUTHENTICATION_STRING", "APPLICATIONINSIGHTS_CONNECTION_STRING",
		"AzureWebJobsStorage__accountName", "AzureWebJobsStorage__clientId", "AzureWebJobsStorage__credential",
		"COSMOS_CONNECTION__credential", "SERVICEBUS_CONNECTION__credential",
	}
	refused = regexp.MustCompile(`^(FUNCTIONS_|WEBSITE_|SCM_|AzureWebJobsStorage$|AzureWebJobsDashboard$)`)
)

// outputs are all: none is a secret.
var outputs = []string{
	"app", "clientId", "cosmosDatabase", "identityName", "missingRoles", "principalId", "sqlDatabase", "sqlServer",
	"url",
}

// problems are all that is wrong with what the parameter files deploy.
func problems(deployed map[string]bicep.Deployment) []string {
	m := meaning{}
	m.made(deployed[own])
	m.roles(deployed[own], deployed[all])
	for _, file := range []string{own, theirs, all} {
		m.settings(file, deployed[file])
		m.same(file+" outputs", outputs, slices.Sorted(maps.Keys(deployed[file].Outputs)))
	}
	for _, kind := range []string{cosmos, server} {
		m.same("what is made for others of "+kind, 0, len(deployed[theirs].Of(kind)))
	}
	if bare, ok := deployed[bare]; ok {
		m.same("settings by default", deployed[own].Settings(), bare.Settings())
		m.same("outputs by default", deployed[own].Outputs, bare.Outputs)
		for _, made := range bare.Of(server) {
			m.same("administrator of a server that is there", nil, at(made.Body, "properties.administrators"))
		}
	}
	return m.found
}

// meaning collects problems.
type meaning struct{ found []string }

func (m *meaning) wrong(format string, args ...any) {
	m.found = append(m.found, fmt.Sprintf(format, args...))
}

func (m *meaning) same(what string, want, got any) {
	if !reflect.DeepEqual(want, got) {
		m.wrong("%s: want %v, got %v", what, want, got)
	}
}

func (m *meaning) made(d bicep.Deployment) {
	for _, row := range rows {
		found := false
		for _, made := range d.Of(row.kind) {
			if strings.HasSuffix(made.Name, row.name) {
				found = true
				m.same(made.Name+" "+row.path, row.want, at(made.Body, row.path))
			}
		}
		if !found {
			m.wrong("there is no %s%s", row.kind, row.name)
		}
	}
	for _, app := range d.Of(site) {
		ready, err := json.Marshal(at(app.Body, "properties.functionAppConfig.scaleAndConcurrency.alwaysReady"))
		name, _ := strings.CutPrefix(regexp.MustCompile(`function:\w+`).FindString(string(ready)), "function:")
		_, missing := os.Stat(filepath.Join(repository, "functions", name))
		if err != nil || name == "" || missing != nil {
			m.wrong("%s: an always-ready instance of no function: %s", app.Name, ready)
		}
	}
}

// at is what stands at a path.
func at(body any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		members, _ := body.(map[string]any)
		body = members[name]
	}
	return body
}

// roles compares the assignments with the table; without the right to assign them, they are an output.
func (m *meaning) roles(own, without bicep.Deployment) {
	const assignment = "Microsoft.Authorization/roleAssignments"
	m.same("assignments", []int{3, 0}, []int{len(own.Of(assignment)), len(without.Of(assignment))})
	for _, d := range []bicep.Deployment{own, without} {
		given := []string{}
		for _, made := range d.Of(assignment) {
			scope, _, _ := strings.Cut(made.ID, "/providers/"+assignment)
			p := at(made.Body, "properties")
			given = append(given, sentence(at(p, "roleDefinitionId"), scope, at(p, "principalId")))
		}
		missing, _ := d.Outputs["missingRoles"].([]any)
		for _, role := range missing {
			given = append(given, sentence(at(role, "role"), at(role, "scope"), at(role, "principal")))
		}
		for _, made := range d.Of(cosmos + "/sqlRoleAssignments") {
			p := at(made.Body, "properties")
			given = append(given, sentence(at(p, "roleDefinitionId"), at(p, "scope"), at(p, "principalId")))
		}
		wanted := []string{}
		for _, role := range roles {
			for _, made := range d.Of(role.kind) {
				scope := made.ID
				if role.kind == cosmos {
					scope += "/dbs/" + d.Settings()[config.CosmosDatabase]
				}
				wanted = append(wanted, sentence(role.id, scope, d.Outputs["principalId"]))
			}
		}
		m.same("roles of the identity", wanted, given[:min(len(wanted), len(given))])
	}
}

// sentence says who has which role where. A role is known by its last part.
func sentence(role, scope, principal any) string {
	id := fmt.Sprint(role)
	return fmt.Sprintf("%s at %v for %v", id[strings.LastIndex(id, "/")+1:], scope, principal)
}

// settings gives the app settings to the app, and looks for those that nobody reads.
func (m *meaning) settings(file string, d bicep.Deployment) {
	values := d.Settings()
	c, err := config.Load(func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	})
	if err != nil {
		m.wrong("%s: %v", file, err)
	}
	known := slices.Clone(ofTheHost)
	for _, setting := range config.Settings() {
		known = append(known, setting.Name)
	}
	for name := range values {
		if !slices.Contains(known, name) || refused.MatchString(name) {
			m.wrong("%s: nobody may have the setting %s", file, name)
		}
	}
	for _, name := range ofTheHost {
		if values[name] == "" {
			m.wrong("%s: the host needs %s", file, name)
		}
	}
	identity, _ := d.Outputs["clientId"].(string)
	for _, id := range []string{c.Cosmos.ClientID, c.ServiceBus.ClientID, c.Blob.ClientID} {
		m.same(file+" client id", identity, id)
	}
	if err := sqlserver.CheckDSN(c.SQL.Connection.Reveal(), false); err != nil {
		m.wrong("%s: %v", file, err)
	}
	made := []string{}
	for _, one := range append(d.Of(queue), d.Of(container)...) {
		made = append(made, one.Name[strings.LastIndex(one.Name, "/")+1:])
	}
	named := []string{c.ServiceBus.RunsQueue, c.ServiceBus.BatchesQueue, c.Cosmos.LeaseContainer, c.Cosmos.Container}
	if file == theirs {
		named = named[:2]
	}
	for _, name := range named {
		if !slices.Contains(made, name) {
			m.wrong("%s: nobody makes %s", file, name)
		}
	}
}

func TestTheTemplatesMeanWhatTheAppNeeds(t *testing.T) { // also where Python is absent
	deployed, err := bicep.Deployed()
	require.NoError(t, err)
	require.Empty(t, problems(deployed))
}

// docs/settings.md asks for what is made.
func TestThePageAsksForWhatIsMade(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs/settings.md"))
	require.NoError(t, err)
	for _, row := range rows {
		require.Contains(t, string(page), row.words)
	}
	for _, role := range roles {
		require.Contains(t, string(page), role.words)
	}
}

// An instance opens as many connections to SQL Server as it writes batches at a time.
func TestConnectionsAreThoseThatTheHostCallsFor(t *testing.T) {
	var host struct {
		Extensions struct {
			ServiceBus struct{ MaxConcurrentCalls int }
		}
	}
	b, err := os.ReadFile(filepath.Join(repository, "host.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &host))
	values, err := bicep.Settings()
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(host.Extensions.ServiceBus.MaxConcurrentCalls), values[config.SQLMaxOpen])
}
