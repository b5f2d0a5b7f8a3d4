package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/internal/config"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/emulators/servicebus"
)

// The vendor publishes these keys for its emulators. They open nothing else.
const (
	cosmosKey = cosmosdb.DefaultKey
	blobKey   = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==" //nolint:gosec // Azurite's well-known key
)

// cosmosdbCommand serves the emulator of Cosmos DB.
type cosmosdbCommand struct {
	Listen string `required:"" help:"Address to listen on."`
}

// Run serves until standard input closes.
func (c *cosmosdbCommand) Run(ctx context.Context) error {
	ctx, cancel := proc.WatchParent(ctx, os.Stdin)
	defer cancel()
	server, err := cosmosdb.New(cosmosdb.Options{Key: cosmosKey})
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	const headerTimeout = 10 * time.Second
	h := &http.Server{Handler: server, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = h.Close() // its clients have ended before
	}
	return err
}

// funchostCommand hosts a script root.
type funchostCommand struct {
	Listen   string `required:"" help:"Address to listen on."`
	Root     string `required:"" help:"Staged script root."`
	Settings string `required:"" help:"App settings, in the form of a local.settings.json."`
}

// Run hosts until standard input closes.
func (c *funchostCommand) Run(ctx context.Context) error {
	ctx, cancel := proc.WatchParent(ctx, os.Stdin)
	defer cancel()
	settings, err := readSettings(c.Settings)
	if err != nil {
		return err
	}
	for _, variable := range os.Environ() { // it overrules the file, as with func start: AzureWebJobs.<Name>.Disabled
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AzureWebJobs.") {
			settings[name] = value
		}
	}
	settings["AZURE_FUNCTIONS_ENVIRONMENT"] = "Development" // as func start does
	const stopTimeout = 4 * time.Second                     // the whole stack has ten seconds to end
	return funchost.Run(ctx, funchost.Options{
		ScriptRoot: c.Root, Settings: settings, Listen: c.Listen,
		Log: zerolog.New(os.Stdout).Level(zerolog.InfoLevel).With().Timestamp().Logger(),
		Env: funchost.PlainEnv(),
		// The operators' API requires a key, as in Azure. A public key is safe here, because all servers listen on
		// loopback.
		Keys: funchost.Keys{Named: map[string]string{"operator-local": functionKey}},
		Tune: funchost.Tune{StopTimeout: stopTimeout},
	})
}

// functionKey is the key of the local stack's operators' API.
const functionKey = "local"

// settingsFile is a local.settings.json.
type settingsFile struct {
	IsEncrypted bool              `json:"IsEncrypted"` //nolint:tagliatelle // the tools' own spelling
	Values      map[string]string `json:"Values"`      //nolint:tagliatelle // the tools' own spelling
}

func readSettings(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	var f settingsFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("settings: %s: %w", path, err)
	}
	return f.Values, nil
}

// configOf makes the unchecked configuration of settings.
func configOf(settings map[string]string) config.Config {
	return config.Of(func(name string) string { return settings[name] })
}

// cosmosMode sets the trigger's connection mode in place of host.json. The emulator has the gateway alone, which is
// what an extension of the bundle's version chooses by itself (docs/facts.md F106).
const cosmosMode = "AzureFunctionsJobHost__extensions__cosmosDB__connectionMode"

// localSettings returns the sample settings with this stack's addresses.
func localSettings(at addresses, sql string) (map[string]string, error) {
	var f settingsFile
	if err := json.Unmarshal(config.Sample(), &f); err != nil {
		return nil, fmt.Errorf("sample settings: %w", err)
	}
	f.Values[config.CosmosConnection] = "AccountEndpoint=http://" + at.cosmos + "/;AccountKey=" + cosmosKey + ";"
	f.Values[config.SQLConnection] = sql
	if config.EngineOf(sql) == config.SQLServer { // see openSQL
		f.Values[config.SQLCertificate] = config.AnyCertificate
	}
	f.Values[config.ServiceBusConnection] = servicebus.ConnectionString(at.bus)
	f.Values["AzureWebJobsStorage"] = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" +
		blobKey +
		";BlobEndpoint=http://" + at.blob + "/devstoreaccount1;"
	f.Values[cosmosMode] = "Gateway"
	return f.Values, nil
}

func writeSettings(path string, values map[string]string) error {
	b, err := json.MarshalIndent(settingsFile{Values: values}, "", "  ")
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}
