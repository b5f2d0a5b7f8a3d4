package cosmos

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"sqlwriter/internal/fault"
)

// TryWrites creates a document of its own in the control container, "doctor:{sys_name}:{random}", reads it, patches it
// and deletes it. It also deletes those that were made before a time and left by one that was killed. Errors by kind:
// infrastructure, throttled, contention.
func (c *Container) TryWrites(ctx context.Context, sysName string, before time.Time) error {
	op, id := operation{"cosmos: try to write", onDocument}, "doctor:"+sysName+":"+rand.Text()
	doc, _ := json.Marshal(map[string]string{"id": id, "doctor_of": sysName}) // texts can always be encoded
	err := c.Submit(ctx, doc, false)
	etag := ""
	if err == nil {
		etag, _, err = c.load(ctx, op, id, &struct{}{})
	}
	if err == nil {
		_, err = c.patch(ctx, op, id, etag, doc, "patched", true)
	}
	if err == nil {
		err = c.Delete(ctx, id)
	}
	const left = "SELECT VALUE c.id FROM c WHERE c.doctor_of = @sys_name AND c._ts < @before"
	params := []Param{{Name: "@sys_name", Value: sysName}, {Name: "@before", Value: before.Unix()}}
	if err == nil {
		err = c.pages(ctx, operation{op.name, onContainer}, left, params,
			func(rows []json.RawMessage) (bool, error) {
				var err error
				for _, row := range rows {
					_ = json.Unmarshal(row, &id) // it is a text
					err = cmp.Or(err, c.Delete(ctx, id))
				}
				return true, err
			})
	}
	return blameless(err)
}

// Lease is one range of the change feed.
type Lease struct {
	// Owner is the instance that reads it; empty when nobody does. RenewedAt is when it was written last.
	Owner     string
	RenewedAt time.Time
}

// Leases are those of a change feed: the host writes their ids as prefix, the account's address in small letters
// (docs/facts.md F40), "_" and more. A longer prefix is another environment's. Errors by kind: infrastructure,
// throttled.
func (c *Container) Leases(ctx context.Context, prefix string) (all []Lease, err error) {
	op := operation{"cosmos: read leases", onContainer}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, translate(op, err)
	}
	if address, err := url.Parse(s.client.Endpoint()); err == nil {
		prefix += strings.ToLower(address.Hostname()) + "_"
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
