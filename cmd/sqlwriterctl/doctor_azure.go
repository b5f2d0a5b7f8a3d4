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
	"time"

	"sqlwriter/internal/config"
	"sqlwriter/internal/neterr"
	"sqlwriter/internal/ops"
)

// What is younger is not yet in force, or not yet there (azure-dev issue 8026; docs/facts.md F107).
const rolesWithin, functionsWithin = 10 * time.Minute, 3 * time.Minute

func (d *doctor) site(context.Context) (ops.DoctorRow, error) {
	of := d.t.site.Properties
	flex := of.FunctionAppConfig
	switch {
	case !strings.EqualFold(of.State, "Running"):
		return row(ops.RowWrong, "az functionapp start --ids "+d.t.site.ID, "the app is %s", of.State), nil
	case flex == nil:
		return row(ops.RowOK, "", "%s, not on Flex Consumption", d.t.site.Name), nil
	case flex.Runtime.Name != "custom":
		return row(ops.RowWrong, d.make, "its runtime is %s, not custom", flex.Runtime.Name), nil
	}
	return row(ops.RowOK, "", "%s, Flex Consumption, runtime custom %s", d.t.site.Name, flex.Runtime.Version), nil
}

// role is one that an identity of the app needs, of a resource of a kind that a setting names; database is of Cosmos
// DB, which gives roles of its own. definition has the id of each that does. client is what names the identity; its
// principal is empty where the app has none such.
type role struct {
	name, definition, kind, setting, client, principal string
	resource, database                                 config.Secret
	// id finds the resource.
	id func() (string, error)
}

// giveCosmos is the command of the owner of an account.
const giveCosmos = "az cosmosdb sql role assignment create -g GROUP -a ACCOUNT " +
	"--role-definition-id 00000000-0000-0000-0000-000000000002 --scope /dbs/DATABASE --principal-id OBJECT_ID"

// The kinds of resources of which more than a role is looked at.
const (
	cosmosAccounts = "Microsoft.DocumentDB/databaseAccounts"
	namespaces     = "Microsoft.ServiceBus/namespaces"
	components     = "Microsoft.Insights/components"
)

// joined is what was found of the same row.
func joined(all []ops.DoctorRow) ops.DoctorRow {
	r := ops.DoctorRow{State: ops.RowOK}
	for _, one := range all {
		r.Add(one)
	}
	return r
}

// roles looks for each role of the identity.
func (d *doctor) roles(ctx context.Context) (ops.DoctorRow, error) {
	j, err := d.settings()
	switch {
	case err != nil:
		return j.row, err
	case len(j.roles) == 0:
		return row(ops.RowOK, "", "the app connects by keys"), nil
	}
	return joined(each(j.roles, func(r role) ops.DoctorRow { return d.seen(d.role(ctx, r)) })), nil
}

// role looks for a role at a resource or above it, of the identity or of a group with it. Cosmos DB gives roles by
// itself, without a time, and does not say who is in a group.
func (d *doctor) role(ctx context.Context, r role) (ops.DoctorRow, error) {
	switch {
	case strings.HasPrefix(r.client, reference):
		return row(ops.RowNotLooked, "", "%s needs an identity that is in a Key Vault: it was not judged", r.setting), nil
	case r.principal == "":
		return row(ops.RowNotLooked, "", "%s needs an identity that the app does not have", r.setting), nil
	}
	id, err := r.id()
	if err != nil {
		return ops.DoctorRow{}, err
	}
	below, right := "/providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter="+
		url.PathEscape("atScope() and assignedTo('"+r.principal+"')"), "Microsoft.Authorization/roleAssignments/read"
	if r.kind == cosmosAccounts {
		below, right = "/sqlRoleAssignments?api-version=2024-11-15", r.kind+"/sqlRoleAssignments/read"
	}
	given, err := d.t.person.get(ctx, id, below, right)
	database := strings.ToLower(id + "/dbs/" + r.database.Reveal() + "/")
	young, others := time.Duration(-1), 0
	for _, one := range given.Value {
		of := one.Properties
		covers := strings.HasPrefix(database, strings.ToLower(strings.TrimRight(of.Scope, "/")+"/"))
		switch own := strings.EqualFold(of.PrincipalID, r.principal); {
		case !strings.Contains(r.definition, path.Base(strings.ToLower(of.RoleDefinitionID))):
		case r.kind != cosmosAccounts || (own && covers):
			young = max(young, 0, d.a.now().Sub(of.CreatedOn)) // whose clock may be ahead
		case covers:
			others++
		}
	}
	at := path.Base(id)
	switch {
	case err != nil:
		return ops.DoctorRow{}, err
	case young >= rolesWithin:
		return row(ops.RowOK, "", "%s", r.name), nil
	case young >= 0:
		young = young.Round(time.Second)
		return row(ops.RowNotYet, lookAgainLater, "%s was given %s ago: it may take 10 minutes", r.name, young), nil
	case r.kind == cosmosAccounts:
		return d.lacks(r, id, others), nil
	}
	const give = "az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal --role %q --scope %s"
	return row(ops.RowWrong, fmt.Sprintf(give, r.principal, r.name, id), "the identity lacks %s at %s", r.name, at), nil
}

// lacks is the row of a role of Cosmos DB that was not found. In the app's own group the template gives it.
func (d *doctor) lacks(r role, id string, others int) ops.DoctorRow {
	at := "at the database " + d.filled(ops.DoctorRow{Name: ops.DepCosmos, Do: "DATABASE"}) + " of " + path.Base(id)
	do, also := d.make, ". make azure gives it at the template's database, and sets all settings as the template has them"
	if group := strings.Split(id+"////", "/")[4]; !strings.EqualFold(group, d.group) {
		do, also = d.filled(ops.DoctorRow{Name: ops.DepCosmos, Do: giveCosmos}), ""
	}
	if others > 0 {
		return row(ops.RowNotLooked, do, "the identity itself lacks %s %s. Others have it (%d): whether one of them is a group with the identity is not seen%s",
			r.name, at, others, also)
	}
	return row(ops.RowWrong, do, "the identity lacks %s %s%s", r.name, at, also)
}

// resource finds the id of the resource that a setting names.
func (d *doctor) resource(ctx context.Context, r role) (id string, err error) {
	var ids []string
	if r.resource == reference {
		return "", &ownError{fmt.Errorf("%s refers to a Key Vault: what it names was not judged", r.setting)}
	}
	if r.kind != components {
		ids, err = d.t.person.resources(ctx, d.subscription, r.kind, r.resource.Reveal())
	} else {
		var of armAnswer
		of, err = d.t.person.get(ctx, "/subscriptions/"+d.subscription,
			"/providers/"+components+"?api-version=2020-02-02", components+"/read")
		for _, one := range of.Value {
			if strings.EqualFold(one.Properties.InstrumentationKey, r.resource.Reveal()) {
				ids = append(ids, one.ID)
			}
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", advised(&ownError{fmt.Errorf(
			"you see no resource in the app's subscription that %s names: the right is %s/read", r.setting, r.kind)},
			"`az resource list -o table --resource-type %s`", r.kind)
	}
	return ids[0], nil
}

// filled puts the names that this tool knows in place of the words in capitals of a command of the app. A word stays
// where its name is not known, or is none that a shell takes as it is.
func (d *doctor) filled(row ops.DoctorRow) string {
	if d.t.site == nil {
		return row.Do
	}
	j, _ := d.settings()
	names, id := map[string]string{}, ""
	for name, one := range d.t.site.Identity.UserAssignedIdentities {
		if len(d.t.site.Identity.UserAssignedIdentities) == 1 {
			names["IDENTITY"], names["CLIENT_ID"] = path.Base(name), one.ClientID
		}
	}
	principal := ""
	kind := map[string]string{
		ops.DepCosmos: cosmosAccounts, ops.RowLeases: cosmosAccounts, ops.RowFeed: cosmosAccounts,
		ops.DepServiceBus: namespaces,
	}[row.Name]
	for _, r := range j.roles {
		if r.kind == kind {
			id, _ = r.id()
			principal = r.principal
		}
	}
	if strings.HasPrefix(row.Do, "az functionapp ") {
		id = d.t.site.ID
	}
	if id != "" {
		maps.Copy(names, j.names)
		setting, _, _ := strings.Cut(row.Found, ":")
		names["QUEUE"], names["OBJECT_ID"], names["NAMESPACE_ID"] = j.names[setting], principal, id
		names["GROUP"] = strings.Split(id+"////", "/")[4]
		for _, word := range []string{"APP", "ACCOUNT", "NAMESPACE"} {
			names[word] = path.Base(id)
		}
	}
	plain := regexp.MustCompile(`^[\w./-]+$`)
	return regexp.MustCompile(`\b[A-Z_]+\b`).ReplaceAllStringFunc(row.Do, func(word string) string {
		if plain.MatchString(names[word]) {
			return names[word]
		}
		return word
	})
}

// young reports whether the package is younger, or may be, because nobody could see when it was published.
func (d *doctor) young(within time.Duration) bool {
	at, err := d.published()
	return err != nil || d.a.now().Sub(at) < within
}

// lastPublished is when the package was; zero if none ever was.
func (d *doctor) lastPublished(ctx context.Context) (at time.Time, err error) {
	of, err := d.t.person.get(ctx, d.t.site.ID, "/deployments"+webVersion, "Microsoft.Web/sites/deployments/read")
	const succeeded = 4 // of Kudu
	for _, one := range of.Value {
		if one.Properties.Status == succeeded && one.Properties.EndTime.After(at) {
			at = one.Properties.EndTime
		}
	}
	return at, err
}

func (d *doctor) packaged(context.Context) (ops.DoctorRow, error) {
	at, err := d.published()
	if at.IsZero() {
		return row(ops.RowWrong, d.publish, "nothing was published: no deployment succeeded"), err
	}
	return row(ops.RowOK, "", "published %s", at.UTC().Format(time.RFC3339)), err
}

// host asks for the host's own state: the only place that says why it does not start the handler.
func (d *doctor) host(ctx context.Context) (ops.DoctorRow, error) {
	of, err := d.t.person.get(ctx, d.t.site.ID, "/host/default/properties/status?api-version=2025-05-01",
		"Microsoft.Web/sites/host/properties/read")
	refused, ofARM := errors.AsType[*refusedError](err)
	silent := errors.Is(err, context.DeadlineExceeded) || (ofARM &&
		(refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusRequestTimeout))
	restart, said := "az functionapp restart --ids "+d.t.site.ID, of.Properties
	found := "the host is " + said.State
	switch failed := len(said.Errors) > 0 || said.State == "Error"; {
	case silent:
		found = "the host does not answer"
		if d.said(rowHealth); d.awake { // it was cold
			return row(ops.RowNotYet, lookAgainLater, "%s so far", found), nil
		}
	case err != nil:
		return ops.DoctorRow{}, err
	case failed:
		return row(ops.RowWrong, restart, "%s: %s", found, d.hide(strings.Join(said.Errors, "; "), false)), nil
	case said.State == "Running":
		return row(ops.RowOK, "", "%s, %s", said.State, said.Version), nil
	}
	if d.young(rolesWithin) {
		return row(ops.RowNotYet, lookAgainLater, "%s so far", found), nil
	}
	return row(ops.RowWrong, restart, "%s", found), nil
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
func (d *doctor) functions(ctx context.Context) (ops.DoctorRow, error) {
	of, err := d.t.person.get(ctx, d.t.site.ID, "/functions"+webVersion, "Microsoft.Web/sites/functions/read")
	if err != nil {
		return ops.DoctorRow{}, err
	}
	found := []ops.DoctorRow{row(ops.RowOK, "", "all %d, none with an error", len(theFunctions()))}
	missing := theFunctions()
	for _, one := range of.Value {
		name := path.Base(one.ID)
		missing = slices.DeleteFunc(missing, func(want string) bool { return want == name })
		if one.Properties.IsDisabled {
			found = append(found, row(ops.RowWrong, d.make, "%s is disabled", name))
		}
	}
	left := strings.Join(missing, ", ")
	switch {
	case left != "" && d.young(functionsWithin):
		return row(ops.RowNotYet, lookAgainLater, "not listed yet: %s", left), nil
	case left != "":
		return row(ops.RowWrong, d.publish, "the host left out %s: the app's log says why (traces: event 402 of Host.Startup)",
			left), nil
	}
	return joined(append(found, each(theFunctions(), func(name string) ops.DoctorRow {
		of, err := d.t.person.get(ctx, d.t.site.ID,
			"/hostruntime/admin/functions/"+name+"/status?api-version=2022-03-01",
			"Microsoft.Web/sites/hostruntime/functions/read")
		if err != nil {
			unseen := d.seen(ops.DoctorRow{}, err)
			unseen.Found = "all are listed, and their errors were not looked at: " + unseen.Found
			return unseen
		}
		if len(of.Errors) > 0 {
			return row(ops.RowWrong, d.make, "%s: %s", name, d.hide(strings.Join(of.Errors, "; "), false))
		}
		return found[0]
	})...)), nil
}

// askHealth asks Health, which wakes a cold app. It has no key. awake says that the handler runs.
func (d *doctor) askHealth(ctx context.Context) (found ops.DoctorRow, awake bool) {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	address := strings.TrimSuffix(d.t.address, "/") + "/api/health"
	curl := "curl -sS " + address
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return row(ops.RowWrong, curl, "the app's address is none"), false
	}
	response, err := d.a.http.Do(request)
	switch {
	case err != nil && neterr.IsTimeout(err):
		return row(ops.RowNotYet, curl, "no answer within %s", healthWithin), false
	case err != nil:
		return row(ops.RowWrong, curl, "%s", whyLost(err)), false
	}
	defer func() { _ = response.Body.Close() }()
	var of struct {
		Status, Version string
		Problems        []string
	}
	const most, ready = 1 << 20, "ready"
	text, _ := io.ReadAll(io.LimitReader(response.Body, most))
	awake = json.Unmarshal(text, &of) == nil && of.Status != "" && of.Version != ""
	says := "not ready"
	if of.Status == ready {
		says = ready
	}
	switch status := response.StatusCode; {
	case awake && says == ready && len(of.Problems) == 0 && status == http.StatusOK:
		return row(ops.RowOK, "", "%s, %s", ready, of.Version), awake
	case awake:
		return row(ops.RowWrong, checkStatus, "%s, %s: %s", says, of.Version, d.hide(strings.Join(of.Problems, "; "), true)), awake
	case status >= http.StatusInternalServerError:
		return row(ops.RowNotYet, curl, "Health answers %d without a report: the app wakes, or the host starts no handler", status), awake
	default:
		return row(ops.RowWrong, cmp.Or(d.publish, curl), "Health answers %d, and not as the app does", status), awake
	}
}

// signIn compares what Azure says of the platform's sign-in with what the app sees of it.
func (d *doctor) signIn(ctx context.Context) (ops.DoctorRow, error) {
	on, _, err := d.t.person.signIn(ctx, *d.t.site)
	said := d.said(ops.RowSignIn)
	seen, _, _ := strings.Cut(said.Found, ":")
	switch {
	case said.State != ops.RowOK:
		return said, nil
	case err == nil && on && seen == "off":
		return row(ops.RowWrong, "az functionapp restart --ids "+d.t.site.ID,
			"sign-in is on, and the app does not see it: the operators' pages refuse everybody"), nil
	case err == nil && !on && seen == "on":
		return row(ops.RowWrong, fmt.Sprintf("az functionapp config appsettings delete -g %s -n %s --setting-names %s",
			d.group, d.t.site.Name, signInSetting), "sign-in is off, and the app takes it for on: anybody may forge one"), nil
	}
	return said, err
}

// alwaysReady wants an instance of the feed's function.
func (d *doctor) alwaysReady(context.Context) (ops.DoctorRow, error) {
	flex := d.t.site.Properties.FunctionAppConfig
	if flex == nil {
		return row(ops.RowOK, "", "not on Flex Consumption"), nil
	}
	scale := flex.ScaleAndConcurrency
	j, err := d.settings()
	byKey := err == nil && !slices.ContainsFunc(j.roles, func(r role) bool { return r.kind == cosmosAccounts })
	for _, one := range scale.AlwaysReady {
		if strings.EqualFold(one.Name, "function:CommitResults") && one.InstanceCount > 0 {
			return row(ops.RowOK, "", "%d of CommitResults; at most %d instances of %d MB", one.InstanceCount,
				scale.MaximumInstanceCount, scale.InstanceMemoryMB), nil
		}
	}
	switch {
	case err != nil:
		return j.row, err
	case byKey:
		return row(ops.RowOK, "", "none, and none is needed: a key connects to Cosmos DB"), nil
	}
	set := "az functionapp scale config always-ready set -g %s -n %s --settings function:CommitResults=1"
	return row(ops.RowWrong, fmt.Sprintf(set, d.group, d.t.site.Name),
		"none is always ready: with an identity the plan may not see that changes wait"), nil
}

// telemetry counts what the app told within 15 minutes.
func (d *doctor) telemetry(ctx context.Context) (ops.DoctorRow, error) {
	j, err := d.settings()
	switch {
	case err != nil:
		return j.row, err
	case j.insights == "":
		return row(ops.RowWrong, d.make, "%s has no InstrumentationKey", telemetry), nil
	}
	id, err := d.resource(ctx, role{kind: components, setting: telemetry, resource: j.insights})
	if err != nil {
		return ops.DoctorRow{}, err
	}
	const within = 15 * time.Minute
	now := d.a.now().UTC()
	query := fmt.Sprintf("?api-version=2018-01-01&metricnames=traces/count&aggregation=count&interval=PT15M&timespan=%s/%s",
		now.Add(-within).Format(time.RFC3339), now.Format(time.RFC3339))
	of, err := d.t.person.get(ctx, id, "/providers/Microsoft.Insights/metrics"+query, "Microsoft.Insights/metrics/read")
	traces := 0.0
	for _, metric := range of.Value {
		for _, series := range metric.Timeseries {
			for _, one := range series.Data {
				traces += one.Count
			}
		}
	}
	switch {
	case err != nil:
		return ops.DoctorRow{}, err
	case traces > 0:
		return row(ops.RowOK, "", "%.0f traces in the last 15 minutes", traces), nil
	case d.young(within):
		return row(ops.RowNotYet, lookAgainLater, "no trace yet: the package is not known to be older than 15 minutes"), nil
	}
	const count = "az monitor metrics list --metrics traces/count --aggregation count --offset 15m --resource "
	return row(ops.RowWrong, count+id, "no trace in the last 15 minutes"), nil
}
