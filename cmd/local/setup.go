package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// azuriteDir and busDir are the npm folders of Azurite and of the Service Bus emulator; azuriteMain is Azurite's
// program.
var (
	busDir      = filepath.Join("test", "emulators", "servicebus")                           //nolint:gochecknoglobals // a constant path
	azuriteDir  = filepath.Join("test", "emulators", "azurite")                              //nolint:gochecknoglobals // a constant path
	azuriteMain = filepath.Join("node_modules", "azurite", "dist", "src", "blob", "main.js") //nolint:gochecknoglobals // a constant path
)

// repositoryRoot finds the folder of go.mod from the working directory upward.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("run this inside the repository: no go.mod here or above")
		}
		dir = up
	}
}

// prerequisites is an error if this machine lacks a tool.
func prerequisites() error {
	var absent []string
	for _, tool := range []struct{ command, name string }{
		{"go", "Go 1.26 (go.dev/dl)"},
		{"node", "Node.js 20 or later (nodejs.org)"},
		{"npm", "npm (comes with Node.js)"},
	} {
		if _, err := exec.LookPath(tool.command); err != nil {
			absent = append(absent, tool.name)
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("not on the PATH: %s", strings.Join(absent, ", "))
	}
	return nil
}

// phases records the duration of each part of the start. It is safe for concurrent use.
type phases struct {
	mu    sync.Mutex
	parts []string
	// running are the parts that have not ended.
	running []string
}

// time runs one part.
func (p *phases) time(name string, part func() error) error {
	start := time.Now()
	p.mu.Lock()
	p.running = append(p.running, name)
	p.mu.Unlock()
	err := part()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, fmt.Sprintf("%s %.1f s", name, time.Since(start).Seconds()))
	p.running = slices.Delete(p.running, slices.Index(p.running, name), slices.Index(p.running, name)+1)
	return err
}

// sayEvery is the interval of the lines that show a long start.
const sayEvery = 5 * time.Second

// say calls line with the running parts until the caller calls stop.
func (p *phases) say(line func(after time.Duration, running string)) (stop func()) {
	start, ticker, stopped := time.Now(), time.NewTicker(sayEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				p.mu.Lock()
				running := strings.Join(p.running, ", ")
				p.mu.Unlock()
				line(time.Since(start), running)
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(stopped)
	}
}

func (p *phases) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.parts, ", ")
}

// installNPM runs npm ci unless the folder matches the lock file already. npm writes its own copy of the lock file
// last, so that copy shows a complete installation. size is about what npm downloads. Scripts of packages are not run:
// nothing here needs one.
func installNPM(ctx context.Context, root, folder, size string, p *phases) error {
	dir := filepath.Join(root, folder)
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	done, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	err = p.time("npm ci in "+folder+" ("+size+")", func() error {
		return command(ctx, dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	})
	if err != nil {
		return fmt.Errorf("install what %s needs: %w", folder, err)
	}
	return nil
}

// command runs a program. The error contains the program's output.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
