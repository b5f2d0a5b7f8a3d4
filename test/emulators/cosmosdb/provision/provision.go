// Package provision makes databases and containers in a Cosmos DB account, for the local stack and for tests. In Azure
// the deployment makes them, with throughput and index policy.
package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Container is a container to make. A zero Key is /id.
type Container struct {
	Name string
	// Key has the one to three paths of the partition key.
	Key []string
	// TimeToLive switches the time to live on, and no document expires by default (docs/facts.md F40).
	TimeToLive bool
}

// Results is a container of results, with the partition key of the requirements (docs/requirements.md R10).
func Results(name string) Container {
	return Container{Name: name, Key: []string{ResultsKey}}
}

// Own is a container of the app itself.
func Own(name string) Container { return Container{Name: name} }

// Leases is a container of the host's trigger.
func Leases(name string) Container { return Container{Name: name, TimeToLive: true} }

// Make makes what is missing, and does not change what exists.
func Make(ctx context.Context, connection, database string, containers ...Container) error {
	client, err := azcosmos.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return fmt.Errorf("cosmos: %w", err)
	}
	defer client.Close()
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database}, nil); err != nil &&
		!exists(err) {
		return fmt.Errorf("cosmos: make database %s: %w", database, err)
	}
	db, err := client.NewDatabase(database)
	if err != nil {
		return fmt.Errorf("cosmos: %w", err)
	}
	for _, c := range containers {
		if _, err := db.CreateContainer(ctx, c.properties(), nil); err != nil && !exists(err) {
			return fmt.Errorf("cosmos: make container %s: %w", c.Name, err)
		}
	}
	return nil
}

func (c Container) properties() azcosmos.ContainerProperties {
	p := azcosmos.ContainerProperties{
		ID: c.Name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Paths: c.Key, Kind: azcosmos.PartitionKeyKindHash, Version: 2,
		},
	}
	switch {
	case len(c.Key) == 0:
		p.PartitionKeyDefinition.Paths = []string{"/id"}
	case len(c.Key) > 1:
		p.PartitionKeyDefinition.Kind = azcosmos.PartitionKeyKindMultiHash
	}
	if c.TimeToLive {
		p.DefaultTimeToLive = to.Ptr[int32](-1)
	}
	return p
}

func exists(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusConflict
}
