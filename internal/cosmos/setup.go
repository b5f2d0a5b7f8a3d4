package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// EnsureContainers makes the database, this container and others, each with partition key /id, where they are missing. It
// is for local runs: in Azure the deployment makes them, with throughput and index policy. It does not change what exists.
// Errors by kind: infrastructure, throttled.
func (c *Container) EnsureContainers(ctx context.Context, others ...string) error {
	err := c.make(ctx, "database", func(ctx context.Context, s *connected) error {
		_, err := s.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: c.options.Database}, nil)
		return err
	})
	for _, name := range append([]string{c.options.Container}, others...) {
		if err == nil {
			err = c.makeContainer(ctx, name, nil)
		}
	}
	return err
}

// EnsureLeaseContainer is EnsureContainers for a container of leases: its time to live is switched on (docs/facts.md F40).
func (c *Container) EnsureLeaseContainer(ctx context.Context, name string) error {
	return c.makeContainer(ctx, name, to.Ptr[int32](-1))
}

func (c *Container) makeContainer(ctx context.Context, name string, timeToLive *int32) error {
	return c.make(ctx, "container "+name, func(ctx context.Context, s *connected) error {
		db, err := s.client.NewDatabase(c.options.Database)
		if err != nil {
			return err
		}
		_, err = db.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID:                     name,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
			DefaultTimeToLive:      timeToLive,
		}, nil)
		return err
	})
}

// make makes something that may be there.
func (c *Container) make(ctx context.Context, what string, create func(context.Context, *connected) error) error {
	err := c.do(ctx, operation{"cosmos: make " + what, onContainer}, c.options.Timeouts.Setup, create)
	if statusOf(err) == http.StatusConflict {
		return nil
	}
	return err
}
