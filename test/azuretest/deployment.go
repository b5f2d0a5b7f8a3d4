package azuretest

import (
	"fmt"
	"strings"
	"time"
)

// Deployment is what the Resource Manager says of an environment as deploy/azure makes it. The forms of the answers are
// the vendor's: examples of github.com/Azure/azure-rest-api-specs, file and commit beside each. Invented are the
// answers without one, which follow the source beside them, and all values.
type Deployment struct {
	Subscription, Group, Site, Host string
	// Client and Principal are the identity's.
	Client, Principal string
	// Given is when the roles were, Published when the package was.
	Given, Published time.Time
	Functions        []string
}

func (d Deployment) id(kind, name string) string {
	return "/subscriptions/" + d.Subscription + "/resourceGroups/" + d.Group + "/providers/" + kind + "/" + name
}

// SiteID is the site's.
func (d Deployment) SiteID() string { return d.id("Microsoft.Web/sites", d.Site) }

// Resources are the ids of the others that an app connects to.
func (d Deployment) Resources() []string {
	return []string{
		d.id("Microsoft.Storage/storageAccounts", "stx"), d.id("Microsoft.ServiceBus/namespaces", "sb-x"),
		d.id("Microsoft.DocumentDB/databaseAccounts", "cosmos-x"),
	}
}

const instrumentationKey = "dc5931c7-a7ad-4ad0-89d6-123456789abc"

// Settings are those of deploy/azure/main.bicep.
func (d Deployment) Settings() map[string]string {
	return map[string]string{
		"SYS_NAME": "web", "LEASE_PREFIX": "web-", "MODE": "live",
		"AzureWebJobsStorage__accountName": "stx", "AzureWebJobsStorage__credential": "managedidentity",
		"AzureWebJobsStorage__clientId":      d.Client,
		"COSMOS_CONNECTION__accountEndpoint": "https://cosmos-x.documents.azure.com:443/",
		"COSMOS_CONNECTION__credential":      "managedidentity", "COSMOS_CONNECTION__clientId": d.Client,
		"COSMOS_DATABASE": "invoices", "COSMOS_CONTAINER": "AI_PROCESS_LOGS", "LEASE_CONTAINER": "sqlwriter-leases",
		"SQL_CONNECTION": "sqlserver://sql-x.database.windows.net?database=sqlwriter&fedauth=ActiveDirectoryManagedIdentity&user+id=" +
			d.Client,
		"SQL_SCHEMA": "dbo", "SQL_MAX_OPEN": "4",
		"SERVICEBUS_CONNECTION__fullyQualifiedNamespace": "sb-x.servicebus.windows.net",
		"SERVICEBUS_CONNECTION__credential":              "managedidentity",
		"SERVICEBUS_CONNECTION__clientId":                d.Client,
		"RUNS_QUEUE":                                     "sqlwriter-web-runs",
		"BATCHES_QUEUE":                                  "sqlwriter-web-batches",
		"APPLICATIONINSIGHTS_CONNECTION_STRING":          "InstrumentationKey=" + instrumentationKey,
		"APPLICATIONINSIGHTS_AUTHENTICATION_STRING":      "ClientId=" + d.Client + ";Authorization=AAD",
	}
}

// SettingsOf is the answer that has settings.
// specification/web/resource-manager/Microsoft.Web/stable/2024-11-01/examples/ListAppSettings.json
// 0076e3ee1b26bf1caae59ce57b88262e5540111f.
func (d Deployment) SettingsOf(settings map[string]string) Answer {
	pairs := make([]string, 0, len(settings))
	for name, value := range settings {
		pairs = append(pairs, fmt.Sprintf("%q: %q", name, value))
	}
	return Answer{Version: webVersion, Right: "Microsoft.Web/sites/config/list/action", Body: `{"id": "` + d.SiteID() +
		`/config/appsettings", "name": "appsettings", "type": "Microsoft.Web/sites/config", "kind": "app", "properties": {` +
		strings.Join(pairs, ", ") + `}}`}
}

// Identity is the site's; it is in the schema of the site, and not in its example.
func (d Deployment) Identity() string {
	return fmt.Sprintf(`"identity": {"type": "UserAssigned", "userAssignedIdentities": {"%s": {"clientId": "%s", "principalId": "%s"}}}`,
		d.id("Microsoft.ManagedIdentity/userAssignedIdentities", d.Site), d.Client, d.Principal)
}

const webVersion, hostVersion = "2024-11-01", "2025-05-01"

// Answers are those of an environment in which all is well.
func (d Deployment) Answers() map[string]Answer {
	subscription := "/subscriptions/" + d.Subscription
	component := d.id("Microsoft.Insights/components", "appi-x")
	answers := map[string]Answer{
		// specification/web/resource-manager/Microsoft.Web/stable/2024-11-01/examples/
		// CreateOrUpdateFunctionAppFlexConsumptionWithDetails.json 0076e3ee1b26bf1caae59ce57b88262e5540111f
		"GET ": {Version: webVersion, Right: "Microsoft.Web/sites/read", Body: fmt.Sprintf(
			`{"id": "%s", "name": "%s", "type": "Microsoft.Web/sites", "location": "East US", %s,
			"properties": {"state": "Running", "hostNames": ["%s"], "enabled": true, "availabilityState": "Normal",
			"lastModifiedTimeUtc": "2024-01-09T00:24:54.8", "functionAppConfig": {"deployment": {"storage": {
			"type": "blobContainer", "value": "https://stx.blob.core.windows.net/package"}},
			"runtime": {"name": "custom", "version": "1.0"},
			"scaleAndConcurrency": {"alwaysReady": [{"name": "function:CommitResults", "instanceCount": 1}],
			"maximumInstanceCount": 40, "instanceMemoryMB": 2048}}, "defaultHostName": "%s"}}`,
			d.SiteID(), d.Site, d.Identity(), d.Host, d.Host)},
		"POST /config/appsettings/list": d.SettingsOf(d.Settings()),
		// invented, after DeploymentProperties of azure-mgmt-web 11.0.0; 4 is Kudu's success
		"GET /deployments": {Version: webVersion, Right: "Microsoft.Web/sites/deployments/read", Body: fmt.Sprintf(
			`{"value": [{"id": "%[1]s/deployments/1", "name": "1", "type": "Microsoft.Web/sites/deployments",
			"properties": {"status": 4, "active": true, "start_time": "%[2]s", "end_time": "%[2]s"}}]}`,
			d.SiteID(), d.Published.Format(time.RFC3339))},
		// invented, after HostStatus of github.com/Azure/azure-functions-ux and hashicorp/terraform-provider-azurerm
		"GET /host/default/properties/status": {
			Version: hostVersion, Right: "Microsoft.Web/sites/host/properties/read",
			Body: `{"properties": {"id": "x", "state": "Running", "version": "4.1037.0.0", "processUptime": 60000}}`,
		},
		"GET /functions": d.FunctionsOf(d.Functions...),
		// specification/cosmos-db/resource-manager/Microsoft.DocumentDB/stable/2024-11-15/examples/
		// CosmosDBSqlRoleAssignmentList.json 2da03363f6049cbdb94e5b6aa1014266609525f7
		"GET " + d.Resources()[2] + "/sqlRoleAssignments": {
			Version: "2024-11-15", Right: "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments/read", Body: fmt.Sprintf(
				`{"value": [{"id": "%[1]s/sqlRoleAssignments/myRoleAssignmentId", "name": "myRoleAssignmentId",
				"type": "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments", "properties": {
				"roleDefinitionId": "%[1]s/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002",
				"scope": "%[1]s/dbs/invoices", "principalId": "%[2]s"}}]}`, d.Resources()[2], d.Principal),
		},
		// specification/applicationinsights/resource-manager/Microsoft.Insights/stable/2020-02-02/examples/
		// ComponentsList.json 65ee5e20b40a1cdce2af21ef7605ee4de10dd78f
		"GET " + subscription + "/providers/Microsoft.Insights/components": {
			Version: "2020-02-02", Right: "Microsoft.Insights/components/read", Body: fmt.Sprintf(
				`{"value": [{"id": "%s", "name": "appi-x", "type": "Microsoft.Insights/components", "kind": "web",
				"properties": {"ApplicationId": "appi-x", "InstrumentationKey": "%[2]s",
				"ConnectionString": "InstrumentationKey=%[2]s", "IngestionMode": "LogAnalytics"}}], "nextLink": null}`,
				component, instrumentationKey),
		},
		"GET " + component + "/providers/Microsoft.Insights/metrics": d.Traces(12),
	}
	for at, definition := range map[string]string{
		d.Resources()[0]: "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
		d.Resources()[1]: "090c5cfd-751d-490a-894a-3ce6f1109419",
		component:        "3913510d-42f4-4e42-8a64-420c390055eb",
	} {
		answers["GET "+at+RolesOf] = d.Roles(definition+" "+at, "4d97b98b-1d4f-4787-a291-c67834d212e7 "+at)
	}
	for _, name := range d.Functions {
		answers["GET /hostruntime/admin/functions/"+name+"/status"] = d.ErrorsOf()
	}
	return answers
}

// RolesOf is the path of a resource's roles below its id.
const RolesOf = "/providers/Microsoft.Authorization/roleAssignments"

// Roles is the answer that has these assignments: a definition, a blank and a scope.
// specification/authorization/resource-manager/Microsoft.Authorization/stable/2022-04-01/examples/
// RoleAssignments_ListForScope.json 4a84214385428e125ba8e5b439b8bc5876531321, createdOn and the filter of
// github.com/MicrosoftDocs/azure-docs articles/role-based-access-control/role-assignments-list-rest
// 0088bfa77543e07f8a41771de8db977ddfc62e1d.
func (d Deployment) Roles(given ...string) Answer {
	all := make([]string, 0, len(given))
	for _, one := range given {
		definition, scope, _ := strings.Cut(one, " ")
		all = append(all, fmt.Sprintf(`{"properties": {"roleDefinitionId": "/providers/Microsoft.Authorization/roleDefinitions/%s",
			"principalId": "%s", "principalType": "ServicePrincipal", "scope": "%s", "createdOn": "%s"},
			"type": "Microsoft.Authorization/roleAssignments", "name": "b0f43c54-e787-4862-89b1-a653fa9cf747"}`,
			definition, d.Principal, scope, d.Given.Format(time.RFC3339Nano)))
	}
	return Answer{
		Version: "2022-04-01", Right: "Microsoft.Authorization/roleAssignments/read",
		Filter: "atScope() and assignedTo('" + d.Principal + "')",
		Body:   `{"value": [` + strings.Join(all, ",") + `]}`,
	}
}

// FunctionsOf is the answer that lists functions; invented, after FunctionEnvelope of azure-mgmt-web 11.0.0.
func (d Deployment) FunctionsOf(names ...string) Answer {
	all := make([]string, 0, len(names))
	for _, name := range names {
		name, disabled, _ := strings.Cut(name, " ")
		all = append(all, fmt.Sprintf(`{"id": "%[1]s/functions/%[2]s", "name": "%[3]s/%[2]s",
			"type": "Microsoft.Web/sites/functions", "properties": {"name": "%[2]s", "isDisabled": %[4]t}}`,
			d.SiteID(), name, d.Site, disabled != ""))
	}
	return Answer{
		Version: webVersion, Right: "Microsoft.Web/sites/functions/read",
		Body: `{"value": [` + strings.Join(all, ",") + `]}`,
	}
}

// ErrorsOf is the host's status of a function; invented, after FunctionStatus of the host (docs/facts.md F107).
func (d Deployment) ErrorsOf(texts ...string) Answer {
	body := "{}"
	if len(texts) > 0 {
		body = fmt.Sprintf(`{"errors": [%q]}`, texts[0])
	}
	return Answer{Version: "2022-03-01", Right: "Microsoft.Web/sites/hostruntime/functions/read", Body: body}
}

// Traces is the answer of the metric.
// specification/monitor/resource-manager/Microsoft.Insights/stable/2018-01-01/examples/GetMetric.json
// 2275c3ea2ef498411fb4a613b8ec6d4085d7d99e.
func (d Deployment) Traces(count int) Answer {
	return Answer{Version: "2018-01-01", Right: "Microsoft.Insights/metrics/read", Body: fmt.Sprintf(
		`{"cost": 0, "timespan": "2017-04-14T02:20:00Z/2017-04-14T04:20:00Z", "interval": "PT15M",
		"namespace": "microsoft.insights/components", "value": [{"type": "Microsoft.Insights/metrics",
		"name": {"value": "traces/count", "localizedValue": "Traces"}, "unit": "Count",
		"timeseries": [{"metadatavalues": [], "data": [{"timeStamp": "2017-04-14T02:20:00Z", "count": %d.0}]}]}]}`, count)}
}
