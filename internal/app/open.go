package app

import (
	"context"
	"errors"
	"strings"

	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/sqlite"
	"sqlwriter/internal/writer"
)

// dependency is one thing that the work needs and how it is opened. open is called until it succeeds; it answers how to
// let go of what it opened.
type dependency struct {
	name string
	open func(ctx context.Context) (closeFn func() error, err error)
}

// adapters are the ports, filled while the dependencies open.
type adapters struct {
	documents writer.Documents
	sink      writer.Sink
}

// dependencies are those that the settings name.
func dependencies(c config.Config, a *adapters) []dependency {
	return []dependency{
		{depCosmos, func(ctx context.Context) (func() error, error) { return openCosmos(ctx, c, a) }},
		{depSQL, func(ctx context.Context) (func() error, error) { return openSQL(ctx, c, a) }},
	}
}

// cosmosProblems lets the adapter look at its settings before anything is opened, so that what it alone understands (the
// key's form, an address that is not to be trusted) is reported together with everything else. known are the problems
// that are named already.
func cosmosProblems(c config.Config, known config.Problems) config.Problems {
	for _, p := range known {
		if strings.HasPrefix(p.Setting, "COSMOS_") {
			return nil // what the adapter would say follows from it
		}
	}
	container, err := cosmos.Open(cosmosOptions(c))
	if err == nil {
		container.Close()
		return nil
	}
	found := "something else"
	if e := fault.As(err); e != nil && e.Err != nil {
		found = strings.ReplaceAll(e.Err.Error(), "\n", "; ") // it names settings and never a key
	}
	return config.Problems{{Setting: config.CosmosConnection, Expected: "a connection that can be used", Found: found}}
}

// cosmosOptions are the adapter's part of the settings.
func cosmosOptions(c config.Config) cosmos.Options {
	return cosmos.Options{
		Connection: c.Cosmos.Connection.Reveal(), AccountEndpoint: c.Cosmos.Endpoint, ClientID: c.Cosmos.ClientID,
		Database: c.Cosmos.Database, Container: c.Cosmos.Container,
	}
}

// openCosmos makes the client and reads the container's metadata once: it takes the cost of the first connection off the
// first batch, and a wrong key is seen before a batch is.
func openCosmos(ctx context.Context, c config.Config, a *adapters) (func() error, error) {
	container, err := cosmos.Open(cosmosOptions(c))
	if err != nil {
		return nil, err
	}
	if err := container.Ping(ctx); err != nil {
		container.Close()
		return nil, err
	}
	a.documents = container
	return func() error { container.Close(); return nil }, nil
}

// openSQL opens the database, brings our own tables up to date and checks that the user's are what the statements need.
func openSQL(ctx context.Context, c config.Config, a *adapters) (func() error, error) {
	store, err := sqlite.Open(ctx, c.SQL.SQLitePath, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{store.Migrate, store.Check} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	a.sink = store
	return store.Close, nil
}

// explain says for Health what keeps a dependency from opening: our own words only, because a cause may hold an address.
// The causes under two codes are our own words too, or names in the schema, and it is they that help.
func explain(err error) string {
	e := fault.As(err)
	if e == nil {
		return "not open yet"
	}
	line := e.Op + ": " + string(e.Kind) + " " + e.Code + ": " + e.Reason
	if e.Err != nil && (e.Code == "settings" || e.Code == "schema") {
		line += ": " + strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	}
	return line
}
