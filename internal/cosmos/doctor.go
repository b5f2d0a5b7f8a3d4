package cosmos

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Trial writes documents of its own into the control container: "doctor:{sys_name}:{id}".
type Trial struct {
	container *Container
	sysName   string
}

var _ ops.Trial = Trial{}

// NewTrial makes the Trial of an environment. The caller closes the container.
func NewTrial(control *Container, sysName string) Trial { return Trial{control, sysName} }

// trialKept is the time in seconds after which the service may delete what a killed Trial left.
const trialKept = 60 * 60

// Try creates a document, patches it by its etag and deletes it. Errors by kind: infrastructure, throttled, contention.
func (k Trial) Try(ctx context.Context, id string) error {
	op := operation{"cosmos: try to write", onDocument}
	id = "doctor:" + k.sysName + ":" + id
	doc, err := json.Marshal(map[string]any{"id": id, "doctor_of": k.sysName, "ttl": trialKept})
	if err != nil {
		return fault.Wrap(fault.Internal, op.name, fault.CodeBug, "the document cannot be written as JSON", err)
	}
	key, c := azcosmos.NewPartitionKey(), k.container
	return blameless(c.underKey(ctx, op, c.options.Timeouts.Record, id, doc,
		func(ctx context.Context, s *connected) error {
			made, err := s.container.CreateItem(ctx, key, doc, nil)
			if err != nil {
				return err
			}
			var patch azcosmos.PatchOperations
			patch.AppendSet("/patched", true)
			as := &azcosmos.ItemOptions{IfMatchEtag: &made.ETag}
			if _, err = s.container.PatchItem(ctx, key, id, patch, as); err != nil {
				return err
			}
			_, err = s.container.DeleteItem(ctx, key, id, nil)
			return err
		}))
}

// Sweep implements ops.Trial. Errors as Try.
func (k Trial) Sweep(ctx context.Context, before time.Time) error {
	const query = "SELECT c.id FROM c WHERE c.doctor_of = @sys_name AND c._ts < @before"
	params := []Param{{Name: "@sys_name", Value: k.sysName}, {Name: "@before", Value: before.Unix()}}
	op, c := operation{"cosmos: sweep", onDocument}, k.container
	return blameless(c.Query(ctx, query, params, func(rows []json.RawMessage) (bool, error) {
		for _, row := range rows {
			var left struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(row, &left) != nil {
				continue
			}
			err := c.underKey(ctx, op, c.options.Timeouts.Record, left.ID, nil,
				func(ctx context.Context, s *connected) error {
					_, err := s.container.DeleteItem(ctx, azcosmos.NewPartitionKey(), left.ID, nil)
					return err
				})
			if err != nil && !fault.Has(err, fault.Gone) { // another run sweeps, too
				return false, err
			}
		}
		return true, nil
	}))
}

// Leases are those of a change feed: the host writes their ids as prefix, account, "_" and more. A longer prefix is
// another environment's. Errors by kind: infrastructure, throttled.
func (c *Container) Leases(ctx context.Context, prefix string) (all []ops.Lease, err error) {
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
			all = append(all, ops.Lease{Owner: lease.Owner, RenewedAt: time.Unix(lease.TS, 0)})
		}
		return true, nil
	})
	return all, err
}
