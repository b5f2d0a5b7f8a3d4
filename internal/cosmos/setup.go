package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// RequirementsKey is the partition key of the results in the requirements (docs/requirements.md R10).
func RequirementsKey() []string { return []string{"/request_details/id"} }

// EnsureContainers makes the database, this container with a partition key of one to three paths, and others with /id, where
// they are missing. It is for local runs: in Azure the deployment makes them, with throughput and index policy. It does not
// change what exists. Errors by kind: infrastructure, throttled.
func (c *Container) EnsureContainers(ctx context.Context, key []string, others ...string) error {
	err := c.make(ctx, "database", func(ctx context.Context, s *connected) error {
		_, err := s.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: c.options.Database}, nil)
		return err
	})
	if err == nil {
		err = c.makeContainer(ctx, c.options.Container, key, nil)
	}
	for _, name := range others {
		if err == nil {
			err = c.makeContainer(ctx, name, idKey(), nil)
		}
	}
	return err
}

func idKey() []string { return []string{"/id"} }

// EnsureLeaseContainer is EnsureContainers for a container of leases: its time to live is switched on (docs/facts.md F40).
func (c *Container) EnsureLeaseContainer(ctx context.Context, name string) error {
	return c.makeContainer(ctx, name, idKey(), to.Ptr[int32](-1))
}

func (c *Container) makeContainer(ctx context.Context, name string, key []string, timeToLive *int32) error {
	kind := azcosmos.PartitionKeyKindHash
	if len(key) > 1 {
		kind = azcosmos.PartitionKeyKindMultiHash
	}
	return c.make(ctx, "container "+name, func(ctx context.Context, s *connected) error {
		db, err := s.client.NewDatabase(c.options.Database)
		if err != nil {
			return err
		}
		_, err = db.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID:                     name,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: key, Kind: kind, Version: 2},
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
