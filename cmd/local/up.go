package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/timer"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/emulators/servicebus"
)

// The preferred ports are those of the vendors' tools. Another port is used if one is taken.
const (
	functionsPort = 7071
	cosmosPort    = 8081
	blobPort      = 10000
	busPort       = 5672
	// busControlPort is the port of the Service Bus emulator's control API, as in the vendor's emulator.
	busControlPort = 5300
)

// readyWithin bounds the start of a server.
const readyWithin = 30 * time.Second

// up builds the handler and starts all servers, independent ones at the same time. Without a host there is no handler.
func (s *stack) up(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	functions, err := s.addresses(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	defer s.took.say(func(after time.Duration, running string) {
		s.out.Linef("  %.0f s: %s", after.Seconds(), running)
	})()
	err = s.race(ctx, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		if !s.hostless {
			g.Go(func() error { return buildHandler(ctx, s.root, s.stage, &s.took) })
		}
		g.Go(func() error {
			if err := installNPM(ctx, s.root, azuriteDir, "80 MB", &s.took); err != nil {
				return err
			}
			return s.took.time("Azurite", func() error { return s.startBlob(ctx) })
		})
		g.Go(func() error {
			if err := installNPM(ctx, s.root, busDir, "1 MB", &s.took); err != nil {
				return err
			}
			return s.took.time("Service Bus", func() error { return s.startBus(ctx) })
		})
		g.Go(func() error { return s.took.time("Cosmos", func() error { return s.startCosmos(ctx, exe) }) })
		g.Go(func() error { return s.took.time("SQL", func() error { return s.startSQL(ctx) }) })
		return g.Wait()
	})
	if err != nil {
		return err
	}
	if !s.hostless {
		err = s.race(ctx, func(ctx context.Context) error {
			return s.took.time("host and handler", func() error { return s.startFunctions(ctx, exe, functions) })
		})
		if err != nil {
			return err
		}
	}
	s.isUp.Store(true)
	s.out.Linef("up in %.1f s (%s)", time.Since(started).Seconds(), s.took.String())
	s.out.Linef("  functions %s   Cosmos %s   blob %s   Service Bus %s   SQL %s", cmp.Or(s.file.Functions, "none"), s.file.Cosmos, s.file.Blob, s.file.ServiceBus, s.db)
	return nil
}

// addresses chooses the ports, writes the settings, and returns the host's address, empty without a host.
func (s *stack) addresses(ctx context.Context) (functions string, err error) {
	ports, hosts := []int{cosmosPort, blobPort, busPort, busControlPort, functionsPort}, [5]string{}
	if s.hostless { // the user's own host takes that port
		ports = ports[:len(ports)-1]
	}
	for i, preferred := range ports {
		port, err := proc.Port(ctx, preferred)
		if err != nil {
			return "", err
		}
		if port != preferred {
			s.out.Linef("port %d is taken, using %d", preferred, port)
		}
		hosts[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	s.file.Cosmos, s.file.Blob = "http://"+hosts[0], "http://"+hosts[1]
	s.file.ServiceBus, s.file.ServiceBusControl = "amqp://"+hosts[2], "http://"+hosts[3]
	if !s.hostless {
		s.file.Functions, s.file.FunctionKey = "http://"+hosts[4], functionKey
	}
	s.file.Settings = filepath.Join(s.dir, "local.settings.json")
	connection := s.db.connection()
	if !s.hostless {
		if s.sql, connection, err = s.db.behindSwitch(ctx); err != nil {
			return "", err
		}
		if err := s.serveControl(ctx); err != nil {
			return "", err
		}
	}
	if s.settings, err = localSettings(s.file.Cosmos, s.file.Blob, hosts[2], connection); err != nil {
		return "", err
	}
	if err := writeSettings(s.file.Settings, s.settings); err != nil {
		return "", err
	}
	return hosts[4], stackfile.Write(s.dir, s.file)
}

// launch starts a server and records it in stack.json.
func (s *stack) launch(ctx context.Context, spec proc.Spec) error {
	spec.Log = filepath.Join(s.logs(), spec.Name+".log")
	p, err := s.group.Start(ctx, spec)
	if err != nil {
		return err
	}
	id, err := stackfile.Identify(ctx, spec.Name, p.PID())
	if err != nil {
		return nil //nolint:nilerr // the process has ended already; the group reports why
	}
	return s.record(id)
}

func (s *stack) record(p stackfile.Process) error {
	s.took.mu.Lock() // servers start side by side
	defer s.took.mu.Unlock()
	s.file.Servers = append(slices.DeleteFunc(s.file.Servers, func(old stackfile.Process) bool { return old.Name == p.Name }), p)
	return stackfile.Write(s.dir, s.file)
}

func (s *stack) startBlob(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.file.Blob[len("http://"):])
	if err != nil {
		return err
	}
	dir := filepath.Join(s.root, azuriteDir)
	err = s.launch(ctx, proc.Spec{
		Name: "azurite", Path: "node", Args: []string{
			"--require", filepath.Join(dir, "stop-with-parent.cjs"), filepath.Join(dir, azuriteMain),
			"--blobHost", host, "--blobPort", port, "--location", filepath.Join(s.dir, "azurite"),
			"--skipApiVersionCheck", "--silent", "--disableTelemetry",
		},
	})
	if err != nil {
		return err
	}
	return answers(ctx, s.file.Blob, nil)
}

// startBus starts the Service Bus emulator with the queues that the settings name.
func (s *stack) startBus(ctx context.Context) error {
	var queues []servicebus.Queue
	for _, setting := range []string{config.RunsQueue, config.BatchesQueue} {
		queues = append(queues, servicebus.Queue{Name: s.settings[setting], RequiresDuplicateDetection: true})
	}
	path, args, err := servicebus.Options{
		Dir: filepath.Join(s.root, busDir), Queues: queues, AMQP: strings.TrimPrefix(s.file.ServiceBus, "amqp://"),
		Control: strings.TrimPrefix(s.file.ServiceBusControl, "http://"), Journal: filepath.Join(s.dir, "servicebus.jsonl"),
	}.Command()
	if err != nil {
		return err
	}
	if err := s.launch(ctx, proc.Spec{Name: "servicebus", Path: path, Args: args}); err != nil {
		return err
	}
	return answers(ctx, s.file.ServiceBusControl+"/queues", nil)
}

// startCosmos starts the Cosmos DB emulator and creates the containers.
func (s *stack) startCosmos(ctx context.Context, exe string) error {
	err := s.launch(ctx, proc.Spec{Name: "cosmosdb", Path: exe, Args: []string{
		"cosmosdb", "--listen", s.file.Cosmos[len("http://"):], "--journal", filepath.Join(s.dir, journalName),
	}})
	if err != nil {
		return err
	}
	if err := answers(ctx, s.file.Cosmos+"/_emulator/stats", nil); err != nil {
		return err
	}
	database, container := s.settings[config.CosmosDatabase], s.settings[config.CosmosContainer]
	s.documents, err = open.Results(configOf(s.settings).Cosmos)
	if err != nil {
		return err
	}
	err = provision.Make(ctx, s.settings[config.CosmosConnection], database, provision.Results(container),
		provision.Own(s.settings[config.ControlContainer]), provision.Leases(s.settings[config.LeaseContainer]))
	if err != nil {
		return err
	}
	s.watch, err = newWatcher(s.file.Cosmos, database, container)
	return err
}

// startSQL creates the tables and the detail rows that the samples need, and records what is in them.
func (s *stack) startSQL(ctx context.Context) (err error) {
	if err := s.db.make(ctx); err != nil {
		return err
	}
	docs, err := allSamples()
	if err != nil {
		return err
	}
	lines := sample.Lines(docs)
	made, err := sample.SeedLines(ctx, s.db.pool(), lines)
	if err != nil {
		return err
	}
	if made == int64(len(lines)) {
		s.before, err = s.db.read(ctx)
	}
	return err
}

// functionsName is the name of the host's process.
const functionsName = "functions"

// startFunctions starts the host on the staged root and waits until the handler is ready.
func (s *stack) startFunctions(ctx context.Context, exe, address string) error {
	err := s.launch(ctx, proc.Spec{Name: functionsName, Path: exe, Args: []string{
		"funchost", "--listen", address, "--root", s.stage, "--settings", s.file.Settings,
	}})
	if err != nil {
		return err
	}
	return answers(ctx, s.file.Functions+"/api/health", func(status int) bool { return status == http.StatusOK })
}

// answers waits until an address answers with a good status. A nil good accepts every status.
func answers(ctx context.Context, address string, good func(status int) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("%s is not ready after %v", address, readyWithin))
	defer cancel()
	last := errors.New("nothing listens there")
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			const most = 2000
			body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
			_ = resp.Body.Close()
			if good == nil || good(resp.StatusCode) {
				return nil
			}
			last = fmt.Errorf("it answers %s: %s", resp.Status, body)
		}
		if timer.Wait(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}
