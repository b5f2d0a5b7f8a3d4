package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sqlwriter/internal/config"
	"sqlwriter/internal/ops"
)

// judged is what the settings say. No value of a setting is in its texts. Commands have names: those of the account of
// Cosmos DB, its database and containers, of the namespace and its queues. A name is no secret.
type judged struct {
	row, identity ops.DoctorRow
	// names are put in place of words in commands.
	names map[string]string
	// hide takes values out of a text; ours are those of the app.
	hide     func(text string, ours bool) string
	roles    []role
	insights config.Secret // the instrumentation key of Application Insights
}

// refusedSettings are those that Flex Consumption refuses.
var refusedSettings = regexp.MustCompile(
	`^(FUNCTIONS_(WORKER_RUNTIME|EXTENSION_VERSION)|WEBSITE_(RUN_FROM_PACKAGE|CONTENT\w+|TIME_ZONE)|SCM_DO_BUILD\w+)$`)

// reference is how the value of a setting begins that is in a Key Vault.
const reference = "@Microsoft."

// Settings of the host and the platform.
const (
	signInSetting     = "WEBSITE_AUTH_ENABLED"
	storageSetting    = "AzureWebJobsStorage"
	telemetry         = "APPLICATIONINSIGHTS_CONNECTION_STRING"
	telemetryIdentity = "APPLICATIONINSIGHTS_AUTHENTICATION_STRING"
)

func (d *doctor) settingsRow(context.Context) (ops.DoctorRow, error) {
	j, err := d.settings()
	return j.row, err
}

// judge reads the settings of the app. Their values stay here.
func (d *doctor) judge(ctx context.Context) (j judged, err error) {
	var of struct{ Properties map[string]string }
	if err := d.t.person.do(ctx, http.MethodPost, d.t.site.ID, "/config/appsettings/list"+webVersion,
		"Microsoft.Web/sites/config/list/action", nil, &of); err != nil {
		return j, err
	}
	values := map[string]string{} // an answer may have none
	maps.Copy(values, of.Properties)
	j.hide = hiding(values)
	var wrong []string
	flex := d.t.site.Properties.FunctionAppConfig != nil
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case (flex && refusedSettings.MatchString(name)) || name == signInSetting:
			wrong = append(wrong, name+": take it out: the platform sets or refuses it")
		case flex && name == storageSetting && values[name] != "" && values[name+"__accountName"] != "":
			wrong = append(wrong, name+": take it out: "+name+"__accountName is beside it, and needs no key")
		}
	}
	values["WEBSITE_SITE_NAME"] = d.t.site.Name // the platform sets it
	_, err = config.Load(func(name string) (string, bool) { value, set := values[name]; return value, set })
	problems, _ := errors.AsType[config.Problems](err)
	var references []string // the platform puts the value in its place
	for name, value := range values {
		if strings.HasPrefix(value, reference) {
			references = append(references, name)
		}
	}
	for _, p := range problems {
		between := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }
		names := strings.FieldsFunc(p.Setting+" "+p.Expected, between)
		of := func(name string) bool { return slices.Contains(names, name) }
		if !slices.ContainsFunc(references, of) {
			wrong = append(wrong, j.hide(p.String(), true))
		}
	}
	n := len(references)
	j.row = row(ops.RowOK, "", "%d settings, each of its form", len(of.Properties)-n)
	if n > 0 {
		j.row.Found += fmt.Sprintf("; %d refer to a Key Vault and were not judged", n)
	}
	if len(wrong) > 0 {
		j.row = row(ops.RowWrong, d.make, "%s", strings.Join(wrong, "; "))
	}
	j.insights = config.Secret(part(values[telemetry], "InstrumentationKey"))
	if strings.HasPrefix(values[telemetry], reference) {
		j.insights = reference
	}
	principals := d.principals()
	for _, r := range rolesOf(values, j.insights) {
		r.principal = principals[strings.ToLower(r.client)]
		of := r
		of.id = begun(func() (string, error) { return d.resource(ctx, r) })
		j.roles = append(j.roles, of)
	}
	j.identity = d.identities(values, j.roles, principals)
	j.names = map[string]string{"DATABASE": values[config.CosmosDatabase]}
	for _, name := range []string{
		config.CosmosContainer, config.LeaseContainer, config.RunsQueue, config.BatchesQueue,
	} {
		j.names[name] = values[name]
	}
	return j, nil
}

// rolesOf are the roles at what the settings connect to by identity.
func rolesOf(values map[string]string, insights config.Secret) []role {
	label := func(address string) config.Secret {
		if strings.HasPrefix(address, reference) {
			return reference
		}
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			address = u.Hostname()
		}
		name, _, _ := strings.Cut(address, ".")
		return config.Secret(name)
	}
	if values[telemetryIdentity] == "" {
		insights = ""
	}
	const evidence, blobs, stores = config.BlobServiceURI, "Storage Blob Data ", "Microsoft.Storage/storageAccounts"
	const owner = "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"
	storage := label(cmp.Or(values[storageSetting+"__accountName"], values[storageSetting+"__blobServiceUri"]))
	all := []role{
		{
			name: blobs + "Owner", definition: owner, kind: stores,
			setting: storageSetting, resource: storage, client: values[storageSetting+"__clientId"],
		},
		{
			name: blobs + "Contributor", definition: "ba92f5b4-2d11-453d-a403-e96b0029c9fe " + owner, kind: stores,
			setting: evidence, resource: label(values[evidence]), client: values[config.BlobClientID],
		},
		{
			name: "Azure Service Bus Data Owner", definition: "090c5cfd-751d-490a-894a-3ce6f1109419",
			kind: namespaces, setting: config.ServiceBusNamespace, resource: label(values[config.ServiceBusNamespace]),
			client: values[config.ServiceBusClientID],
		},
		{
			name: "Cosmos DB Built-in Data Contributor", definition: "00000000-0000-0000-0000-000000000002",
			kind: cosmosAccounts, setting: config.CosmosEndpoint, resource: label(values[config.CosmosEndpoint]),
			client: values[config.CosmosClientID], database: config.Secret(values[config.CosmosDatabase]),
		},
		{
			name: "Monitoring Metrics Publisher", definition: "3913510d-42f4-4e42-8a64-420c390055eb",
			kind: components, setting: telemetry, resource: insights,
			client: part(values[telemetryIdentity], "ClientId"),
		},
	}
	if all[1].resource == storage && all[1].client == all[0].client { // the owner's role has the other's rights
		all[1].resource = ""
	}
	return slices.DeleteFunc(all, func(r role) bool { return r.resource == "" })
}

// part is a part of a connection string.
func part(text, name string) string {
	parts, _ := url.ParseQuery(strings.ReplaceAll(text, ";", "&"))
	return parts.Get(name)
}

func (d *doctor) identity(context.Context) (ops.DoctorRow, error) {
	j, err := d.settings()
	return j.identity, err
}

// principals are those of the app's identities by client id; the app's own has none.
func (d *doctor) principals() map[string]string {
	principals := map[string]string{}
	if own := d.t.site.Identity.PrincipalID; own != "" {
		principals[""] = own
	}
	for _, one := range d.t.site.Identity.UserAssignedIdentities {
		principals[strings.ToLower(one.ClientID)] = one.PrincipalID
	}
	return principals
}

// identities compares the client ids of the settings with the identities of the app.
func (d *doctor) identities(values map[string]string, roles []role, principals map[string]string) ops.DoctorRow {
	clients, sql := map[string]string{}, false
	for name, value := range values {
		switch u, err := url.Parse(value); {
		case strings.HasSuffix(name, "__clientId") && value != "" && !strings.HasPrefix(value, reference):
			clients[name] = value
		case name == config.SQLConnection && err == nil && u.Query().Has("fedauth"):
			clients[name], sql = u.Query().Get("user id"), true
		}
	}
	for _, r := range roles {
		if name := r.setting; r.client == "" || r.kind == components { // without a client id it is the app's own
			clients[name] = r.client
		}
	}
	var foreign []string
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		if _, known := principals[strings.ToLower(clients[name])]; !known {
			foreign = append(foreign, name)
		}
	}
	keys := values[config.CosmosConnection] + values[config.ServiceBusConnection] + values[config.BlobConnection] +
		values[storageSetting]
	switch {
	case len(foreign) > 0:
		return row(ops.RowWrong, d.make, "%s %s an identity that the app does not have (it has %d)",
			strings.Join(foreign, ", "), ops.Plural(len(foreign), "needs", "need"), len(principals))
	case len(clients) == 0:
		return row(ops.RowOK, "", "the app connects by keys")
	case keys == "" && sql:
		return row(ops.RowOK, "", "the settings name an identity of the app, and no key")
	}
	return row(ops.RowOK, "", "the settings name an identity of the app")
}

// hiding makes what takes the values of settings, and the parts of connections, out of a text, the longest first.
// Shorter ones are words, such as dbo. The app's own texts have names at most, of documents and databases: a plain word
// there, such as sqlwriter, is ours and no value, unless it is long, or a password or key. Of a long key a part is one.
func hiding(values map[string]string) func(text string, ours bool) string {
	const shortest, ofOurs, long, part = 4, 6, 16, 12
	parts, between := regexp.MustCompile(`[;&?]`), regexp.MustCompile(`[@/:,]`)
	isSecret := regexp.MustCompile(`(?i)(key|password|pwd|signature|sig|secret|token)\s*$`)
	word, names, secret := regexp.MustCompile(`^[A-Za-z]+$`), map[string]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		take := func(isSecret bool, texts ...string) {
			for _, text := range texts {
				query, _ := url.QueryUnescape(text)
				path, _ := url.PathUnescape(text)
				forms := []string{text, query, path, strings.ToLower(text)}
				if isSecret && len(text) > long {
					for some := range slices.Chunk([]byte(text), part) {
						forms = append(forms, string(some))
					}
				}
				for _, text := range forms {
					if text = strings.TrimSpace(text); len(text) >= shortest {
						names[text], secret[text] = cmp.Or(names[text], name), secret[text] || isSecret
					}
				}
			}
		}
		_, rest, _ := strings.Cut(values[name], "://")
		authority, _, _ := strings.Cut(strings.ReplaceAll(rest, "?", "/"), "/")
		if at := strings.LastIndex(authority, "@"); at >= 0 {
			_, password, _ := strings.Cut(authority[:at], ":")
			take(true, password)
		}
		take(isSecret.MatchString(name), values[name])
		for _, piece := range parts.Split(cmp.Or(rest, values[name]), -1) {
			of, after, _ := strings.Cut(strings.TrimSpace(piece), "=")
			after = strings.TrimSpace(after)
			take(false, piece)
			take(false, between.Split(cmp.Or(after, piece), -1)...)
			take(isSecret.MatchString(of), after)
		}
	}
	var others, ours []string // what is replaced, and by what
	for _, text := range slices.SortedFunc(maps.Keys(names), func(x, y string) int { return len(y) - len(x) }) {
		pair := []string{text, "(" + names[text] + ")"}
		others = append(others, pair...)
		if secret[text] || len(text) >= long || len(text) >= ofOurs && !word.MatchString(text) {
			ours = append(ours, pair...)
		}
	}
	hide := map[bool]*strings.Replacer{true: strings.NewReplacer(ours...), false: strings.NewReplacer(others...)}
	return func(text string, ours bool) string { return hide[ours].Replace(text) }
}

// hide takes values of settings out of a text of the host, or of ours, the app's. Where the settings of an app in Azure
// were not seen, nobody knows what they are.
func (d *doctor) hide(text string, ours bool) string {
	if d.t.site == nil {
		return text
	}
	j, err := d.settings()
	switch {
	case err == nil:
		return j.hide(text, ours)
	case ours:
		return text
	}
	return "the host's words are not shown: they may have values of settings, which you may not read"
}
