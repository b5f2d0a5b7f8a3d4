package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"strings"
	"text/template"
)

// bicep is what is deployed, under this name: az then knows the last deployment of a group.
const bicep, deploymentName = "deploy/azure/main.bicep", "sqlwriter"

// noAdmin leaves a server's administrator as it is: Azure takes one with a server that is made, and at times refuses it
// afterwards.
const noAdmin = "{}"

// nextText is what is said at the end.
//
//go:embed next.txt
var nextText string

// deployment makes or changes the environment of a resource group. The file GROUP.bicepparam says all of it: what would
// depend on who deploys, or when, is written there at the first time.
type deployment struct {
	tool

	group, from, mode, prefix, admins string
	yes                               bool

	// path is the file's. defaults is the template, whose parameters have defaults.
	path     string
	defaults parameters
}

// state is what az tells of a deployment.
type state struct {
	Properties struct {
		Parameters map[string]struct{ Value any }
		Outputs    outputs
	}
}

// outputs are those of the template; empty after a deployment that failed.
type outputs struct {
	App, URL, IdentityName, ClientID, PrincipalID struct{ Value string }
	SQLServer, SQLDatabase, CosmosDatabase        struct{ Value string }
	MissingRoles                                  struct {
		Value []struct{ Role, Scope, Principal string }
	}
}

// deploy runs the template.
func (d deployment) deploy(ctx context.Context) error {
	if d.group == "" {
		return errors.New("make azure GROUP=name, the resource group's")
	}
	defaults, err := os.ReadFile(bicep)
	if err != nil {
		return err
	}
	d.path, d.defaults = d.group+".bicepparam", parameters(defaults)
	before, err := os.ReadFile(d.path)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p := parameters(strings.ReplaceAll(string(before), "\r\n", "\n"))
	used, app, server, err := d.last(ctx, cmp.Or(p.text("sysName"), d.defaults.text("sysName")))
	if err != nil {
		return err
	}
	first := used == nil && app == ""
	switch {
	case there && d.from != "":
		return fmt.Errorf("%s exists, and is what counts: leave PARAMS out", d.path)
	case !there && !first:
		return fmt.Errorf("%s is missing: take it from those who made the environment, or write by hand what their last "+
			"deployment had, with `param sqlAdmin = {}`:\n"+
			"  az deployment group show -g %s -n %s --query properties.parameters", d.path, word(d.group), deploymentName)
	case !there:
		if p, err = d.begin(); err != nil {
			return err
		}
	}
	if p, err = d.complete(ctx, p, first); err != nil {
		return err
	}
	untold := p.text("sqlServer") == "" && p.get("sqlAdmin") != noAdmin // nobody was told what comes next
	if server && untold {
		p = p.set("sqlAdmin", noAdmin)
	}
	if err := p.readable(); err != nil {
		return err
	}
	if !first {
		if err := d.allowed(ctx, p, used, app); err != nil {
			return err
		}
	}
	if err := d.write(d.path, p); err != nil {
		return err
	}
	d.say("Deploying takes about six minutes.")
	var made state
	if err := d.az(ctx, &made, "deployment", "group", "create", "-g", d.group, "-n", deploymentName,
		"-f", bicep, "-p", d.path); err != nil {
		return err
	}
	if p.get("sqlAdmin") != "" {
		if err := d.write(d.path, p.set("sqlAdmin", noAdmin)); err != nil {
			return err
		}
	}
	return d.next(p, made, untold)
}

// write writes a parameter file.
func (deployment) write(path string, p parameters) error {
	return os.WriteFile(path, []byte(p), 0o644) //nolint:gosec // no secret: a team shares it
}

// last returns the parameters of the group's last deployment, nil if Azure knows none, and the group's app: that of an
// environment, or another if it has none. A deployment may have failed or be forgotten, so its outputs do not tell.
// server reports whether the group's own is made.
func (d deployment) last(ctx context.Context, sysName string) (
	used map[string]any, app string, server bool, err error,
) {
	var last state
	err = d.az(ctx, &last, "deployment", "group", "show", "-g", d.group, "-n", deploymentName)
	switch {
	case err == nil:
		used = map[string]any{}
	case !strings.Contains(err.Error(), "DeploymentNotFound"):
		return nil, "", false, err
	}
	for name, p := range last.Properties.Parameters {
		used[name] = p.Value
	}
	var resources []struct{ Name, Type string }
	if err := d.az(ctx, &resources, "resource", "list", "-g", d.group); err != nil {
		return nil, "", false, err
	}
	own := regexp.MustCompile("^func-sqlwriter-" +
		regexp.QuoteMeta(strings.ToLower(strings.ReplaceAll(sysName, "_", "-"))) + "-[a-z0-9]{8}$")
	for _, r := range resources {
		if strings.EqualFold(r.Type, "Microsoft.Web/sites") && strings.HasPrefix(r.Name, "func-sqlwriter-") &&
			(app == "" || own.MatchString(r.Name)) {
			app = r.Name
		}
		if strings.EqualFold(r.Type, "Microsoft.Sql/servers") && strings.HasPrefix(r.Name, "sql-sqlwriter-") {
			server = true
		}
	}
	return used, app, server, nil
}

// begin makes a parameter file, of the file that was named.
func (d deployment) begin() (parameters, error) {
	text := "// make azure wrote this file, and reads it: keep it where the team finds it.\n"
	if d.from != "" {
		named, err := os.ReadFile(d.from)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(strings.ReplaceAll(string(named), "\r\n", "\n")) + "\n"
		text = regexp.MustCompile(`(?m)^using .*\n+`).ReplaceAllString(text, "")
	}
	return parameters("using '" + bicep + "'\n\n" + text), nil
}

// complete writes what was asked for into the file; what it lacks that another release of the template might change;
// and at the first time what depends on who deploys.
func (d deployment) complete(ctx context.Context, p parameters, first bool) (parameters, error) {
	fix := func(name, change string, value any) {
		if change != "" {
			p = p.set(name, literal(change))
		} else if p.get(name) == "" {
			p = p.set(name, literal(value))
		}
	}
	fix("sysName", "", d.defaults.text("sysName"))
	fix("mode", d.mode, d.defaults.text("mode"))
	fix("leasePrefix", d.prefix, p.text("sysName")+"-")
	server := first && p.text("sqlServer") == "" && p.get("sqlAdmin") == ""
	account := first && p.text("cosmosEndpoint") == "" && p.get("dataContributors") == ""
	if !server && !account {
		return p, nil
	}
	var who struct{ ID, DisplayName, UserPrincipalName string }
	ask, kind := []string{"ad", "signed-in-user", "show"}, "User"
	if d.admins != "" {
		ask, kind = []string{"ad", "group", "show", "--group", d.admins}, "Group"
	}
	if err := d.az(ctx, &who, ask...); err != nil {
		return p, fmt.Errorf("%w\nwho administers what is made? Where no person is signed in: SQL_ADMIN='an Entra group'",
			err)
	}
	if server {
		name := cmp.Or(who.UserPrincipalName, who.DisplayName)
		fix("sqlAdmin", "", map[string]any{"name": name, "objectId": who.ID, "type": kind})
	}
	if account {
		fix("dataContributors", "", []any{who.ID})
	}
	return p, nil
}

// allowed refuses a mode whose leases the other mode has, and asks before the app moves to something else. Where the
// app has settings, these count: a person may have changed them, and a deployment may have failed before it did.
func (d deployment) allowed(ctx context.Context, p parameters, used map[string]any, app string) error {
	used = maps.Clone(used)
	if app != "" {
		var list []struct{ Name, Value string }
		if err := d.az(ctx, &list, "functionapp", "config", "appsettings", "list",
			"-g", d.group, "-n", app); err != nil {
			return err
		}
		settings := map[string]string{}
		for _, s := range list {
			settings[s.Name] = s.Value
		}
		if settings["SYS_NAME"]+settings["LEASE_PREFIX"]+settings["SQL_CONNECTION"] != "" { // else it never ran
			if used == nil {
				used = map[string]any{}
			}
			maps.Copy(used, inUse(app, settings))
		}
	}
	if p.text("mode") != used["mode"] && p.text("leasePrefix") == used["leasePrefix"] {
		return fmt.Errorf("refused: the leases %s are those of the app with MODE=%v, and tell what it has seen. "+
			"With MODE=%s give another prefix, such as LEASE_PREFIX=%s-%[3]s-",
			p.text("leasePrefix"), used["mode"], p.text("mode"), p.text("sysName"))
	}
	changes := p.changes(d.defaults, used)
	if len(changes) == 0 {
		return nil
	}
	next := d.group + ".next.bicepparam" // the file itself changes when somebody has said yes
	defer os.Remove(next)                //nolint:errcheck // it is of no use, and does no harm
	if err := d.write(next, p); err != nil {
		return err
	}
	if _, err := d.run(ctx, program{shown: true}, "az", "deployment", "group", "what-if", "-g", d.group,
		"-n", deploymentName, "-f", bicep, "-p", next); err != nil {
		return err
	}
	d.say("This changes what the app works on:\n  " + strings.Join(changes, "\n  "))
	if !d.yes && !d.ask(ctx, "Deploy it? (yes) ") {
		return errors.New("nothing was changed. Without a terminal YES=1 says that somebody has looked at the changes")
	}
	return nil
}

// next says what there is now, what others must be asked for, and the lines that come next, filled in: at the first
// time those that fill an empty database and try a document.
func (d deployment) next(p parameters, made state, first bool) error {
	account, _, _ := strings.Cut(strings.TrimPrefix(p.text("cosmosEndpoint"), "https://"), ".")
	var text strings.Builder
	lines := template.Must(template.New("next").Funcs(template.FuncMap{"word": word}).Parse(nextText))
	err := lines.Execute(&text, struct {
		outputs

		File, TheirAccount, TheirServer, Leases string
		First                                   bool
	}{
		made.Properties.Outputs, d.path, account, p.text("sqlServer"),
		cmp.Or(p.text("leaseContainer"), d.defaults.text("leaseContainer")), first,
	})
	d.say(text.String())
	return err
}

// word is a text as a shell takes it for one word.
func word(text string) string {
	if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
