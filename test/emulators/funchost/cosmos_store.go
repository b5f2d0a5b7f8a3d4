package funchost

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// leaseStore keeps the documents of the lease container. Its errors are errLeaseExists, errLeaseGone, errLeaseMoved, or
// the transport's.
type leaseStore interface {
	// all returns the leases whose ids begin with prefix.
	all(ctx context.Context, prefix string) ([]lease, error)
	create(ctx context.Context, l lease) error
	read(ctx context.Context, id string) (lease, error)
	// replace writes l if the stored document still has l's etag.
	replace(ctx context.Context, l lease) (lease, error)
	// exists, mark and remove are about documents that only have an id; a ttl of 0 is none.
	exists(ctx context.Context, id string) (bool, error)
	mark(ctx context.Context, id string, ttl int) error
	remove(ctx context.Context, id string) error
}

var (
	errLeaseExists = errors.New("the lease exists")
	errLeaseGone   = errors.New("the lease is gone")
	errLeaseMoved  = errors.New("the lease was changed by someone else")
)

// cosmosStore is a lease container on a Cosmos account.
type cosmosStore struct {
	leases  *azcosmos.ContainerClient
	closers []func()
}

// openCosmos connects and checks that both containers exist.
func openCosmos(ctx context.Context, t *cosmosTrigger) (feed *feedClient, store *cosmosStore, err error) {
	s := &cosmosStore{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	monitored, database, transport, err := s.container(t.connection, t.database, t.container)
	if err != nil {
		return nil, nil, err
	}
	if s.leases, _, _, err = s.container(t.connection, t.database, t.leases); err != nil {
		return nil, nil, err
	}
	feed = &feedClient{
		http: &http.Client{Transport: transport}, endpoint: strings.TrimSuffix(t.connection.endpoint, "/") + "/",
		link: "dbs/" + t.database + "/colls/" + t.container,
	}
	for _, c := range []*azcosmos.ContainerClient{s.leases, monitored} {
		found, err := c.Read(ctx, nil)
		if status(err) == http.StatusNotFound {
			return nil, nil,
				fmt.Errorf(
					"either the source container '%s' (in database '%s') or the lease container '%s' (in database '%s') does not exist. Both containers must exist before the listener starts. To automatically create the lease container, set 'createLeaseContainerIfNotExists' to 'true': %w",
					t.container, t.database, t.leases, t.database, err)
		} else if err != nil {
			return nil, nil, err
		}
		feed.ownID = found.ContainerProperties.ResourceID
	}
	of, err := database.Read(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	feed.databaseID = of.DatabaseProperties.ResourceID
	if t.connection.key == "" {
		feed.identity, err = credentialOf(t.connection.clientID)
	} else {
		feed.key, err = base64.StdEncoding.DecodeString(t.connection.key)
	}
	return feed, s, err
}

func (s *cosmosStore) container(
	c cosmosConnection, database, container string,
) (*azcosmos.ContainerClient, *azcosmos.DatabaseClient, *http.Transport, error) {
	client, transport, err := c.client()
	if err != nil {
		return nil, nil, nil, err
	}
	s.closers = append(s.closers, client.Close, transport.CloseIdleConnections)
	db, err := client.NewDatabase(database)
	if err != nil {
		return nil, nil, nil, err
	}
	containerClient, err := db.NewContainer(container)
	return containerClient, db, transport, err
}

func (s *cosmosStore) close() {
	for _, f := range s.closers {
		f()
	}
}

// status is the HTTP status of an SDK error, 0 for any other.
func status(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}

func (s *cosmosStore) all(ctx context.Context, prefix string) ([]lease, error) {
	pager := s.leases.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@prefix", Value: prefix}}})
	var out []lease
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read leases: %w", err)
		}
		for _, item := range page.Items {
			l, err := readLease(item)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
	}
	return out, nil
}

func readLease(text []byte) (lease, error) {
	var l lease
	if err := json.Unmarshal(text, &l); err != nil {
		return lease{}, fmt.Errorf("lease document: %w", err)
	}
	return l, nil
}

func (s *cosmosStore) create(ctx context.Context, l lease) error { return s.write(ctx, l.ID, l) }

func (s *cosmosStore) mark(ctx context.Context, id string, ttl int) error {
	return s.write(ctx, id, struct {
		ID  string `json:"id"`
		TTL int    `json:"ttl,omitempty"`
	}{id, ttl})
}

func (s *cosmosStore) write(ctx context.Context, id string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	_, err = s.leases.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), text, nil)
	return leaseError(err)
}

func (s *cosmosStore) read(ctx context.Context, id string) (lease, error) {
	response, err := s.leases.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		return lease{}, leaseError(err)
	}
	return readLease(response.Value)
}

func (s *cosmosStore) exists(ctx context.Context, id string) (bool, error) {
	_, err := s.leases.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

func (s *cosmosStore) replace(ctx context.Context, l lease) (lease, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return lease{}, err
	}
	response, err := s.leases.ReplaceItem(ctx, azcosmos.NewPartitionKeyString(l.ID), l.ID, text,
		&azcosmos.ItemOptions{IfMatchEtag: to.Ptr(azcore.ETag(l.etag))})
	if err != nil {
		return lease{}, leaseError(err)
	}
	l.etag = string(response.ETag)
	return l, nil
}

func (s *cosmosStore) remove(ctx context.Context, id string) error {
	_, err := s.leases.DeleteItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	return leaseError(err)
}

// leaseError is the one place that turns statuses into the store's errors.
func leaseError(err error) error {
	switch status(err) {
	case http.StatusConflict:
		return fmt.Errorf("%w: %w", errLeaseExists, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", errLeaseGone, err)
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", errLeaseMoved, err)
	default:
		return err
	}
}
