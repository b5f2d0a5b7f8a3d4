package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"sqlwriter/internal/config"
	"sqlwriter/internal/neterr"
	"sqlwriter/internal/ops"
)

// What is younger is not yet in force, or not yet there (azure-dev issue 8026; docs/facts.md F107).
const rolesWithin, functionsWithin = 10 * time.Minute, 3 * time.Minute

// liveNotReady begins the row of a handler that runs and says why it does nothing.
const liveNotReady = "not ready"

// look asks the Resource Manager once. Without an answer it returns the row that says so.
func (d *doctor) look(ctx context.Context, method, scope, below, right string, answer any) (ops.DoctorRow, error) {
	ctx, cancel := context.WithTimeout(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), lookWithin)
	defer cancel()
	err := d.p.do(ctx, method, scope, below, right, nil, answer)
	if err == nil {
		return ops.DoctorRow{}, nil
	}
	return d.unlooked(err), err
}

// group is the resource group of a resource.
func group(id string) string {
	_, rest, _ := strings.Cut(strings.ToLower(id), "/resourcegroups/")
	n := len(id) - len(rest)
	name, _, _ := strings.Cut(id[n:], "/")
	return name
}

func (d *doctor) subscription() string { return strings.Split(d.s.ID+"///", "/")[2] }

// made is the command that makes the deployment again.
func (d *doctor) made() string { return "make azure GROUP=" + group(d.s.ID) }

func (d *doctor) site() ops.DoctorRow {
	of := d.s.Properties
	flex := of.FunctionAppConfig
	switch {
	case !strings.EqualFold(of.State, "Running"):
		return row(ops.RowWrong, "az functionapp start --ids "+d.s.ID, "the app is %s", of.State)
	case flex == nil:
		return row(ops.RowOK, "", "%s, not on Flex Consumption", d.s.Name)
	case flex.Runtime.Name != "custom":
		return row(ops.RowWrong, d.made(), "its runtime is %s %s, not custom", flex.Runtime.Name, flex.Runtime.Version)
	}
	return row(ops.RowOK, "", "%s, Flex Consumption, custom %s", d.s.Name, flex.Runtime.Version)
}

// judged is what the settings say. No value of a setting is in its texts.
type judged struct {
	row, identity ops.DoctorRow
	looked        bool
	// hide takes values out of a text of others.
	hide func(string) string
	// principal is that of the app's identity; empty where keys connect.
	principal string
	// Names of resources, to ask the Resource Manager for them.
	storage, namespace, account, database, instrumentation config.Secret
	// telemetryByIdentity says that Application Insights takes the identity too.
	telemetryByIdentity bool
}

// refusedSettings are those that Flex Consumption refuses.
var refusedSettings = regexp.MustCompile(
	`^(FUNCTIONS_(WORKER_RUNTIME|EXTENSION_VERSION)|WEBSITE_(RUN_FROM_PACKAGE|CONTENT\w+|TIME_ZONE)|SCM_DO_BUILD\w+)$`)

// Settings of the host and the platform.
const (
	signInSetting     = "WEBSITE_AUTH_ENABLED"
	telemetry         = "APPLICATIONINSIGHTS_CONNECTION_STRING"
	telemetryIdentity = "APPLICATIONINSIGHTS_AUTHENTICATION_STRING"
)

// judge reads the settings of the app. Their values stay here.
func (d *doctor) judge(ctx context.Context) (j judged) {
	var of struct{ Properties map[string]string }
	r, err := d.look(ctx, http.MethodPost, d.s.ID, "/config/appsettings/list"+webVersion,
		"Microsoft.Web/sites/config/list/action", &of)
	if err != nil {
		return judged{row: r, identity: row(ops.RowNotLooked, "", "the settings were not seen")}
	}
	values := of.Properties
	j.looked, j.hide = true, hiding(values)
	var wrong []string
	_, err = config.Load(func(name string) (string, bool) {
		if name == "WEBSITE_SITE_NAME" {
			return d.s.Name, true
		}
		value, set := values[name]
		return value, set
	})
	var problems config.Problems
	references := 0
	errors.As(err, &problems)
	for _, p := range problems {
		if strings.HasPrefix(values[p.Setting], "@Microsoft.") { // the platform puts the value in its place
			references++
			continue
		}
		wrong = append(wrong, j.hide(p.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if (d.s.Properties.FunctionAppConfig != nil && refusedSettings.MatchString(name)) || name == signInSetting {
			wrong = append(wrong, name+": to be taken out, the platform sets it or refuses it")
		}
	}
	j.row = row(ops.RowOK, "", "%d, each of its form", len(values))
	if references > 0 {
		j.row.Found += fmt.Sprintf("; %d refer to a Key Vault and were not judged", references)
	}
	if len(wrong) > 0 {
		j.row = row(ops.RowWrong, d.made(), "%s", strings.Join(wrong, "; "))
	}
	j.connections(values)
	j.identity = d.identity(values, &j)
	return j
}

// connections takes the names of the resources from the addresses.
func (j *judged) connections(values map[string]string) {
	label := func(address string) config.Secret {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			address = u.Hostname()
		}
		name, _, _ := strings.Cut(address, ".")
		return config.Secret(name)
	}
	j.storage = label(cmp.Or(values["AzureWebJobsStorage__accountName"], values["AzureWebJobsStorage__blobServiceUri"]))
	j.namespace = label(values[config.ServiceBusNamespace])
	j.account, j.database = label(values[config.CosmosEndpoint]), config.Secret(values[config.CosmosDatabase])
	j.telemetryByIdentity = values[telemetryIdentity] != ""
	j.instrumentation = config.Secret(part(values[telemetry], "InstrumentationKey"))
}

// part is a part of a connection string.
func part(text, name string) string {
	for one := range strings.SplitSeq(text, ";") {
		if key, value, _ := strings.Cut(one, "="); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// identity compares the client ids of the settings with the identities of the app.
func (d *doctor) identity(values map[string]string, j *judged) ops.DoctorRow {
	clients := map[string]string{telemetryIdentity: part(values[telemetryIdentity], "ClientId")}
	for _, name := range []string{
		"AzureWebJobsStorage__clientId", config.CosmosClientID, config.ServiceBusClientID, config.BlobClientID,
	} {
		clients[name] = values[name]
	}
	if u, err := url.Parse(values[config.SQLConnection]); err == nil && u.Query().Has("fedauth") {
		clients[config.SQLConnection] = u.Query().Get("user id")
	}
	j.principal = d.s.Identity.PrincipalID
	var foreign []string
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		if clients[name] == "" {
			continue
		}
		found := false
		for _, one := range d.s.Identity.UserAssignedIdentities {
			if strings.EqualFold(one.ClientID, clients[name]) {
				found, j.principal = true, one.PrincipalID
			}
		}
		if !found {
			foreign = append(foreign, name)
		}
	}
	byIdentity := j.storage + j.namespace + j.account
	keys := values[config.CosmosConnection] + values[config.ServiceBusConnection] + values[config.BlobConnection] +
		values["AzureWebJobsStorage"]
	switch {
	case len(foreign) > 0:
		return row(ops.RowWrong, d.made(), "%s: of an identity that the app does not have; it has %d",
			strings.Join(foreign, ", "), len(d.s.Identity.UserAssignedIdentities))
	case j.principal == "" && byIdentity != "":
		return row(ops.RowWrong, d.made(), "the settings connect by an identity, and the app has none")
	case byIdentity == "":
		return row(ops.RowOK, "", "keys connect")
	case keys == "" && clients[config.SQLConnection] != "":
		return row(ops.RowOK, "", "the settings name one that the app has, and no key")
	}
	return row(ops.RowOK, "", "the settings name one that the app has")
}

// hiding makes what takes the values of settings, and the parts of connections, out of a text. Shorter ones are words,
// such as live; up to a length a value is one only where it is not a part of a longer word.
func hiding(values map[string]string) func(string) string {
	const shortest, alone = 6, 16
	names := map[string]string{}
	for name, value := range values {
		_, rest, _ := strings.Cut(value, "://")
		for _, separators := range []string{"", ";&?", ";&?@/:,"} {
			separates := func(r rune) bool { return strings.ContainsRune(separators, r) }
			for _, piece := range append(strings.FieldsFunc(cmp.Or(rest, value), separates), value) {
				_, after, _ := strings.Cut(piece, "=")
				plain, _ := url.QueryUnescape(after)
				for _, text := range []string{piece, after, plain} {
					if len(text) >= shortest && (names[text] == "" || name < names[text]) {
						names[text] = name
					}
				}
			}
		}
	}
	texts := slices.SortedFunc(maps.Keys(names), func(x, y string) int { return len(y) - len(x) })
	if len(texts) == 0 {
		return strings.Clone
	}
	pattern := regexp.MustCompile(strings.Join(idsOf(texts, regexp.QuoteMeta), "|"))
	inWord := regexp.MustCompile(`^\w$`).MatchString
	return func(text string) string {
		var b strings.Builder
		end := 0
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			value := text[at[0]:at[1]]
			before, after := text[max(at[0]-1, 0):at[0]], text[at[1]:min(at[1]+1, len(text))]
			if len(value) < alone && (inWord(before) || inWord(after)) {
				continue
			}
			b.WriteString(text[end:at[0]] + "(" + names[value] + ")")
			end = at[1]
		}
		return b.String() + text[end:]
	}
}

// hide takes values of settings out of a text of the host or the app. Where the settings of an app in Azure were not
// seen, nobody knows what they are.
func (d *doctor) hide(text string) string {
	if d.s == nil {
		return text
	}
	j := d.settings()
	if !j.looked {
		return "its words are not shown, because the values in them could not be told: look at settings"
	}
	return j.hide(text)
}

// role is one that the identity needs.
type role struct {
	name, definition string
	// kind is the type of the resource, setting where its name comes from.
	kind, setting string
	resource      config.Secret
}

// roles looks for each role of the identity. What is missing comes first, then what nobody could see.
func (d *doctor) roles(ctx context.Context) ops.DoctorRow {
	j := d.settings()
	switch {
	case !j.looked:
		return row(ops.RowNotLooked, "", "the settings were not seen")
	case j.principal == "":
		if j.identity.State == ops.RowOK {
			return row(ops.RowOK, "", "keys connect")
		}
		return row(ops.RowNotLooked, "", "there is no identity to look for")
	}
	wanted := []role{
		{
			"Storage Blob Data Owner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", "Microsoft.Storage/storageAccounts",
			"AzureWebJobsStorage", j.storage,
		},
		{
			"Azure Service Bus Data Owner", "090c5cfd-751d-490a-894a-3ce6f1109419", "Microsoft.ServiceBus/namespaces",
			config.ServiceBusNamespace, j.namespace,
		},
		{"", "", "Microsoft.DocumentDB/databaseAccounts", config.CosmosEndpoint, j.account},
	}
	if j.telemetryByIdentity {
		wanted = append(wanted, role{
			"Monitoring Metrics Publisher", "3913510d-42f4-4e42-8a64-420c390055eb", components,
			telemetry, j.instrumentation,
		})
	}
	var given assignments
	unseen, err := d.look(ctx, http.MethodGet, "/subscriptions/"+d.subscription(),
		"/providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter="+
			url.PathEscape("principalId eq '"+j.principal+"'"), "Microsoft.Authorization/roleAssignments/read", &given)
	rows := make([]ops.DoctorRow, len(wanted))
	var all sync.WaitGroup
	for i, r := range wanted {
		switch {
		case r.resource == "":
			rows[i] = row(ops.RowOK, "", "")
		case err != nil && r.name != "":
			rows[i] = unseen
		default:
			all.Go(func() { rows[i] = d.role(ctx, r, j, given) })
		}
	}
	all.Wait()
	var names []string
	for _, state := range []string{ops.RowWrong, ops.RowNotLooked, ops.RowNotYet} {
		var found []string
		var first ops.DoctorRow
		for _, r := range rows {
			if r.State == state && !slices.Contains(found, r.Found) {
				first.Do = cmp.Or(first.Do, r.Do)
				found = append(found, r.Found)
			}
		}
		if len(found) > 0 {
			return row(state, first.Do, "%s", strings.Join(found, "; "))
		}
	}
	for _, r := range rows {
		if r.Found != "" {
			names = append(names, r.Found)
		}
	}
	return row(ops.RowOK, "", "%s", strings.Join(names, ", "))
}

// assignments are those of roles, of the Resource Manager or of an account of Cosmos DB.
type assignments struct {
	Value []struct {
		Properties struct {
			RoleDefinitionID, PrincipalID, Scope string
			CreatedOn                            time.Time
		}
	}
}

// covers reports whether a role is given at a resource or above it, and when.
func (a assignments) covers(definition, principal, id string) (given bool, at time.Time) {
	for _, one := range a.Value {
		p := one.Properties
		if strings.HasSuffix(strings.ToLower(p.RoleDefinitionID), "/"+definition) &&
			strings.EqualFold(p.PrincipalID, principal) &&
			strings.HasPrefix(strings.ToLower(id)+"/", strings.TrimRight(strings.ToLower(p.Scope), "/")+"/") {
			return true, p.CreatedOn
		}
	}
	return false, at
}

func (d *doctor) role(ctx context.Context, r role, j judged, given assignments) ops.DoctorRow {
	id, unseen := d.resource(ctx, r)
	if id == "" {
		return unseen
	}
	if r.name == "" {
		return d.cosmosRole(ctx, id, j)
	}
	has, at := given.covers(r.definition, j.principal, id)
	switch young := d.a.now().Sub(at); {
	case !has:
		return row(ops.RowWrong, fmt.Sprintf(
			"az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal --role %q --scope %s",
			j.principal, r.name, id), "the identity lacks %s at %s", r.name, path.Base(id))
	case young < rolesWithin:
		return row(ops.RowNotYet, "", "%s was given %s ago, and may take 10 minutes", r.name, young.Round(time.Second))
	}
	return row(ops.RowOK, "", "%s", r.name)
}

// cosmosRole looks for the role of the data plane, which an account of Cosmos DB gives by itself. It has no time.
func (d *doctor) cosmosRole(ctx context.Context, account string, j judged) ops.DoctorRow {
	const name, definition = "Cosmos DB Built-in Data Contributor", "00000000-0000-0000-0000-000000000002"
	var given assignments
	if unseen, err := d.look(ctx, http.MethodGet, account, "/sqlRoleAssignments?api-version=2024-11-15",
		"Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments/read", &given); err != nil {
		return unseen
	}
	if has, _ := given.covers(definition, j.principal, account+"/dbs/"+j.database.Reveal()); !has {
		return row(ops.RowWrong, d.made(), "the identity lacks %s at the database of %s", name, path.Base(account))
	}
	return row(ops.RowOK, "", "%s", name)
}

// resource finds the id of a resource by its name; without one it returns the row that says so.
func (d *doctor) resource(ctx context.Context, r role) (id string, unseen ops.DoctorRow) {
	if r.kind == components {
		c := d.component()
		return c.id, c.row
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	ids, err := d.p.resources(ctx, d.subscription(), r.kind, r.resource.Reveal())
	switch {
	case err != nil:
		return "", d.unlooked(err)
	case len(ids) == 0:
		return "", unnamed(r.kind, r.setting)
	}
	return ids[0], unseen
}

const components = "Microsoft.Insights/components"

// component is the resource of Application Insights; row says why there is none.
type component struct {
	id  string
	row ops.DoctorRow
}

func (d *doctor) findComponent(ctx context.Context) component {
	j := d.settings()
	switch {
	case !j.looked:
		return component{row: row(ops.RowNotLooked, "", "the settings were not seen")}
	case j.instrumentation == "":
		return component{row: row(ops.RowWrong, d.made(), "%s has no InstrumentationKey", telemetry)}
	}
	var of struct {
		Value []struct {
			ID         string
			Properties struct{ InstrumentationKey string }
		}
	}
	unseen, err := d.look(ctx, http.MethodGet, "/subscriptions/"+d.subscription(),
		"/providers/"+components+"?api-version=2020-02-02", components+"/read", &of)
	if err != nil {
		return component{row: unseen}
	}
	for _, one := range of.Value {
		if strings.EqualFold(one.Properties.InstrumentationKey, j.instrumentation.Reveal()) {
			return component{id: one.ID}
		}
	}
	return component{row: unnamed(components, telemetry)}
}

// unnamed is the row where a person sees no resource that a setting names.
func unnamed(kind, setting string) ops.DoctorRow {
	return row(ops.RowNotLooked, "az resource list -o table --resource-type "+kind,
		"you see no resource in the app's subscription that %s names: the right is %s/read", setting, kind)
}

// publishedAt is when the package was published.
type publishedAt struct {
	row ops.DoctorRow
	at  time.Time
}

// young reports whether the package is younger.
func (d *doctor) young(within time.Duration) bool { return d.a.now().Sub(d.published().at) < within }

func (d *doctor) packaged(ctx context.Context) (p publishedAt) {
	var of struct {
		Value []struct {
			Properties struct {
				Status  int
				Active  bool
				EndTime time.Time `json:"end_time"`
			}
		}
	}
	unseen, err := d.look(ctx, http.MethodGet, d.s.ID, "/deployments"+webVersion,
		"Microsoft.Web/sites/deployments/read", &of)
	if err != nil {
		return publishedAt{row: unseen}
	}
	const succeeded = 4 // of Kudu
	for _, one := range of.Value {
		if one.Properties.Status == succeeded && one.Properties.EndTime.After(p.at) {
			p.at = one.Properties.EndTime
		}
	}
	if p.at.IsZero() {
		p.row = row(ops.RowWrong, d.again(publish), "nothing was published: %d deployments, none that succeeded",
			len(of.Value))
	} else {
		p.row = row(ops.RowOK, "", "published %s", d.a.time(p.at))
	}
	return p
}

// host asks for the host's own state: the only place that says why it does not start the handler.
func (d *doctor) host(ctx context.Context) ops.DoctorRow {
	var of struct {
		Properties struct {
			State, Version string
			Errors         []string
		}
	}
	unseen, err := d.look(ctx, http.MethodGet, d.s.ID, "/host/default/properties/status?api-version=2025-05-01",
		"Microsoft.Web/sites/host/properties/read", &of)
	var refused *refusedError
	silent := errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &refused) &&
		(refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusRequestTimeout))
	restart := "az functionapp restart --ids " + d.s.ID
	said := of.Properties
	switch {
	case silent && d.young(rolesWithin):
		return row(ops.RowNotYet, "", "the host does not answer yet")
	case silent:
		return row(ops.RowWrong, restart, "the host does not answer")
	case err != nil:
		return unseen
	case len(said.Errors) > 0 || said.State == "Error":
		return row(ops.RowWrong, restart, "the host is %s: %s", said.State, d.hide(strings.Join(said.Errors, "; ")))
	case said.State != "Running" && d.young(rolesWithin):
		return row(ops.RowNotYet, "", "the host is %s", said.State)
	case said.State != "Running":
		return row(ops.RowWrong, restart, "the host is %s", said.State)
	}
	return row(ops.RowOK, "", "%s, %s", said.State, said.Version)
}

// theFunctions are the folders of functions/.
func theFunctions() []string {
	return []string{
		"BatchDeadLetter", "BatchManager", "BatchWorker", "CommitResults", "Health", "Ops", "RecoverRetries",
		"RunDeadLetter", "Ui",
	}
}

// functions compares the host's list with ours. The host leaves out a function that it cannot load, and goes on with
// the others (docs/facts.md F35); one with a missing setting is on the list, with an error (F107).
func (d *doctor) functions(ctx context.Context) ops.DoctorRow {
	var of struct {
		Value []struct {
			Name       string
			Properties struct{ IsDisabled bool }
		}
	}
	unseen, err := d.look(ctx, http.MethodGet, d.s.ID, "/functions"+webVersion,
		"Microsoft.Web/sites/functions/read", &of)
	if err != nil {
		return unseen
	}
	var wrong []string
	missing := theFunctions()
	for _, one := range of.Value {
		name := path.Base(one.Name)
		missing = slices.DeleteFunc(missing, func(want string) bool { return want == name })
		if one.Properties.IsDisabled {
			wrong = append(wrong, name+" is disabled")
		}
	}
	switch {
	case len(missing) > 0 && d.young(functionsWithin):
		return row(ops.RowNotYet, "", "not listed yet: %s", strings.Join(missing, ", "))
	case len(missing) > 0:
		return row(ops.RowWrong, d.again(publish), "the host left out %s: its log says why (event 402 of Host.Startup)",
			strings.Join(missing, ", "))
	}
	said, unseen := d.functionErrors(ctx)
	wrong = append(wrong, said...)
	switch {
	case len(wrong) > 0:
		return row(ops.RowWrong, d.made(), "%s", strings.Join(wrong, "; "))
	case unseen.State != "":
		unseen.Found = "all are listed, and their errors were not looked at: " + unseen.Found
		return unseen
	}
	return row(ops.RowOK, "", "all %d, none with an error", len(theFunctions()))
}

// functionErrors asks for the errors of each function.
func (d *doctor) functionErrors(ctx context.Context) (wrong []string, unseen ops.DoctorRow) {
	var lock sync.Mutex
	var all sync.WaitGroup
	for _, name := range theFunctions() {
		all.Go(func() {
			var of struct{ Errors []string }
			below := "/hostruntime/admin/functions/" + name + "/status?api-version=2022-03-01"
			r, err := d.look(ctx, http.MethodGet, d.s.ID, below, "Microsoft.Web/sites/hostruntime/functions/read", &of)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				unseen = r
			}
			for _, text := range of.Errors {
				wrong = append(wrong, name+": "+d.hide(text))
			}
		})
	}
	all.Wait()
	slices.Sort(wrong)
	return wrong, unseen
}

// health is what wakes a cold app. It has no key.
func (d *doctor) health(ctx context.Context) ops.DoctorRow {
	if d.t.address == "" {
		return d.unseen
	}
	address := strings.TrimSuffix(d.t.address, "/") + "/api/health"
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return row(ops.RowWrong, "curl -fsS "+address, "it is no address")
	}
	response, err := d.a.http.Do(request)
	if err != nil {
		if neterr.IsTimeout(err) {
			return row(ops.RowNotYet, "curl -fsS "+address, "no answer within %s", healthWithin)
		}
		return row(ops.RowWrong, "curl -fsS "+address, "%s", whyLost(err))
	}
	defer func() { _ = response.Body.Close() }()
	const most = 1 << 20
	var of struct {
		Status, Version string
		Problems        []string
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, most))
	told := json.Unmarshal(text, &of) == nil && of.Status != ""
	switch {
	case told && response.StatusCode == http.StatusOK:
		return row(ops.RowOK, "", "%s, %s", of.Status, of.Version)
	case told:
		return row(ops.RowWrong, cmp.Or(d.again("sqlwriterctl status --check --app %s"), "sqlwriterctl status --check"),
			"%s, %s: %s", liveNotReady, of.Version, d.hide(strings.Join(of.Problems, "; ")))
	case response.StatusCode >= http.StatusInternalServerError:
		return row(ops.RowNotYet, "curl -sS "+address, "%d without a report: it wakes, or starts no handler",
			response.StatusCode)
	}
	return row(ops.RowWrong, cmp.Or(d.again(publish), "curl -sS "+address), "it answers %d",
		response.StatusCode)
}

// alwaysReady wants an instance of the feed's function: with an identity the plan may not see that changes wait.
func (d *doctor) alwaysReady() ops.DoctorRow {
	flex := d.s.Properties.FunctionAppConfig
	if flex == nil {
		return row(ops.RowOK, "", "not on Flex Consumption")
	}
	scale := flex.ScaleAndConcurrency
	for _, one := range scale.AlwaysReady {
		if strings.EqualFold(one.Name, "function:CommitResults") && one.InstanceCount > 0 {
			return row(ops.RowOK, "", "%d of CommitResults; at most %d instances of %d MB", one.InstanceCount,
				scale.MaximumInstanceCount, scale.InstanceMemoryMB)
		}
	}
	set := "az functionapp scale config always-ready set -g %s -n %s --settings function:CommitResults=1"
	return row(ops.RowWrong, fmt.Sprintf(set, group(d.s.ID), d.s.Name),
		"no instance of CommitResults: with an identity the plan may not wake it")
}

// telemetry counts what the app told within 15 minutes.
func (d *doctor) telemetry(ctx context.Context) ops.DoctorRow {
	c := d.component()
	if c.id == "" {
		return c.row
	}
	const within = 15 * time.Minute
	now := d.a.now().UTC()
	var of struct {
		Value []struct {
			Timeseries []struct{ Data []struct{ Count float64 } }
		}
	}
	query := url.Values{
		"api-version": {"2018-01-01"}, "metricnames": {"traces/count"}, "aggregation": {"count"}, "interval": {"PT15M"},
		"timespan": {now.Add(-within).Format(time.RFC3339) + "/" + now.Format(time.RFC3339)},
	}
	if unseen, err := d.look(ctx, http.MethodGet, c.id, "/providers/Microsoft.Insights/metrics?"+query.Encode(),
		"Microsoft.Insights/metrics/read", &of); err != nil {
		return unseen
	}
	traces := 0.0
	for _, metric := range of.Value {
		for _, series := range metric.Timeseries {
			for _, one := range series.Data {
				traces += one.Count
			}
		}
	}
	switch {
	case traces > 0:
		return row(ops.RowOK, "", "%.0f traces in the last 15 minutes", traces)
	case d.young(within):
		return row(ops.RowNotYet, "", "no trace yet: the package is younger than 15 minutes")
	}
	return row(ops.RowWrong, "az monitor metrics list --metrics traces/count --aggregation count --offset 15m --resource "+c.id,
		"no trace in the last 15 minutes")
}
