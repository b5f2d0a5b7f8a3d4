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
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/cmd/stage/staging"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/timer"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/sample"
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

// addresses are HOST:PORT.
type addresses struct{ cosmos, blob, bus, busControl, functions string }

// up builds the handler and starts all servers, independent ones at the same time. Without a host there is no handler.
func (s *stack) up(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := s.choose(ctx); err != nil {
		return err
	}
	started := time.Now()
	defer s.took.say(func(after time.Duration, running string) {
		s.out.linef("  %.0f s: %s", after.Seconds(), running)
	})()
	g, starting := errgroup.WithContext(ctx)
	if !s.hostless {
		g.Go(func() error {
			return s.took.time("build and stage the handler", func() error {
				return staging.Build(starting, staging.Options{Source: s.root, Dir: s.stage()})
			})
		})
	}
	g.Go(func() error {
		if err := installNPM(starting, s.root, azuriteDir, "80 MB", &s.took); err != nil {
			return err
		}
		return s.took.time("Azurite", func() error { return s.startBlob(starting) })
	})
	g.Go(func() error {
		if err := installNPM(starting, s.root, busDir, "1 MB", &s.took); err != nil {
			return err
		}
		return s.took.time("Service Bus", func() error { return s.startBus(starting) })
	})
	g.Go(func() error { return s.took.time("Cosmos", func() error { return s.startCosmos(starting, exe) }) })
	g.Go(func() error { return s.took.time("SQL", func() error { return s.startSQL(starting) }) })
	if err := g.Wait(); err != nil {
		return err
	}
	if !s.hostless {
		if err := s.took.time("host and handler", func() error { return s.startFunctions(ctx, exe) }); err != nil {
			return err
		}
	}
	s.out.linef("up in %.1f s (%s)", time.Since(started).Seconds(), s.took.String())
	s.out.linef("  functions %s   Cosmos http://%s   blob http://%s   Service Bus amqp://%s   SQL %s",
		cmp.Or(s.file.Functions, "none"), s.addresses.cosmos, s.addresses.blob, s.addresses.bus, s.db.name)
	return nil
}

// choose chooses the ports, and writes the settings and stack.json.
func (s *stack) choose(ctx context.Context) (err error) {
	for _, server := range []struct {
		port    int
		address *string
	}{
		{cosmosPort, &s.addresses.cosmos},
		{blobPort, &s.addresses.blob},
		{busPort, &s.addresses.bus},
		{busControlPort, &s.addresses.busControl},
		{functionsPort, &s.addresses.functions},
	} {
		if s.hostless && server.port == functionsPort {
			continue // the user's own host takes it
		}
		port, err := proc.Port(ctx, server.port)
		if err != nil {
			return err
		}
		if port != server.port {
			s.out.linef("port %d is taken, using %d", server.port, port)
		}
		*server.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	connection := s.db.connection
	if !s.hostless {
		s.file.Functions, s.file.FunctionKey = "http://"+s.addresses.functions, functionKey
		if connection, err = s.db.behindSwitch(ctx); err != nil {
			return err
		}
	}
	if s.settings, err = localSettings(s.addresses, connection); err != nil {
		return err
	}
	if s.mapping != "" {
		s.settings[config.Mapping] = s.mapping
	}
	s.file.Settings = filepath.Join(s.data, "local.settings.json")
	if err := writeSettings(s.file.Settings, s.settings); err != nil {
		return err
	}
	return stackfile.Write(s.dir, s.file)
}

// stage is the folder of the script root.
func (s *stack) stage() string { return filepath.Join(s.data, "stage") }

// launch starts a server.
func (s *stack) launch(ctx context.Context, name, path string, args ...string) error {
	_, err := s.group.Start(ctx,
		proc.Spec{Name: name, Path: path, Args: args, Log: filepath.Join(s.logs(), name+".log")})
	return err
}

func (s *stack) startBlob(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.addresses.blob)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.root, azuriteDir)
	err = s.launch(ctx, "azurite", "node",
		"--require", filepath.Join(dir, "stop-with-parent.cjs"), filepath.Join(dir, azuriteMain),
		"--blobHost", host, "--blobPort", port, "--location", filepath.Join(s.data, "azurite"),
		"--skipApiVersionCheck", "--silent", "--disableTelemetry")
	if err != nil {
		return err
	}
	return answers(ctx, "http://"+s.addresses.blob, nil)
}

// startBus starts the Service Bus emulator with the queues that the settings name.
func (s *stack) startBus(ctx context.Context) error {
	var queues []servicebus.Queue
	for _, setting := range []string{config.RunsQueue, config.BatchesQueue} {
		queues = append(queues, servicebus.Queue{Name: s.settings[setting], RequiresDuplicateDetection: true})
	}
	path, args, err := servicebus.Options{
		Dir: filepath.Join(s.root, busDir), Queues: queues, AMQP: s.addresses.bus, Control: s.addresses.busControl,
	}.Command()
	if err != nil {
		return err
	}
	if err := s.launch(ctx, "servicebus", path, args...); err != nil {
		return err
	}
	return answers(ctx, "http://"+s.addresses.busControl+"/queues", nil)
}

// startCosmos starts the Cosmos DB emulator and creates the containers.
func (s *stack) startCosmos(ctx context.Context, exe string) error {
	if err := s.launch(ctx, "cosmosdb", exe, "cosmosdb", "--listen", s.addresses.cosmos); err != nil {
		return err
	}
	if err := answers(ctx, s.statsURL(), nil); err != nil {
		return err
	}
	database, container := s.settings[config.CosmosDatabase], s.settings[config.CosmosContainer]
	documents, err := open.Results(configOf(s.settings).Cosmos)
	if err != nil {
		return err
	}
	s.documents = documents
	err = provision.Make(ctx, s.settings[config.CosmosConnection], database, provision.Results(container),
		provision.Own(config.ControlContainer), provision.Leases(s.settings[config.LeaseContainer]))
	if err != nil {
		return err
	}
	s.watch, err = newWatcher("http://"+s.addresses.cosmos, database, container)
	return err
}

// startSQL creates the tables and the detail rows that the samples need, and records what is in them.
func (s *stack) startSQL(ctx context.Context) error {
	if err := s.db.makeTables(ctx); err != nil {
		return err
	}
	docs, err := samples()
	if err != nil {
		return err
	}
	if err := s.db.seed(ctx, sample.Lines(append(docs, outageSamples()...)), s.mapping != ""); err != nil {
		return err
	}
	s.before, err = s.db.read(ctx)
	return err
}

// functionsName is the name of the host's process.
const functionsName = "functions"

// startFunctions starts the host on the staged root and waits until the handler is ready.
func (s *stack) startFunctions(ctx context.Context, exe string) error {
	err := s.launch(ctx, functionsName, exe, "funchost", "--listen", s.addresses.functions, "--root", s.stage(),
		"--settings", s.file.Settings)
	if err != nil {
		return err
	}
	return answers(ctx, s.file.Functions+"/api/health", func(status int) bool { return status == http.StatusOK })
}

// answers waits until an address answers with a good status. A nil good accepts every status.
func answers(ctx context.Context, address string, good func(status int) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin,
		fmt.Errorf("%s is not ready after %v", address, readyWithin))
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
