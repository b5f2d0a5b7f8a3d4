package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/azuretest"
)

// The app of the walk and its identity.
const (
	walkApp    = "func-sqlwriter-web-5tl76yt4"
	walkClient = "00000000-0000-4000-8000-000000000003"
)

// walk is somebody in a clone of this repository, with az and func on the PATH that know what the walk needs and no
// more. The local stack is in the place of what the template makes.
type walk struct {
	*stack

	arm       *azuretest.ARM
	checkout  string
	functions []string
}

// TestTheWalkToAzure types what docs/deploy.md says to somebody with a clone and an `az login`. The lines after make
// azure are those that it prints: each fits its line of the page.
func TestTheWalkToAzure(t *testing.T) {
	w := newWalk(t)
	steps := commandsOf(t, "../../docs/deploy.md")
	require.Len(t, steps, 1)
	lines := steps[0].commands
	require.Len(t, lines, 6, "with two repeats of the last one there are eight")
	var printed []string
	values := map[string]string{}
	for i, line := range lines {
		require.NotRegexp(t, `(?i)export|password|key|token|connection`, line, "nothing is set, and no key is typed")
		if i > 1 {
			line = filled(t, line, printed, values)
		}
		if strings.HasPrefix(line, "make publish") {
			go w.published()
		}
		out := w.types(line)
		switch {
		case strings.HasPrefix(line, "make azure"):
			_, next, _ := strings.Cut(out, "\nNext:\n")
			printed = strings.Split(strings.TrimSpace(next), "\n")
			require.Len(t, printed, len(lines)-2, "it prints the lines that the page has after it")
		case strings.HasPrefix(line, "make publish"):
			require.Regexp(t, `(?m)^functions +ok +all 9, none with an error`, out, "it ends with doctor")
			require.Regexp(t, `(?m)^sql +ok`, out)
			w.arm.Others = nil // the local stack's settings again
		case strings.Contains(line, "document submit"):
			w.waitUntilQuiet(1)
		case strings.Contains(line, "document why"):
			require.Regexp(t, `(?m)^status +committed`, out)
		}
	}
	require.Equal(t, map[string]string{"APP": walkApp, "IDENTITY": walkApp, "CLIENT_ID": walkClient}, values)
	db, err := sqlite.Open(t.Context(), strings.TrimPrefix(w.connection, sqlite.Scheme), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var part string
	require.NoError(t, db.Reader().QueryRowContext(t.Context(),
		"SELECT CLN_MFR_PRT_NUM FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421549").Scan(&part))
	require.Equal(t, "425", part)
}

// filled finds the printed line that fits a line of the page, in which words in capitals are to be filled in.
func filled(t *testing.T, line string, printed []string, values map[string]string) string {
	t.Helper()
	fits := regexp.MustCompile("^ *(" + regexp.MustCompile(`\b(APP|IDENTITY|CLIENT_ID)( |$)`).
		ReplaceAllString(regexp.QuoteMeta(line), `(?P<$1>[\w-]+)$2`) + ")$")
	for _, p := range printed {
		m := fits.FindStringSubmatch(p)
		if m == nil {
			continue
		}
		for i, name := range fits.SubexpNames() {
			if name != "" {
				require.Equal(t, cmp.Or(values[name], m[i]), m[i], "one %s", name)
				values[name] = m[i]
			}
		}
		return m[1]
	}
	require.Fail(t, "make azure prints no such line", "%s\n%v", line, printed)
	return ""
}

// types runs a line as a shell does, in the clone, and returns what it prints.
func (w *walk) types(line string) string {
	w.t.Helper()
	w.t.Logf("$ %s", line)
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", line)
	cmd.Dir = w.checkout
	for _, variable := range os.Environ() { // those of who runs this test are no settings
		if !regexp.MustCompile(`^(SQL|COSMOS|SYS_NAME|MODE|LEASE|MAKE|MFLAGS)`).MatchString(variable) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return string(out)
}

// published starts what func was given, and lets it end. From then on the Resource Manager says what it would of an
// environment that make azure has made; of it the local stack has other settings.
func (w *walk) published() {
	w.t.Helper()
	given := filepath.Join(w.dir, "given")
	there := func() bool { _, err := os.Stat(given); return err == nil }
	if !assert.Eventually(w.t, there, 5*time.Minute, time.Second) {
		return
	}
	root := filepath.Join(w.checkout, ".stage")
	require.NoFileExists(w.t, filepath.Join(root, "local.settings.json"))
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" { // what is published runs on Azure alone
		root = scriptRoot
	}
	w.handler = w.launchFrom(root, "walk", nil)
	w.host = w.handler.Host
	w.arm.Sites[0].Keys = map[string]string{"operator-" + w.arm.Person: functionKey}
	made := azuretest.Deployment{
		Subscription: w.arm.Subscription, Group: "sqlwriter", Site: walkApp, Host: w.arm.Sites[0].Host,
		Client: walkClient, Principal: walkClient, Given: time.Now().Add(-time.Hour),
		Published: time.Now(), Functions: w.functions,
	}
	w.arm.Resources, w.arm.Others = made.Resources(), made.Answers()
	assert.NoError(w.t, os.Remove(given))
}

// withoutServices answers for what the walk does not have: Service Bus, storage, and five minutes until a tick.
func withoutServices(r *http.Response) error {
	var answer struct {
		Rows []map[string]string `json:"rows"`
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return err
	}
	for _, row := range answer.Rows {
		switch row["name"] {
		case "servicebus", "blobs", "timer":
			row["state"] = "ok"
		}
	}
	text, err := json.Marshal(answer)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return err
}

// newWalk puts az and func on the PATH, and a copy of what git knows of this repository into a folder.
func newWalk(t *testing.T) *walk {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "--error-unmatch", "Makefile")
	if err := git.Run(); err != nil {
		t.Skipf("the walk begins in a clone, and this is none: %v", err)
	}
	w := &walk{stack: newContainers(t), checkout: t.TempDir()}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `cd ../.. &&
		git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$0" && cd "$0" &&
		git init -q && git add -A && git -c user.name=e2e -c user.email=e2e@localhost commit -qm all`,
		w.checkout).CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(w.dir, "sqlwriter.db")
	require.NoError(t, os.WriteFile(file, nil, 0o600)) // an empty database
	w.connection = "sqlite:" + file

	site := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		to := &url.URL{Scheme: "http", Host: w.host.Address()}
		proxy := httputil.NewSingleHostReverseProxy(to)
		if strings.HasSuffix(r.URL.Path, "/doctor") {
			proxy.ModifyResponse = withoutServices
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(site.Close)
	w.arm = azuretest.NewARM(t)
	id := "/subscriptions/" + w.arm.Subscription + "/resourceGroups/inv/providers/Microsoft.Web/sites/" + walkApp
	w.arm.Sites = []azuretest.Site{
		{ID: id, Host: strings.TrimPrefix(site.URL, "https://"), Settings: w.settings(), SignIn: "{}"},
	}
	trusted := filepath.Join(w.dir, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.arm.Certificate().Raw})
	require.NoError(t, os.WriteFile(trusted, certificate, 0o600))
	t.Setenv("SSL_CERT_FILE", trusted)

	outputs := map[string]any{}
	for name, value := range map[string]any{
		"app": walkApp, "url": site.URL, "identityName": walkApp, "clientId": walkClient, "missingRoles": []any{},
	} {
		outputs[name] = map[string]any{"value": value}
	}
	made, err := json.Marshal(map[string]any{"properties": map[string]any{"outputs": outputs}})
	require.NoError(t, err)
	answers := w.arm.Answers(nil)
	answers["group create -n inv -l westeurope"] = "{}"
	answers["deployment group show -g inv -n sqlwriter -o json"] = "ERROR: (DeploymentNotFound) Deployment"
	answers["resource list -g inv -o json"] = "[]"
	answers["ad signed-in-user show -o json"] = `{"id": "` + w.arm.Person + `", "userPrincipalName": "ann@example.com"}`
	answers["deployment group create -g inv -n sqlwriter -f deploy/azure/main.bicep -p inv.bicepparam "+
		"-o json"] = string(made)
	answers["resource list --resource-type Microsoft.Web/sites --name "+walkApp+" -o json"] = `[{"id": "` + id + `"}]`
	functions, err := filepath.Glob("../../functions/*")
	require.NoError(t, err)
	for _, function := range functions {
		w.functions = append(w.functions, filepath.Base(function))
	}
	azuretest.Az(t, answers)
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n'azure functionapp publish %s --custom --no-build')\n"+
		"test -f host.json && test -x handler && touch '%[2]s' && while test -f '%[2]s'; do sleep 1; done ;;\n*) exit 2 ;;\nesac\n",
		walkApp, filepath.Join(w.dir, "given"))
	//nolint:gosec // a program must be executable
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "func"), []byte(script), 0o700))
	t.Setenv("PATH", w.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return w
}
