package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// changeSource reads a container's change feed in the latest-version mode.
type changeSource interface {
	// ranges lists the feed ranges of the container.
	ranges(ctx context.Context) ([]feedRange, error)
	// page reads what changed in a range after continuation, or, when that is empty, from the given time on.
	page(ctx context.Context, from position) (changes, error)
}

// feedRange is a range of effective partition keys.
type feedRange struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

func (r feedRange) String() string { return r.Min + "-" + r.Max }

// position is where to read on.
type position struct {
	in           feedRange
	continuation string
	start        *time.Time // for an empty continuation; nil = from the beginning
	maxItems     int32      // 0 = the service's default
}

// changes is one page. An empty one means that there is nothing for now.
type changes struct {
	items        []json.RawMessage
	continuation string
}

// leaseStore keeps lease documents. Its errors are errLeaseExists, errLeaseGone, errLeaseMoved, or the transport's.
type leaseStore interface {
	create(ctx context.Context, l lease) error
	read(ctx context.Context, id string) (lease, error)
	// replace writes l if the stored document still has l's etag.
	replace(ctx context.Context, l lease) (lease, error)
}

var (
	errLeaseExists = errors.New("the lease exists")
	errLeaseGone   = errors.New("the lease is gone")
	errLeaseMoved  = errors.New("the lease was changed by someone else")
)

// cosmosStore is both ports on a Cosmos account.
type cosmosStore struct {
	monitored, leases *azcosmos.ContainerClient
	closers           []func()
}

// openCosmos connects and checks that both containers exist; the lease container is created when the trigger says so.
func openCosmos(ctx context.Context, t *cosmosTrigger) (store *cosmosStore, err error) {
	s := &cosmosStore{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var leaseDatabase *azcosmos.DatabaseClient
	if s.monitored, _, err = s.container(t.connection, t.database, t.container); err != nil {
		return nil, err
	}
	if s.leases, leaseDatabase, err = s.container(t.leaseConnection, t.leaseDatabase, t.leases); err != nil {
		return nil, err
	}
	if t.createLeases {
		_, err := leaseDatabase.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID:                     t.leases,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}},
		}, nil)
		if err != nil && status(err) != http.StatusConflict {
			return nil, fmt.Errorf("create lease container '%s': %w", t.leases, err)
		}
	}
	for _, c := range []*azcosmos.ContainerClient{s.monitored, s.leases} {
		if _, err := c.Read(ctx, nil); status(err) == http.StatusNotFound {
			return nil, fmt.Errorf("either the source container '%s' (in database '%s') or the lease container '%s' (in database '%s') does not exist. Both containers must exist before the listener starts. To automatically create the lease container, set 'createLeaseContainerIfNotExists' to 'true': %w",
				t.container, t.database, t.leases, t.leaseDatabase, err)
		} else if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *cosmosStore) container(c cosmosConnection, database, container string) (*azcosmos.ContainerClient, *azcosmos.DatabaseClient, error) {
	client, transport, err := c.client()
	if err != nil {
		return nil, nil, err
	}
	s.closers = append(s.closers, client.Close, transport.CloseIdleConnections)
	db, err := client.NewDatabase(database)
	if err != nil {
		return nil, nil, err
	}
	containerClient, err := db.NewContainer(container)
	return containerClient, db, err
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

func (s *cosmosStore) ranges(ctx context.Context) ([]feedRange, error) {
	found, err := s.monitored.ReadFeedRanges(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read feed ranges: %w", err)
	}
	out := make([]feedRange, len(found))
	for i, r := range found {
		out[i] = feedRange{Min: r.MinInclusive, Max: r.MaxExclusive}
	}
	return out, nil
}

func (s *cosmosStore) page(ctx context.Context, from position) (changes, error) {
	options := &azcosmos.ChangeFeedOptions{
		MaxItemCount: from.maxItems,
		FeedRange:    &azcosmos.FeedRange{MinInclusive: from.in.Min, MaxExclusive: from.in.Max},
	}
	if from.continuation != "" {
		options.Continuation = &from.continuation
	} else {
		options.StartFrom = from.start
	}
	response, err := s.monitored.ReadChangeFeed(ctx, options)
	if err != nil {
		return changes{}, fmt.Errorf("read change feed: %w", err)
	}
	page := changes{continuation: response.ContinuationToken}
	for _, item := range response.Items {
		page.items = append(page.items, item)
	}
	return page, nil
}

func (s *cosmosStore) create(ctx context.Context, l lease) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = s.leases.CreateItem(ctx, azcosmos.NewPartitionKeyString(l.ID), text, nil)
	return leaseError(err)
}

func (s *cosmosStore) read(ctx context.Context, id string) (lease, error) {
	response, err := s.leases.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		return lease{}, leaseError(err)
	}
	var l lease
	if err := json.Unmarshal(response.Value, &l); err != nil {
		return lease{}, fmt.Errorf("lease document %s: %w", id, err)
	}
	l.etag = string(response.ETag)
	return l, nil
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
