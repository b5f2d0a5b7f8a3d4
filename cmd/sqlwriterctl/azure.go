package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/config"
)

// isAddress reports whether an app is given by its address; otherwise by its name or id.
func isAddress(app string) bool { return strings.Contains(app, "://") }

// open fills in how to ask an app. By its name, the person of az gets in without a key: by a sign-in where the app has
// one, else with a key of the person's own.
func (a *app) open(ctx context.Context, t *target, app string) error {
	if isAddress(app) {
		t.address = app
		return nil
	}
	p, s, err := a.find(ctx, t.from, app)
	if err != nil {
		return err
	}
	t.person, t.site, t.address = p, &s, "https://"+s.Properties.DefaultHostName
	if t.key != "" || t.audience != "" {
		return nil
	}
	if _, t.audience, err = p.signIn(ctx, s); err == nil && t.audience == "" {
		t.keyName, t.key, err = p.key(ctx, s, "Ops")
	}
	return err
}

// find finds an app in Azure by its name or id.
func (a *app) find(ctx context.Context, from, name string) (*person, site, error) {
	if !regexp.MustCompile(`^([\w-]+|/subscriptions/[\w().-]+(/[\w().-]+)+)$`).MatchString(name) {
		return nil, site{}, usagef("%s: expected the function app's name, its id, or https://NAME.azurewebsites.net", from)
	}
	p, err := a.signedIn(ctx)
	if err != nil {
		return nil, site{}, err
	}
	s, err := p.site(ctx, name)
	return p, s, err
}

// settingsOfApp are the settings of an app in Azure. Where the app connects with its identity, the person of az does.
func (a *app) settingsOfApp(ctx context.Context, from, name string) (settings, error) {
	p, s, err := a.find(ctx, from, name)
	if err != nil {
		return settings{}, err
	}
	var of struct{ Properties map[string]string }
	if err := p.do(ctx, http.MethodPost, s.ID, "/config/appsettings/list"+webVersion,
		"Microsoft.Web/sites/config/list/action", nil, &of); err != nil {
		return settings{}, err
	}
	values := of.Properties
	if values[config.CosmosEndpoint] != "" {
		values[config.CosmosClientID] = azure.PersonOfAz
	}
	if u, err := url.Parse(values[config.SQLConnection]); err == nil && u.Query().Has("fedauth") {
		q := u.Query()
		q.Set("fedauth", "ActiveDirectoryAzCli")
		q.Del("user id")
		u.RawQuery, u.User = q.Encode(), nil
		values[config.SQLConnection] = u.String()
	}
	get := func(name string) string { return values[name] }
	return settings{from: fmt.Sprintf("the app %s (%s), as the user of az", s.Name, from), get: get}, nil
}
