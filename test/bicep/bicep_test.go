package bicep_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/bicep"
)

var update = flag.Bool("update", false, "rewrite testdata/settings.json")

// Parameter files: as the first deployment writes it, that of existing things, and with all that can be switched on.
const (
	own    = "test/bicep/testdata/own.bicepparam"
	theirs = "deploy/azure/theirs.bicepparam"
	all    = "test/bicep/testdata/all.bicepparam"
)

// files are all that the checkout has of Bicep.
var files = []string{
	"deploy/alerts/alerts.bicep", "deploy/azure/cosmos.bicep", "deploy/azure/main.bicep", theirs, all, own,
}

// evaluated are the parameter files.
var evaluated = []string{own, theirs, all}

// person is who deploys, as deployer() tells.
type person map[string]string

// resource is what a template makes, as evaluated. ID begins with its scope. DependsOn has names as they are written.
type resource struct {
	Type, Name, ID string
	DependsOn      []string
	Body           map[string]any
}

// deployment is an evaluated template.
type deployment struct {
	Resources []resource
	Outputs   map[string]any
}

// answers is a running answer.py.
type answers struct {
	t  *testing.T
	to io.Writer
	in *bufio.Reader
}

// python starts answer.py, or skips the test where `make bicep` has not been run.
func python(t *testing.T) answers {
	t.Helper()
	interpreter, err := filepath.Abs("../../.tools/bicep/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(interpreter); err != nil {
		t.Skip("the parser of Bicep is not installed: make bicep")
	}
	cmd := exec.CommandContext(t.Context(), interpreter, "-B", "answer.py")
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	require.NoError(t, err)
	in, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = to.Close()
		_ = cmd.Wait()
	})
	return answers{t, to, bufio.NewReader(in)}
}

// of checks the files below root and evaluates its parameter files, by their names in the repository.
func (a answers) of(root string, checked, evaluated []string, who person) ([]string, map[string]deployment) {
	a.t.Helper()
	below := func(names []string) []string {
		paths := []string{}
		for _, name := range names {
			paths = append(paths, filepath.Join(root, name))
		}
		return paths
	}
	require.NoError(a.t, json.NewEncoder(a.to).Encode(map[string]any{
		"check": below(checked), "evaluate": below(evaluated), "who": who,
	}))
	line, err := a.in.ReadBytes('\n')
	require.NoError(a.t, err)
	var answer struct {
		Findings []string
		Deployed map[string]deployment
	}
	require.NoError(a.t, json.Unmarshal(line, &answer))
	deployed := map[string]deployment{}
	for path, d := range answer.Deployed {
		deployed[strings.TrimPrefix(path, root+"/")] = d
	}
	return answer.Findings, deployed
}

const repository = "../.."

// Another file would be looked at by nobody.
func TestEachFileIsChecked(t *testing.T) {
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", repository, "ls-files", "*.bicep", "*.bicepparam").Output()
	require.NoError(t, err)
	require.Equal(t, files, strings.Fields(string(tracked)))
}

func TestTheTemplatesAreOfTheVendorsTypes(t *testing.T) {
	findings, _ := python(t).of(repository, files, evaluated, person{})
	require.Empty(t, findings)
}

// At least one other parser of Bicep loses all but the last resource in a parent, and what is in them, in silence.
func TestNestedResourcesAreSeen(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nested.bicep"), []byte(`
resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: 'a'
  location: 'b'
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }

  resource policy 'managementPolicies' = {
    name: 'default'
    wrong1: 1
  }

  resource blobs 'blobServices' = {
    name: 'default'
    wrong2: 2

    resource first 'containers' = { name: 'c', wrong3: 3 }
    resource second 'containers' = [for name in ['d', 'e']: { name: name, wrong4: 4 }]
  }
}
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nested.bicepparam"), []byte("using 'nested.bicep'\n"), 0o600))
	findings, deployed := python(t).of(dir, []string{"nested.bicep"}, []string{"nested.bicepparam"}, person{})
	for i, name := range []string{"policy.wrong1", "blobs.wrong2", "first.wrong3", "second.wrong4"} {
		require.Contains(t, findings[i], name+": is not known")
	}
	names := []string{}
	for _, made := range deployed["nested.bicepparam"].Resources {
		names = append(names, made.Name)
	}
	require.Equal(t, []string{"a", "a/default", "a/default", "a/default/c", "a/default/d", "a/default/e"}, names)
}

// Another person, and a pipeline, deploy what the first one did, also in the middle of a shadow.
func TestASecondDeploymentChangesNothing(t *testing.T) {
	python := python(t)
	_, first := python.of(repository, nil, evaluated, person{"objectId": "1", "userPrincipalName": "ann@example.com"})
	require.Len(t, first, len(evaluated))
	require.Equal(t, "shadow", first[theirs].settings()["MODE"])
	for _, next := range []person{{"objectId": "2", "userPrincipalName": "bob@example.com"}, {"objectId": "3"}} {
		_, again := python.of(repository, nil, evaluated, next)
		require.Equal(t, first, again)
	}
}

func TestSettingsGolden(t *testing.T) {
	_, deployed := python(t).of(repository, nil, []string{own}, person{})
	written, err := json.MarshalIndent(deployed[own].settings(), "", "  ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/settings.json", append(written, '\n'), 0o600))
		return
	}
	golden, err := bicep.Settings()
	require.NoError(t, err)
	require.Equal(t, golden, deployed[own].settings(), "go test ./test/bicep -run Golden -update")
}

// settings are the app settings.
func (d deployment) settings() map[string]string {
	values := map[string]string{}
	for _, made := range d.of("Microsoft.Web/sites/config") {
		if strings.HasSuffix(made.Name, "/appsettings") {
			properties, _ := made.Body["properties"].(map[string]any)
			for name, value := range properties {
				values[name], _ = value.(string)
			}
		}
	}
	return values
}

// of are the resources of a type.
func (d deployment) of(kind string) []resource {
	return slices.DeleteFunc(slices.Clone(d.Resources), func(made resource) bool { return made.Type != kind })
}
