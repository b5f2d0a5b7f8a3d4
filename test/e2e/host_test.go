package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/funchost"
)

// asHost makes this test binary a host. Its value is the path of a hostFile.
const asHost = "SQLWRITER_E2E_HOST"

// hostFile is what a host in a process of its own needs.
type hostFile struct {
	Root     string
	Settings map[string]string
	Tune     funchost.Tune
	// Listen is its address, and Env what the handler has beside PATH and its like; both may be empty.
	Listen string
	Env    []string
}

// hostProcess starts a host in a process of its own, which a test may kill, with an environment of its own.
func (s *stack) hostProcess(f hostFile, env ...string) *exec.Cmd {
	s.t.Helper()
	text, err := json.Marshal(f)
	require.NoError(s.t, err)
	file := filepath.Join(s.dir, "host.json")
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	cmd := exec.Command(os.Args[0]) //nolint:gosec,noctx // this test binary, which the test kills
	cmd.Env = append(append(os.Environ(), env...), asHost+"="+file)
	cmd.Stderr = os.Stderr
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // the test may have killed it
		_ = cmd.Wait()
	})
	return cmd
}

// hostFrom runs the host of a hostFile until this process is killed.
func hostFrom(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var f hostFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	return funchost.Run(context.Background(), funchost.Options{
		ScriptRoot: f.Root, Settings: f.Settings, Log: zerolog.Nop(), Instance: "e2e", Listen: f.Listen,
		Env:  append(funchost.PlainEnv(), f.Env...),
		Keys: funchost.Keys{Named: map[string]string{"operator-e2e": functionKey}}, Tune: f.Tune,
	})
}
