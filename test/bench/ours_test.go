package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// oursWays are our ways of writing over a sink: the use case, which reads documents, writes them, divides a refused
// request and records every outcome. count is called for each of the sink's requests. An engine with several
// connections takes parts at once.
func oursWays(sink commit.Sink, connections int, count func(requests int)) []way {
	write := func(bad, partsAtOnce int) func(ctx context.Context, docs []doc) error {
		return ours(sink, bad, partsAtOnce, count)
	}
	ways := []way{
		{name: ours1, call: 1, write: write(0, 1)},
		{name: ours100, call: 100, write: write(0, 1)},
		{name: oursBad, call: 100, oneBad: true, write: write(1, 1)},
	}
	if connections > 1 {
		ways = append(ways, way{name: oursBad4, call: 100, oneBad: true, write: write(1, connections)})
	}
	return ways
}

// ours writes a batch in which so many documents are bad.
func ours(
	sink commit.Sink, bad, partsAtOnce int, count func(requests int),
) func(ctx context.Context, docs []doc) error {
	committer := commit.NewCommit(container{}, sink,
		commit.Options{SysName: "web", Log: zerolog.Nop(), PartsAtOnce: partsAtOnce})
	return func(ctx context.Context, docs []doc) error {
		batch := commit.Delivery{Received: time.Now()}
		for _, d := range docs {
			batch.Documents = append(batch.Documents, d.raw)
		}
		report, err := committer.Run(ctx, batch)
		if err != nil {
			return err
		}
		count(report.SQLRequests)
		good := len(docs) - bad
		if report.Outcomes["applied"] != good || report.Outcomes["retry_scheduled"] != bad ||
			report.Writes != len(docs) {
			return fmt.Errorf(
				"expected %d applied and %d to be tried again, all of them recorded, found %+v", good, bad, report)
		}
		return nil
	}
}

// container takes what is recorded in the time that writing it as JSON needs: what is measured beside SQL is our own
// work.
type container struct{}

var errNotAsked = errors.New("a fresh batch needs no document read")

// Read implements commit.Documents.
func (container) Read(context.Context, string) (json.RawMessage, error) { return nil, errNotAsked }

// ReadMany implements commit.Documents.
func (container) ReadMany(context.Context, []string) ([]json.RawMessage, error) {
	return nil, errNotAsked
}

// Record implements commit.Documents.
func (container) Record(_ context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	_, err := json.Marshal(state)
	return doc.ETag, err
}
