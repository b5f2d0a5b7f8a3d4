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
	"regexp"
	"strings"
	"time"

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

// site is a function app: its id as a resource, and what the Resource Manager says of it.
type site struct {
	ID, Name string
	Identity struct {
		PrincipalID            string // of the system-assigned one
		UserAssignedIdentities map[string]struct{ PrincipalID, ClientID string }
	}
	Properties struct {
		DefaultHostName, State string
		// FunctionAppConfig is nil where the plan is not Flex Consumption.
		FunctionAppConfig *struct {
			Runtime             struct{ Name, Version string }
			ScaleAndConcurrency struct {
				AlwaysReady []struct {
					Name          string
					InstanceCount int
				}
				MaximumInstanceCount, InstanceMemoryMB int
			}
		}
	}
}

var missingRight = regexp.MustCompile(`perform action '([\w./-]+)'`)

// azError has the words of az.
type azError struct{ error }

// ownError is in our words, without a value of a setting.
type ownError struct{ error }

// refusedError is a refusal of the Resource Manager.
type refusedError struct {
	Status        int
	Code, Message string
	// Right is what the person needs at a resource, the Scope.
	Right, Scope string
}

// denied reports whether a right is missing.
func (e *refusedError) denied() bool { return e.Code == "AuthorizationFailed" }

func (e *refusedError) Error() string {
	if e.denied() {
		return fmt.Sprintf("you need the right %s at %s", e.Right, e.Scope)
	}
	return fmt.Sprintf("Azure Resource Manager answers %d %s: %s", e.Status, e.Code, e.Message)
}

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
	command := exec.CommandContext(ctx, "az", args...) //nolint:gosec // no argument is anybody's text
	command.WaitDelay = time.Second                    // az is a script: its child may hold the output open
	out, err := command.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return advised(&azError{fmt.Errorf("az: %s", oneLine(string(exit.Stderr)))}, "sign in with `az login`")
	case err != nil:
		return advised(&azError{err}, "install az (https://aka.ms/azure-cli) and `az login`; without it an app is named by its address, and opened by %s", keyVariable)
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
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // it has the address, and that the name of a resource
		return &ownError{errors.New("no answer of Azure Resource Manager: " + whyLost(err))}
	}
	if runtime.HasStatusCode(response, http.StatusOK, http.StatusCreated) {
		return runtime.UnmarshalAsJSON(response, answer)
	}
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = runtime.UnmarshalAsJSON(response, &said) // the page of a proxy has neither
	refused := &refusedError{response.StatusCode, said.Error.Code, said.Error.Message, right, scope}
	if m := missingRight.FindStringSubmatch(said.Error.Message); m != nil { // the service knows it better
		refused.Right = m[1]
	}
	switch {
	case refused.denied():
		return advised(refused, "who may give rights there: `%s`", p.grant(refused))
	case response.StatusCode == http.StatusNotFound && strings.HasPrefix(below, "/functions/"):
		return advised(refused, "`make publish APP=%s` deploys the functions", path.Base(scope))
	}
	return refused
}

// grant is the command that gives the person a right that was missing.
func (p *person) grant(e *refusedError) string {
	role := "Reader"
	if strings.HasPrefix(e.Right, "Microsoft.Web/") {
		role = "Website Contributor"
	}
	return fmt.Sprintf("az role assignment create --assignee %s --role %q --scope %s", p.id, role, e.Scope)
}

// armAnswer has what is read of the Resource Manager's answers to GET.
type armAnswer struct {
	Value []struct {
		ID         string
		Properties struct {
			Status                               int       // of a deployment
			EndTime                              time.Time `json:"end_time"`
			RoleDefinitionID, PrincipalID, Scope string
			CreatedOn                            time.Time
			InstrumentationKey                   string
			IsDisabled                           bool
		}
		Timeseries []struct{ Data []struct{ Count float64 } }
	}
	NextLink   string
	Properties struct {
		State, Version string
		Errors         []string
	}
	Errors []string
}

// get asks about what is below a scope, all pages of it. The token goes to no other host, whatever a page names.
func (p *person) get(ctx context.Context, scope, below, right string) (of armAnswer, err error) {
	err = p.do(ctx, http.MethodGet, scope, below, right, nil, &of)
	for next := of.NextLink; next != "" && err == nil; {
		u, bad := url.Parse(next)
		if bad != nil {
			return of, &ownError{errors.New("the next page of Azure Resource Manager has no address")}
		}
		var page armAnswer
		err = p.do(ctx, http.MethodGet, "", "/"+strings.TrimLeft(u.RequestURI(), "/"), right, nil, &page)
		of.Value, next = append(of.Value, page.Value...), page.NextLink
	}
	return of, err
}

// resources are the ids of a subscription's resources that have a type and a name.
func (p *person) resources(ctx context.Context, subscription, kind, name string) (ids []string, err error) {
	filter := url.PathEscape("resourceType eq '" + kind + "' and name eq '" + name + "'")
	found, err := p.get(ctx, "/subscriptions/"+subscription, "/resources?api-version=2021-04-01&$filter="+filter,
		kind+"/read")
	for _, one := range found.Value {
		ids = append(ids, one.ID)
	}
	return ids, err
}

// site finds the function app of a name in the person's subscription, or of an id anywhere.
func (p *person) site(ctx context.Context, name string) (s site, err error) {
	id := name
	if !strings.HasPrefix(name, "/") {
		ids, err := p.resources(ctx, p.subscription, "Microsoft.Web/sites", name)
		switch {
		case err != nil:
			return s, err
		case len(ids) == 0:
			found := fmt.Errorf("no app is named %s in the subscription %s, or you may not see it", name, p.subscription)
			return s, advised(&ownError{found}, "`az account list -o table` lists subscriptions, `az account set --subscription NAME` chooses one")
		case len(ids) > 1:
			found := fmt.Errorf("%d apps are named %s: %s", len(ids), name, strings.Join(ids, ", "))
			return s, advised(&ownError{found}, "give one of these ids in place of the name")
		}
		id = ids[0]
	}
	err = p.do(ctx, http.MethodGet, id, webVersion, "Microsoft.Web/sites/read", nil, &s)
	s.ID = id
	return s, err
}

// signIn reports whether sign-in is on, and whom tokens for the operators' pages are made for; empty where nobody is.
func (p *person) signIn(ctx context.Context, s site) (on bool, audience string, err error) {
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
	err = p.do(ctx, http.MethodGet, s.ID, "/config/authsettingsV2"+webVersion, "Microsoft.Web/sites/config/read", nil,
		&auth)
	entra, on := auth.Properties.IdentityProviders.AzureActiveDirectory, auth.Properties.Platform.Enabled
	if err != nil || !on || entra.Registration.ClientID == "" ||
		(entra.Enabled != nil && !*entra.Enabled) {
		return on, "", err
	}
	return on, "api://" + entra.Registration.ClientID, nil // as docs/settings.md, Sign-in, names it
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
