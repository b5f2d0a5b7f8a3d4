package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/neterr"
	"sqlwriter/internal/opsapi"
)

// Environment variables of the app's address, and of the function key or the sign-in that opens it.
const (
	appVariable      = "SQLWRITER_APP"
	keyVariable      = "SQLWRITER_KEY" //nolint:gosec // a name
	audienceVariable = "SQLWRITER_AUDIENCE"
)

// target is the app that a command asks.
type target struct {
	// address is the app's; from says where it is written.
	address, from string
	// key or audience opens the app; a key wins. keyName is that of a key that the Resource Manager gave.
	key, keyName, audience string
	// local says that it is the app of the running local stack.
	local bool
	// person and site are those of an app that is named; nil without one.
	person *person
	site   *site
}

// stackPath is the file of the local stack, as operators know it.
const stackPath = stackfile.Dir + "/" + stackfile.Name

// target finds the app: that of --app, else of SQLWRITER_APP, else of the running local stack.
func (a *app) target(ctx context.Context) (target, error) {
	t := target{key: a.env(keyVariable), audience: a.env(audienceVariable)}
	switch {
	case a.Settings != "":
		return t, usagef("--settings: goes with commands that open SQL or Cosmos DB by themselves; this one asks the app")
	case a.App != "":
		t.from = "--app"
		err := a.open(ctx, &t, a.App)
		return t, err
	case a.env(appVariable) != "":
		t.from = appVariable
		err := a.open(ctx, &t, a.env(appVariable))
		return t, err
	}
	stack, running, err := stackfile.Read(ctx, filepath.Join(a.dir, stackfile.Dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, noApp(
			"no app is named: there is no --app, no "+appVariable+", and no "+stackPath+
				" of a local stack in this folder",
			"`make run` starts a local stack; another app is named by `sqlwriterctl status --app NAME`")
	case err != nil:
		return t, err
	case !running:
		return t, noApp("the local stack of "+stackPath+" has ended, and no other app is named",
			"`make run` starts it again")
	case stack.Functions == "":
		return t, noApp("the local stack of "+stackPath+" has servers only (make servers)",
			"where `func start` runs in .stage: `"+keyVariable+"=any sqlwriterctl status --app http://127.0.0.1:7071`")
	}
	return target{address: stack.Functions, from: stackPath, key: stack.FunctionKey, local: true}, nil
}

// noApp is the error when no app can be asked.
func noApp(what, advice string) error { return advised(usagef("%s", what), "%s", advice) }

// ask makes a call of the app. An error names flags where the app names members.
func ask[Q, A any](ctx context.Context, a *app, call opsapi.Call[Q, A], q Q) (answer A, err error) {
	if err = a.connect(ctx); err == nil {
		answer, err = opsapi.Do(ctx, a.caller, call, q)
	}
	return answer, a.asTyped(err)
}

// connect finds the app and names it on stderr, once.
func (a *app) connect(ctx context.Context) error {
	if a.caller != nil {
		return nil
	}
	t, err := a.target(ctx)
	if err != nil {
		return err
	}
	caller, how, err := t.caller(a.http)
	if err != nil {
		return err
	}
	a.asked, a.caller = t, caller
	a.notef("app: %s (%s), %s", t.address, t.from, how)
	return nil
}

// caller opens the app.
func (t target) caller(client *http.Client) (caller opsapi.Caller, how string, err error) {
	switch {
	case t.key != "":
		caller, err = opsapi.Remote(t.address, opsapi.Credential{Key: t.key}, client)
		how = "with " + cmp.Or(t.keyName, "a function key")
	case t.audience != "":
		caller, err = signedIn(t.address, t.audience, client)
		how = "as the signed-in user"
	default:
		return nil, "", noApp(fmt.Sprintf("the app at %s (%s) needs a function key or a sign-in", t.address, t.from),
			fmt.Sprintf(
				"name the app instead of its address (--app NAME), or set %s to a function key of Ops, or %s to ask as the user of `az login`",
				keyVariable, audienceVariable))
	}
	if err != nil {
		err = usagef("%s: %w", t.from, err)
	}
	return caller, how, err
}

// signedIn makes the caller of an app that the user of az or azd opens.
func signedIn(address, audience string, client *http.Client) (opsapi.Caller, error) {
	cli, err := azidentity.NewAzureCLICredential(nil)
	if err != nil {
		return nil, err
	}
	azd, err := azidentity.NewAzureDeveloperCLICredential(nil)
	if err != nil {
		return nil, err
	}
	chain, err := azidentity.NewChainedTokenCredential([]azcore.TokenCredential{cli, azd}, nil)
	if err != nil {
		return nil, err
	}
	return opsapi.Remote(address, opsapi.Credential{Token: func(ctx context.Context) (string, error) {
		token, err := chain.GetToken(ctx,
			policy.TokenRequestOptions{Scopes: []string{strings.TrimSuffix(audience, "/.default") + "/.default"}})
		if err != nil {
			return "", advised(&azError{fmt.Errorf("nobody is signed in: %w", err)},
				"sign in with `az login` or `azd auth login`; the app's registration must know them (docs/settings.md, Sign-in)")
		}
		return token.Token, nil
	}}, client)
}

// lost describes an app that gave no answer: which one, and why, in the words of no library.
func (t target) lost(err *opsapi.LostError) (what, advice string) {
	advice = fmt.Sprintf("`curl -fsS %s/api/health` says whether it runs; --verbose prints the details",
		strings.TrimSuffix(t.address, "/"))
	if t.local {
		advice = "`make run` starts the local stack; its terminal says what happened"
	}
	var call *url.Error
	if !errors.As(err, &call) { // an answer, or a part of one
		return fmt.Sprintf("%s (%s, %s)", err, t.address, t.from), advice
	}
	return fmt.Sprintf("the app at %s (%s) does not answer: %s", t.address, t.from, whyLost(err)), advice
}

// whyLost says why no answer came, in the words of no library.
func whyLost(err error) string {
	switch {
	case neterr.IsRefused(err):
		return "nothing listens there"
	case neterr.IsDNS(err):
		return "its name cannot be looked up"
	case neterr.IsTLS(err):
		return "its certificate is not trusted"
	case neterr.IsUnreachable(err):
		return "this machine has no way to it"
	case neterr.IsTimeout(err):
		return "no answer came in time"
	}
	return "the connection ended"
}

// mayBeDone reports whether a request may have changed something, although no answer came.
func mayBeDone(err *opsapi.LostError) bool {
	return err.Acted && !neterr.IsRefused(err) && !neterr.IsDNS(err) && !neterr.IsTLS(err) && !neterr.IsUnreachable(err)
}
