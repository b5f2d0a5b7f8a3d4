package cosmos

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// EnsureContainers makes the database, this container and others, each with partition key /id, where they are missing. The
// others have their time to live switched on, as the trigger's lease container needs it (docs/facts.md F40). It is for local runs: in Azure the deployment makes them, with throughput and index policy. It does not change what exists.
// Errors by kind: infrastructure, throttled.
func (c *Container) EnsureContainers(ctx context.Context, others ...string) error {
	op := operation{"cosmos: make database", onContainer}
	err := c.do(ctx, op, c.options.Timeouts.Setup, func(ctx context.Context, s *connected) error {
		_, err := s.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: c.options.Database}, nil)
		return err
	})
	if err != nil && statusOf(err) != http.StatusConflict {
		return err
	}
	for _, name := range append([]string{c.options.Container}, others...) {
		op := operation{"cosmos: make container " + name, onContainer}
		err := c.do(ctx, op, c.options.Timeouts.Setup, func(ctx context.Context, s *connected) error {
			db, err := s.client.NewDatabase(c.options.Database)
			if err != nil {
				return err
			}
			properties := azcosmos.ContainerProperties{
				ID:                     name,
				PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
			}
			if name != c.options.Container {
				properties.DefaultTimeToLive = to.Ptr(int32(-1))
			}
			_, err = db.CreateContainer(ctx, properties, nil)
			return err
		})
		if err != nil && statusOf(err) != http.StatusConflict {
			return err
		}
	}
	return nil
}
