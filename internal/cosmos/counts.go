package cosmos

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Counts stores the counts of one environment in the document "status:{sys_name}" of the control container. It is safe
// for concurrent use.
type Counts struct {
	container *Container
	id        string
}

var _ ops.CountsStore = (*Counts)(nil)

// NewCounts makes the store of an environment over the control container. A shadow has its own, because its timer is
// not the app's. The caller closes the container.
func NewCounts(c *Container, sysName string, shadow bool) *Counts {
	id := "status:" + sysName
	if shadow {
		id += ":shadow"
	}
	return &Counts{container: c, id: id}
}

// LoadCounts implements ops.CountsStore.
func (k *Counts) LoadCounts(ctx context.Context) (counts ops.Saved, err error) {
	op := operation{"cosmos: load counts", onDocument}
	var doc []byte
	err = k.container.underKey(ctx, op, k.container.options.Timeouts.Control, k.id, nil,
		func(ctx context.Context, s *connected) error {
			r, err := s.container.ReadItem(ctx, azcosmos.NewPartitionKey(), k.id, nil)
			doc = r.Value
			return err
		})
	if fault.Has(err, fault.Gone) {
		return ops.Saved{}, nil
	}
	if err != nil {
		return ops.Saved{}, blameless(err)
	}
	if err := json.Unmarshal(doc, &counts); err != nil {
		return ops.Saved{},
			fault.Wrap(fault.Infrastructure, op.name, "unreadable", "the counts "+k.id+" cannot be read", err)
	}
	return counts, nil
}

// StoreCounts implements ops.CountsStore. Whoever counts last wins: no decision rests on counts.
func (k *Counts) StoreCounts(ctx context.Context, counts ops.Saved) error {
	op := operation{"cosmos: store counts", onDocument}
	doc, err := json.Marshal(struct {
		ID string `json:"id"`
		ops.Saved
	}{k.id, counts})
	if err != nil {
		return fault.Wrap(fault.Internal, op.name, fault.CodeBug, "the counts cannot be written as JSON", err)
	}
	err = k.container.underKey(ctx, op, k.container.options.Timeouts.Control, k.id, nil,
		func(ctx context.Context, s *connected) error {
			_, err := s.container.UpsertItem(ctx, azcosmos.NewPartitionKey(), doc, nil)
			return err
		})
	if err != nil {
		return blameless(err)
	}
	return nil
}
