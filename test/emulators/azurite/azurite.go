// Package azurite runs Azurite, the vendor's blob storage emulator, for tests, and a proxy that injects faults into its
// connections.
//
// Install Azurite once with `make azurite`. Start gives one test a server of its own; Run starts one for several tests.
// A client with the ConnectionString of a Proxy goes through the proxy, which fails requests as Plan and Always say.
package azurite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The account of every Azurite, published by the vendor.
const (
	accountName = "devstoreaccount1"
	accountKey  = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==" //nolint:gosec // published by the vendor
)

// Server is an Azurite of its own: a process on a free port, with its files in a folder of its own.
type Server struct {
	// Address is HOST:PORT.
	Address string

	cmd   *exec.Cmd
	dir   string
	stdin io.Closer
	ended chan struct{}
}

// ConnectionString is for a client of the server.
func (s *Server) ConnectionString() string { return connectionString(s.Address) }

func connectionString(address string) string {
	return "DefaultEndpointsProtocol=http;AccountName=" + accountName + ";AccountKey=" + accountKey +
		";BlobEndpoint=http://" + address + "/" + accountName + ";"
}

// startTimeout is how long Node may take to load it.
const startTimeout = time.Minute

// Start starts an Azurite for one test. The end of the test stops it.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Run()
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// Run starts an Azurite for several tests. The caller stops it; if its process ends first, the
// Azurite ends too.
func Run() (*Server, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	tools := filepath.Join(root, "test", "emulators", "azurite")
	program := filepath.Join(tools, "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(program); err != nil {
		return nil, errors.New("Azurite is not installed: make azurite (it needs Node.js and npm)") //nolint:staticcheck // a name
	}
	dir, err := os.MkdirTemp("", "azurite")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, ended: make(chan struct{}), cmd: exec.Command("node",
		"--require", filepath.Join(tools, "stop-with-parent.cjs"), program,
		"--blobHost", "127.0.0.1", "--blobPort", "0", "--location", dir, "--skipApiVersionCheck",
		"--silent", "--disableTelemetry")}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// start starts the process and waits until it listens.
func (s *Server) start() error {
	var said strings.Builder
	s.cmd.Stderr = &said
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	listens := make(chan string, 1)
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if _, address, ok := strings.Cut(lines.Text(), "successfully listens on http://"); ok {
				listens <- address
			}
		}
		_ = s.cmd.Wait() // a signal ends it, which counts as an error
	}()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case s.Address = <-listens:
		return nil
	case <-s.ended:
		return fmt.Errorf("Azurite ended at once: %s", said.String()) //nolint:staticcheck // a name
	case <-timeout.C:
		s.Stop()
		return fmt.Errorf("Azurite does not listen after %v", startTimeout) //nolint:staticcheck // a name
	}
}

// Stop kills the server and removes its files.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // fails only when it has ended already
	_ = s.stdin.Close()
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

// moduleRoot finds the folder of go.mod above the test's.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
