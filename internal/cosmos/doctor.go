package cosmos

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/fault"
)

// TryWrites creates a document of its own in the control container, "doctor:{sys_name}:{random}", patches it and
// deletes it. It also deletes those that were made before a time and left by one that was killed. No etag is given: the
// rights do not depend on it. Errors by kind: infrastructure, throttled, contention.
func (c *Container) TryWrites(ctx context.Context, sysName string, before time.Time) error {
	op, key := operation{"cosmos: try to write", onDocument}, azcosmos.NewPartitionKey()
	call := func(id string, doc []byte, call func(context.Context, *connected) error) error {
		return c.underKey(ctx, op, c.options.Timeouts.Record, id, doc, call)
	}
	remove := func(id string) error {
		return call(id, nil, func(ctx context.Context, s *connected) error {
			_, err := s.container.DeleteItem(ctx, key, id, nil)
			return err
		})
	}
	id := "doctor:" + sysName + ":" + rand.Text()
	doc, _ := json.Marshal(map[string]string{"id": id, "doctor_of": sysName}) // texts can always be encoded
	err := call(id, doc, func(ctx context.Context, s *connected) error {
		_, err := s.container.CreateItem(ctx, key, doc, nil)
		return err
	})
	if err == nil {
		err = call(id, doc, func(ctx context.Context, s *connected) error {
			var patch azcosmos.PatchOperations
			patch.AppendSet("/patched", true)
			_, err := s.container.PatchItem(ctx, key, id, patch, nil)
			return err
		})
	}
	if err == nil {
		err = remove(id)
	}
	if err != nil {
		return blameless(err)
	}
	const left = "SELECT VALUE c.id FROM c WHERE c.doctor_of = @sys_name AND c._ts < @before"
	params := []Param{{Name: "@sys_name", Value: sysName}, {Name: "@before", Value: before.Unix()}}
	return blameless(c.pages(ctx, operation{op.name, onContainer}, left, params,
		func(rows []json.RawMessage) (bool, error) {
			for _, row := range rows {
				var id string
				if err := json.Unmarshal(row, &id); err != nil {
					continue
				}
				if err := remove(id); err != nil && !fault.Has(err, fault.Gone) { // another doctor deletes it, too
					return false, err
				}
			}
			return true, nil
		}))
}

// Lease is one range of the change feed.
type Lease struct {
	// Owner is the instance that reads it; empty when nobody does. RenewedAt is when it was written last.
	Owner     string
	RenewedAt time.Time
}

// Leases are those of a change feed: the host writes their ids as prefix, account, "_" and more. A longer prefix is
// another environment's. Errors by kind: infrastructure, throttled.
func (c *Container) Leases(ctx context.Context, prefix string) (all []Lease, err error) {
	op := operation{"cosmos: read leases", onContainer}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, translate(op, err)
	}
	if address, err := url.Parse(s.client.Endpoint()); err == nil {
		prefix += address.Hostname() + "_"
	}
	const query = "SELECT c.Owner, c._ts FROM c WHERE STARTSWITH(c.id, @prefix) AND IS_DEFINED(c.LeaseToken)"
	err = c.pages(ctx, op, query, []Param{{"@prefix", prefix}}, func(rows []json.RawMessage) (bool, error) {
		for _, row := range rows {
			var lease struct {
				Owner string
				TS    int64 `json:"_ts"`
			}
			if err := json.Unmarshal(row, &lease); err != nil {
				return false, fault.Wrap(fault.Infrastructure, op.name, "unreadable", "a lease cannot be read", err)
			}
			all = append(all, Lease{lease.Owner, time.Unix(lease.TS, 0)})
		}
		return true, nil
	})
	return all, err
}
