package cosmos

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
)

// Leases reads the documents of the host's trigger. It implements reconcile.Leases and is safe for concurrent use.
type Leases struct {
	leases, results *Container
	// prefix is the setting LEASE_PREFIX.
	prefix string
}

var _ reconcile.Leases = (*Leases)(nil)

// NewLeases makes the reader of one environment over the lease container and the container that the trigger monitors. The caller closes
// both.
func NewLeases(leases, results *Container, prefix string) *Leases {
	return &Leases{leases: leases, results: results, prefix: prefix}
}

// Locks implements reconcile.Leases. A trigger has one lock, which it removes when its leases are made (docs/facts.md F40). Locks reads
// it by its id, so it finds none of another environment whose prefix begins alike, nor of a container that was deleted. It costs about
// 5 RU.
func (l *Leases) Locks(ctx context.Context) ([]reconcile.Lock, error) {
	op := operation{"cosmos: read lock", onDocument}
	id, err := l.lockID(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := l.leases.Read(ctx, id)
	if fault.Has(err, fault.Gone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lock struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return nil, fault.Wrap(fault.Infrastructure, op.name, "row", "the service answered with a malformed document", err)
	}
	return []reconcile.Lock{{ID: id, At: time.Unix(lock.TS, 0).UTC()}}, nil
}

// lockID gives the id of the trigger's lock. The SDK of the trigger makes it so (docs/facts.md F40; azure-cosmos-dotnet-v3,
// DocumentServiceLeaseStoreCosmos.cs).
func (l *Leases) lockID(ctx context.Context) (id string, err error) {
	c := l.results
	host, err := c.options.host()
	if err != nil {
		return "", fault.Wrap(fault.Infrastructure, "cosmos: read lock", "settings", "the account endpoint is not an address", err)
	}
	err = c.do(ctx, operation{"cosmos: read resource ids", onContainer}, c.options.Timeouts.Ping, func(ctx context.Context, s *connected) error {
		found, err := s.container.Read(ctx, nil)
		if err != nil {
			return err
		}
		db, err := s.client.NewDatabase(c.options.Database)
		if err != nil {
			return err
		}
		of, err := db.Read(ctx, nil)
		if err != nil {
			return err
		}
		id = l.prefix + host + "_" + of.DatabaseProperties.ResourceID + "_" + found.ContainerProperties.ResourceID + ".lock"
		return nil
	})
	return id, err
}

// host is the host name of the account endpoint, as Uri.Host of .NET has it.
func (o Options) host() (string, error) {
	endpoint := o.AccountEndpoint
	if o.Connection != "" {
		c, err := parseConnection(o.Connection)
		if err != nil {
			return "", err
		}
		endpoint = c.endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	return strings.ToLower(u.Hostname()), nil
}
