package cosmos

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

var _ ops.Canaries = (*Container)(nil)

// MarkSeen is commit.Options.MarkSeen.
func (c *Container) MarkSeen(ctx context.Context, canary invoice.Snapshot, seen commit.Seen) error {
	_, err := c.patch(ctx, operation{"cosmos: mark", onDocument}, canary.ID, canary.ETag, canary.JSON(), "seen", seen)
	return err
}

// CreateCanary implements ops.Canaries. A key below a text of the document, above one, or below what MarkSeen writes is
// refused.
func (c *Container) CreateCanary(ctx context.Context, id, sysName string) error {
	key, err := c.key(ctx)
	if err != nil {
		return err
	}
	doc := map[string]any{"id": id, "request_details": map[string]any{"sys_name": sysName}}
	for _, path := range key.paths {
		within := doc
		for i, name := range path {
			last := i == len(path)-1
			if within[name] == nil && last {
				within[name] = id
			} else if within[name] == nil {
				within[name] = map[string]any{}
			}
			inner, isObject := within[name].(map[string]any)
			if isObject == last || path[0] == "seen" || path[0] == "sql_writer" {
				return fault.New(fault.Document, "cosmos: send", CodePartitionKey,
					"no document of doctor can have the partition key %s", key.text)
			}
			within = inner
		}
	}
	text, err := json.Marshal(doc)
	if err == nil {
		err = c.Submit(ctx, text, false)
	}
	return err
}

// Delete implements ops.Canaries.
func (c *Container) Delete(ctx context.Context, id string) error {
	err := c.underKey(ctx, operation{"cosmos: delete", onDocument}, c.options.Timeouts.Record, id, nil,
		func(ctx context.Context, s *connected) error {
			_, err := s.container.DeleteItem(ctx, azcosmos.NewPartitionKey(), id, nil)
			return err
		})
	if fault.Has(err, fault.Gone) {
		return nil
	}
	return err
}
