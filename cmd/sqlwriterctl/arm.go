package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// webVersion is the version of Microsoft.Web.
const webVersion = "?api-version=2024-11-01"

// person asks Azure Resource Manager with the rights of whom az has signed in: a user, or the principal of a pipeline.
// Tokens, keys and values of settings stay in memory, and no error has one.
type person struct {
	// id is the object id, subscription the id of the subscription that az has chosen.
	id, subscription string
	manager, token   string
	pipeline         runtime.Pipeline
}

// site is a function app: its id as a resource, and its host name.
type site struct{ ID, Name, Host string }

// signedIn asks az who is signed in, and where the Resource Manager of az's cloud is.
func (a *app) signedIn(ctx context.Context) (*person, error) {
	var cloud struct {
		Endpoints struct{ ResourceManager, ActiveDirectoryResourceID string }
	}
	if err := az(ctx, &cloud, "cloud", "show", "-o", "json"); err != nil {
		return nil, err
	}
	manager := strings.TrimRight(cloud.Endpoints.ResourceManager, "/")
	if !strings.HasPrefix(manager, "https://") {
		return nil, fmt.Errorf("`az cloud show` names no https:// address of the Resource Manager: %q", manager)
	}
	var token struct{ AccessToken, Subscription string }
	err := az(ctx, &token, "account", "get-access-token", "-o", "json",
		"--resource", cloud.Endpoints.ActiveDirectoryResourceID)
	if err != nil {
		return nil, err
	}
	var claims struct{ OID string }
	_, rest, _ := strings.Cut(token.AccessToken, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.OID == "" {
		return nil, errors.New("the token of az names no object id")
	}
	pipeline := runtime.NewPipeline("sqlwriterctl", "", runtime.PipelineOptions{},
		&policy.ClientOptions{Transport: a.http})
	return &person{claims.OID, token.Subscription, manager, token.AccessToken, pipeline}, nil
}

// az runs az and reads what it prints. Its own words about an error are kept: they say what to type.
func az(ctx context.Context, answer any, args ...string) error {
	out, err := exec.CommandContext(ctx, "az", args...).Output() //nolint:gosec // no argument is anybody's text
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return advised(fmt.Errorf("az: %s", oneLine(string(exit.Stderr))), "sign in with `az login`")
	case err != nil:
		return advised(err, "install az (https://aka.ms/azure-cli) and `az login`; without it an app is named by its address, and opened by %s", keyVariable)
	}
	return json.Unmarshal(out, answer)
}

// do makes a call about a resource, the scope, and reads the answer. right is what the person needs for it.
func (p *person) do(ctx context.Context, method, scope, below, right string, body, answer any) error {
	request, err := runtime.NewRequest(ctx, method, p.manager+scope+below)
	if err != nil {
		return err
	}
	request.Raw().Header.Set("Authorization", "Bearer "+p.token)
	if body != nil {
		if err := runtime.MarshalAsJSON(request, body); err != nil {
			return err
		}
	}
	response, err := p.pipeline.Do(request) //nolint:bodyclose // the pipeline has read it
	if err != nil {
		return fmt.Errorf("no answer of Azure Resource Manager: %w", err)
	}
	if runtime.HasStatusCode(response, http.StatusOK, http.StatusCreated) {
		return runtime.UnmarshalAsJSON(response, answer)
	}
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = runtime.UnmarshalAsJSON(response, &said)                 // the page of a proxy has neither
	err = fmt.Errorf("Azure Resource Manager answers %d %s: %s", //nolint:staticcheck // a name
		response.StatusCode, said.Error.Code, said.Error.Message)
	switch {
	case said.Error.Code == "AuthorizationFailed":
		return advised(fmt.Errorf("you need the right %s at %s", right, scope),
			"who may give rights there: `az role assignment create --assignee %s --role \"Website Contributor\" --scope %s`", p.id, scope)
	case response.StatusCode == http.StatusNotFound && strings.HasPrefix(below, "/functions/"):
		return advised(err, "`make publish APP=%s` deploys the functions", path.Base(scope))
	}
	return err
}

// site finds the function app of a name in the person's subscription, or of an id anywhere.
func (p *person) site(ctx context.Context, name string) (s site, err error) {
	const right = "Microsoft.Web/sites/read"
	s.ID = name
	if !strings.HasPrefix(name, "/") {
		var found struct{ Value []struct{ ID string } }
		filter := url.PathEscape("resourceType eq 'Microsoft.Web/sites' and name eq '" + name + "'")
		if err := p.do(ctx, http.MethodGet, "/subscriptions/"+p.subscription,
			"/resources?api-version=2021-04-01&$filter="+filter, right, nil, &found); err != nil {
			return s, err
		}
		switch len(found.Value) {
		case 0:
			return s, advised(fmt.Errorf("no app is named %s in the subscription %s, or you may not see it", name, p.subscription),
				"`az account list -o table` lists subscriptions, `az account set --subscription NAME` chooses one")
		case 1:
			s.ID = found.Value[0].ID
		default:
			return s, advised(fmt.Errorf("%d apps are named %s: %v", len(found.Value), name, found.Value),
				"give one of these ids in place of the name")
		}
	}
	var of struct {
		Name       string
		Properties struct{ DefaultHostName string }
	}
	err = p.do(ctx, http.MethodGet, s.ID, webVersion, right, nil, &of)
	s.Name, s.Host = of.Name, of.Properties.DefaultHostName
	return s, err
}

// audience is whom tokens for the operators' pages are made for; empty where sign-in is off.
func (p *person) audience(ctx context.Context, s site) (string, error) {
	var auth struct {
		Properties struct {
			Platform          struct{ Enabled bool }
			IdentityProviders struct {
				AzureActiveDirectory struct {
					Enabled      *bool // absent means true
					Registration struct{ ClientID string }
				}
			}
		}
	}
	err := p.do(ctx, http.MethodGet, s.ID, "/config/authsettingsV2"+webVersion, "Microsoft.Web/sites/config/read", nil,
		&auth)
	entra := auth.Properties.IdentityProviders.AzureActiveDirectory
	if err != nil || !auth.Properties.Platform.Enabled || entra.Registration.ClientID == "" ||
		(entra.Enabled != nil && !*entra.Enabled) {
		return "", err
	}
	return "api://" + entra.Registration.ClientID, nil // as docs/settings.md, Sign-in, names it
}

// key takes the person's own key of a function, operator-OBJECTID, and makes it where there is none.
func (p *person) key(ctx context.Context, s site, function string) (name, value string, err error) {
	name = "operator-" + p.id
	of, keys, made := "/functions/"+function, map[string]any{}, map[string]any{}
	err = p.do(ctx, http.MethodPost, s.ID, of+"/listkeys"+webVersion, "Microsoft.Web/sites/functions/listkeys/action",
		nil, &keys)
	if value = member(keys, name); err != nil || value != "" {
		return name, value, err
	}
	ask := map[string]any{"properties": map[string]any{"name": name, "value": nil}} // the host makes the value
	err = p.do(ctx, http.MethodPut, s.ID, of+"/keys/"+name+webVersion, "Microsoft.Web/sites/functions/keys/write",
		ask, &made)
	if value = member(made, "value"); err == nil && value == "" {
		err = fmt.Errorf("the key %s was made, and the answer does not have it", name)
	}
	return name, value, err
}

// member is a text of an answer about keys. The service leaves out the properties that its interface has (azure-cli,
// list_function_keys), so both forms are read.
func member(answer map[string]any, name string) string {
	if properties, ok := answer["properties"].(map[string]any); ok {
		answer = properties
	}
	text, _ := answer[name].(string)
	return text
}
