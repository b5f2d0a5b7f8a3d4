package cosmos

import (
	"context"

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
	if _, _, err := k.container.load(ctx, op, k.id, &counts); err != nil {
		return ops.Saved{}, err
	}
	return counts, nil
}

// StoreCounts implements ops.CountsStore. Whoever counts last wins: no decision rests on counts.
func (k *Counts) StoreCounts(ctx context.Context, counts ops.Saved) error {
	op := operation{"cosmos: store counts", onDocument}
	return k.container.keep(ctx, op, k.id, struct {
		ID string `json:"id"`
		ops.Saved
	}{k.id, counts})
}
