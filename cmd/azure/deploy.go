package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// template is what is deployed, under this name: az then knows the last deployment of a group.
const template, deploymentName = "deploy/azure/main.bicep", "sqlwriter"

// deployment makes or changes the environment of a resource group. The file GROUP.bicepparam says all of it: what would
// depend on who deploys, or when, is written there at the first time.
type deployment struct {
	tool

	group, from, mode, prefix, admins string
	yes, restore                      bool
}

// lastDeployment is what a group has; nil if it has none.
type lastDeployment struct {
	Properties struct {
		Parameters map[string]struct{ Value any }
		Outputs    json.RawMessage
	}
}

// deploy runs the template.
func (d deployment) deploy(ctx context.Context) error {
	if d.group == "" {
		return errors.New("make azure GROUP=name, the resource group's")
	}
	text, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	last, err := d.last(ctx)
	if err != nil {
		return err
	}
	defaults, path := parameters(text), d.group+".bicepparam"
	before, err := os.ReadFile(path)
	switch {
	case err == nil && d.from != "":
		return fmt.Errorf("%s exists, and is what counts: leave PARAMS out", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case d.restore:
		return d.write(path, defaults, last)
	case err != nil && last != nil:
		return fmt.Errorf("%s is missing: take it from those who made the environment, or write it from their last deployment:\n"+
			"  make azure GROUP=%s RESTORE=1", path, d.group)
	}
	p := parameters(strings.ReplaceAll(string(before), "\r\n", "\n"))
	if before == nil {
		if p, err = d.begin(); err != nil {
			return err
		}
	}
	if p, err = d.complete(ctx, p, defaults, last == nil); err != nil {
		return err
	}
	for name, value := range map[string]string{"mode": d.mode, "leasePrefix": d.prefix} {
		if value != "" {
			p = p.set(name, literal(value))
		}
	}
	if err := os.WriteFile(path, []byte(p), 0o644); err != nil { //nolint:gosec // no secret: a team shares it
		return err
	}
	if last != nil {
		if err := d.allowed(ctx, path, p, defaults, last); err != nil {
			return errors.Join(err, os.WriteFile(path, before, 0o644)) //nolint:gosec // as it was
		}
	}
	d.say("Deploying takes about six minutes.")
	var made lastDeployment
	if err := d.az(ctx, &made, "deployment", "group", "create", "-g", d.group, "-n", deploymentName,
		"-f", template, "-p", path); err != nil {
		return err
	}
	out, err := made.outputs()
	if err != nil {
		return err
	}
	d.say(out.next(path, p, defaults))
	return nil
}

// az asks az for JSON.
func (d deployment) az(ctx context.Context, into any, args ...string) error {
	out, err := d.run(ctx, "az", append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("az %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// last returns the group's last deployment.
func (d deployment) last(ctx context.Context) (*lastDeployment, error) {
	var last lastDeployment
	err := d.az(ctx, &last, "deployment", "group", "show", "-g", d.group, "-n", deploymentName)
	if err != nil && strings.Contains(err.Error(), "DeploymentNotFound") {
		return nil, nil //nolint:nilnil // none
	}
	return &last, err
}

// used returns its parameters.
func (l lastDeployment) used() map[string]any {
	used := map[string]any{}
	for name, p := range l.Properties.Parameters {
		used[name] = p.Value
	}
	return used
}

// write writes the parameter file of the last deployment.
func (d deployment) write(path string, defaults parameters, last *lastDeployment) error {
	if last == nil {
		return fmt.Errorf("%s has no deployment %s to write %s from", d.group, deploymentName, path)
	}
	p := parameters("using '" + template + "'\n\n")
	used := last.used()
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if defaults.get(name) != "" { // this release has it
			p = p.set(name, literal(used[name]))
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // no secret: a team shares it
	if err != nil {
		return err
	}
	_, err = file.WriteString(string(p))
	d.say(path + " is as the last deployment had it. Look at it, keep it, and run make azure again.")
	return errors.Join(err, file.Close())
}

// begin makes a parameter file, from the one that was named if there is one.
func (d deployment) begin() (parameters, error) {
	using := "using '" + template + "'"
	if d.from == "" {
		return parameters(using + "\n\n// make azure wrote this file, and reads it: keep it where the team finds it.\n"), nil
	}
	text, err := os.ReadFile(d.from)
	if err != nil {
		return "", err
	}
	lines := strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") + "\n"
	return parameters(regexp.MustCompile(`(?m)^using .*$`).ReplaceAllString(lines, using)), nil
}

// complete writes into the file what would differ with another release of the template, and at the first time what
// depends on who deploys.
func (d deployment) complete(ctx context.Context, p, defaults parameters, first bool) (parameters, error) {
	fix := func(name string, value any) {
		if p.get(name) == "" {
			p = p.set(name, literal(value))
		}
	}
	for _, name := range []string{"sysName", "mode"} {
		fix(name, defaults.text(name))
	}
	fix("leasePrefix", p.text("sysName")+"-")
	newSQL, newCosmos := p.text("sqlServer") == "", p.text("cosmosEndpoint") == ""
	lacks := newSQL && p.get("sqlAdmin") == "" || newCosmos && p.get("dataContributors") == ""
	if !first || !lacks {
		return p, nil
	}
	admin, err := d.person(ctx)
	if err != nil {
		return "", err
	}
	if newSQL {
		fix("sqlAdmin", admin)
	}
	if newCosmos {
		fix("dataContributors", []any{admin["objectId"]})
	}
	return p, nil
}

// person returns the group that was named, else who is signed in, as the administrator of a server.
func (d deployment) person(ctx context.Context) (map[string]any, error) {
	var found struct{ ID, DisplayName, UserPrincipalName string }
	if d.admins != "" {
		err := d.az(ctx, &found, "ad", "group", "show", "--group", d.admins)
		return map[string]any{"name": found.DisplayName, "objectId": found.ID, "type": "Group"}, err
	}
	if err := d.az(ctx, &found, "ad", "signed-in-user", "show"); err != nil {
		return nil, fmt.Errorf("%w\nno person is signed in: make azure ... SQL_ADMIN='name of an Entra group', or sqlAdmin and dataContributors in a file for PARAMS", err)
	}
	return map[string]any{"name": found.UserPrincipalName, "objectId": found.ID, "type": "User"}, nil
}

// allowed refuses a mode whose leases the other mode has, and asks before the app moves to something else.
func (d deployment) allowed(ctx context.Context, path string, p, defaults parameters, last *lastDeployment) error {
	used := last.used()
	out, err := last.outputs()
	if err != nil {
		return err
	}
	if out.App != "" { // what the app has counts, if a person has changed that
		var settings []struct{ Name, Value string }
		if err := d.az(ctx, &settings,
			"functionapp", "config", "appsettings", "list", "-g", d.group, "-n", out.App); err != nil {
			return err
		}
		for _, s := range settings {
			switch s.Name {
			case "MODE":
				used["mode"] = s.Value
			case "LEASE_PREFIX":
				used["leasePrefix"] = s.Value
			}
		}
	}
	if p.text("mode") != used["mode"] && p.text("leasePrefix") == used["leasePrefix"] {
		return fmt.Errorf("refused: the leases %s are those of the app with MODE=%v, and tell what it has seen. "+
			"With MODE=%s give another prefix, such as LEASE_PREFIX=%s-%[3]s-",
			p.text("leasePrefix"), used["mode"], p.text("mode"), p.text("sysName"))
	}
	changes := p.changes(defaults, used)
	if len(changes) == 0 {
		return nil
	}
	if _, err := d.show(ctx, "", "az", "deployment", "group", "what-if", "-g", d.group, "-n", deploymentName,
		"-f", template, "-p", path); err != nil {
		return err
	}
	d.say("This changes what the app works on:\n  " + strings.Join(changes, "\n  "))
	if !d.yes && !d.ask("Deploy it? (yes) ") {
		return errors.New("nothing was changed. Without a terminal YES=1 says that somebody has looked at the changes")
	}
	return nil
}

// outputs are what the template says of what it made.
type outputs struct {
	App, URL, IdentityName, ClientID, PrincipalID, SQLServer, SQLDatabase string
	CosmosEndpoint, CosmosDatabase                                        string
	MissingRoles                                                          []struct{ Role, Scope, Principal string }
}

// outputs reads the outputs; of a deployment that failed there are none.
func (l lastDeployment) outputs() (o outputs, err error) {
	var each map[string]struct{ Value json.RawMessage }
	values := map[string]json.RawMessage{}
	if len(l.Properties.Outputs) == 0 {
		return o, nil
	}
	if err = json.Unmarshal(l.Properties.Outputs, &each); err == nil {
		for name, output := range each {
			values[name] = output.Value
		}
		var text []byte
		if text, err = json.Marshal(values); err == nil {
			err = json.Unmarshal(text, &o)
		}
	}
	if err != nil {
		err = fmt.Errorf("the outputs of the deployment: %w", err)
	}
	return o, err
}

// next says what there is now, what others must be asked for, and the lines that come next, filled in.
func (o outputs) next(path string, p, defaults parameters) string {
	var b strings.Builder
	section := func(title string, lines ...string) {
		fmt.Fprintf(&b, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
	}
	fmt.Fprintf(&b, "%s is there: %s\n%s is needed for the next make azure: keep it where the team finds it.\n",
		o.App, o.URL, path)
	for _, r := range o.MissingRoles {
		section("To those who may assign roles here; how to look at it; how to take it back:",
			fmt.Sprintf("az role assignment create --role %s --scope %s --assignee-object-id %s "+
				"--assignee-principal-type ServicePrincipal", r.Role, r.Scope, r.Principal),
			fmt.Sprintf("az role assignment list --scope %s --query \"[?principalId=='%s'].roleDefinitionName\"",
				r.Scope, r.Principal),
			fmt.Sprintf("az role assignment delete --role %s --scope %s --assignee %s", r.Role, r.Scope, r.Principal))
	}
	if p.text("cosmosEndpoint") != "" {
		account, _, _ := strings.Cut(strings.TrimPrefix(o.CosmosEndpoint, "https://"), ".")
		leases := cmp.Or(p.text("leaseContainer"), defaults.text("leaseContainer"))
		section("To the owner of the Cosmos DB account, with cosmos.bicep; how to look at it; how to take it back:",
			fmt.Sprintf("az deployment group create -g OWNERS-GROUP -n sqlwriter-cosmos -f cosmos.bicep -p account=%s "+
				"database=%s leaseContainer=%s principals='[\"%s\"]'",
				account, o.CosmosDatabase, leases, o.PrincipalID),
			fmt.Sprintf("az cosmosdb sql role assignment list -g OWNERS-GROUP -a %s "+
				"--query \"[?principalId=='%s'].{id:name,scope:scope}\"", account, o.PrincipalID),
			fmt.Sprintf("az cosmosdb sql role assignment delete -g OWNERS-GROUP -a %s --yes --role-assignment-id ID",
				account))
	}
	user := fmt.Sprintf("--app %s --user %s --client-id %s", o.App, o.IdentityName, o.ClientID)
	next := []string{"bin/sqlwriterctl migrate up " + user + " --sample-tables --history empty"}
	if p.text("sqlServer") != "" {
		section(fmt.Sprintf("To the administrator of %s on %s, what the first line writes; how to look at it; "+
			"how to take it back:", o.SQLDatabase, o.SQLServer),
			"bin/sqlwriterctl migrate script "+user+" > handover.sql",
			fmt.Sprintf("SELECT name FROM sys.database_principals WHERE name = N'%s'", o.IdentityName),
			fmt.Sprintf("DROP USER [%s]", o.IdentityName))
		next = nil
	}
	next = append(next, "make publish APP="+o.App)
	if p.text("sqlServer")+p.text("cosmosEndpoint") == "" {
		next = slices.Concat(next, []string{
			"bin/sqlwriterctl document submit --app " + o.App + " examples/01-plain-success.json",
			"bin/sqlwriterctl document why --app " + o.App + " --line 1421549",
		})
	} else {
		next = append(next, "docs/cutover.md from step 2, if another program writes to these tables")
	}
	section("Next:", next...)
	return b.String()
}
