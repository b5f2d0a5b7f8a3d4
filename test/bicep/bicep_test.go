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

var update = flag.Bool("update", false, "rewrite testdata/deployed.json")

// Parameter files: as a first deployment writes it, that of existing things, what their owner runs, all that can be
// switched on, and only what has no default.
const (
	own    = "test/bicep/testdata/own.bicepparam"
	theirs = "deploy/azure/theirs.bicepparam"
	owner  = "test/bicep/testdata/owner.bicepparam"
	all    = "test/bicep/testdata/all.bicepparam"
	bare   = "test/bicep/testdata/bare.bicepparam"
)

var evaluated = []string{theirs, all, bare, own, owner}

const repository = "../.."

// person is who deploys, as deployer() tells.
type person map[string]string

// answers is a running answer.py.
type answers struct {
	t  *testing.T
	to io.Writer
	in *bufio.Reader
}

// python starts answer.py, or skips the test where `make bicep` has not been run.
func python(t *testing.T) answers {
	t.Helper()
	interpreter, err := filepath.Abs(filepath.Join(repository, ".tools/bicep/bin/python"))
	require.NoError(t, err)
	if _, err := os.Stat(interpreter); err != nil {
		t.Skip("the parser of Bicep is not installed: make bicep")
	}
	// Go repeats a result unless a file has changed that the test opened: so it opens those that Python reads.
	for _, pattern := range []string{"*.py", "types.json", "testdata/*", repository + "/deploy/*/*"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			_, err := os.ReadFile(path)
			require.NoError(t, err)
		}
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

// answer says what parameter files deploy, what of it does not fit, and which names of a template none of them needs.
type answer struct {
	Findings []string
	Unused   map[string][]string
	Deployed map[string]bicep.Deployment
}

// of evaluates parameter files below root.
func (a answers) of(root string, evaluate []string, who person) answer {
	a.t.Helper()
	request := map[string]any{"root": root, "evaluate": evaluate, "who": who}
	require.NoError(a.t, json.NewEncoder(a.to).Encode(request))
	line, err := a.in.ReadBytes('\n')
	require.NoError(a.t, err)
	var got answer
	require.NoError(a.t, json.Unmarshal(line, &got))
	return got
}

// Each file of Bicep is evaluated, fits the vendor's types, means what it should, and has no name that is not needed.
func TestTheTemplatesAreOfTheVendorsTypes(t *testing.T) {
	got := python(t).of(repository, evaluated, person{})
	require.Empty(t, got.Findings)
	require.Empty(t, problems(got.Deployed))
	seen := slices.Clone(evaluated)
	for template, unused := range got.Unused {
		require.Empty(t, unused, template)
		seen = append(seen, template)
	}
	git := exec.CommandContext(t.Context(), "git", "-C", repository, "ls-files", "*.bicep", "*.bicepparam")
	tracked, err := git.Output()
	if err != nil {
		t.Skipf("whether each template is looked at needs a checkout, and this is none: %v", err)
	}
	require.ElementsMatch(t, strings.Fields(string(tracked)), seen)
}

// What the parameter files deploy. A change of a template shows here what it changes.
func TestDeployedGolden(t *testing.T) {
	deployed := python(t).of(repository, []string{own, theirs, owner, all}, person{}).Deployed
	if *update {
		written, err := json.MarshalIndent(deployed, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("testdata/deployed.json", append(written, '\n'), 0o600))
		return
	}
	golden, err := bicep.Deployed()
	require.NoError(t, err)
	require.Equal(t, golden, deployed, "go test ./test/bicep -run Golden -update")
}

// Another person, and a pipeline, deploy what the first one did, also in the middle of a shadow: by the files that make
// azure has written.
func TestASecondDeploymentChangesNothing(t *testing.T) {
	python, dir := python(t), t.TempDir()
	main, err := filepath.Abs(filepath.Join(repository, "deploy/azure/main.bicep"))
	require.NoError(t, err)
	written := []string{"own.golden", "pipeline.golden", "theirs.golden"}
	for i, name := range written {
		text, err := os.ReadFile(filepath.Join(repository, "cmd/azure/testdata", name))
		require.NoError(t, err)
		file, _, _ := strings.Cut(string(text), "\n----\n")
		file = strings.Replace(file, "using 'deploy/azure/main.bicep'", "using '"+main+"'", 1)
		written[i] = name + ".bicepparam"
		require.NoError(t, os.WriteFile(filepath.Join(dir, written[i]), []byte(file), 0o600))
	}
	first := python.of(dir, written, person{"objectId": "1", "userPrincipalName": "ann@example.com"})
	require.Empty(t, first.Findings)
	for _, next := range []person{{"objectId": "2", "userPrincipalName": "bob@example.com"}, {"objectId": "3"}} {
		require.Equal(t, first, python.of(dir, written, next))
	}
	require.Equal(t, "shadow", first.Deployed[written[2]].Settings()["MODE"])
	golden, err := bicep.Deployed()
	require.NoError(t, err)
	for i, made := range first.Deployed[written[0]].Resources {
		if made.Type == server { // it is there, and keeps its administrator
			delete(golden[own].Resources[i].Body["properties"].(map[string]any), "administrators")
			delete(made.Body["properties"].(map[string]any), "administrators")
		}
		require.Equal(t, golden[own].Resources[i], made)
	}
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
	got := python(t).of(dir, []string{"nested.bicepparam"}, person{})
	for i, name := range []string{"policy.wrong1", "blobs.wrong2", "first.wrong3", "second.wrong4"} {
		require.Contains(t, got.Findings[i], name+": is not known")
	}
	names := []string{}
	for _, made := range got.Deployed["nested.bicepparam"].Resources {
		names = append(names, made.Name)
	}
	require.Equal(t, []string{"a", "a/default", "a/default", "a/default/c", "a/default/d", "a/default/e"}, names)
}
