package app

import (
	"context"
	"encoding/json"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/timer"
)

// The whole way: doctor sends, the feed brings, this build marks, and nothing is left. Two at once do not meet.
func TestDoctorSendsThroughTheFeed(t *testing.T) {
	d := newDeployment(t)
	a := d.app()
	stored := func(ctx context.Context) (docs []json.RawMessage) {
		err := a.clients.results.Query(ctx, "SELECT * FROM c", nil, func(rows []json.RawMessage) (bool, error) {
			docs = append(docs, rows...)
			return true, nil
		})
		assert.True(t, err == nil || ctx.Err() != nil, "%v", err)
		return docs
	}
	feeding, stop := context.WithCancel(t.Context())
	var feed, doctors sync.WaitGroup
	feed.Go(func() {
		for timer.Wait(feeding, 5*time.Millisecond) == nil {
			_, err := a.commit.Run(feeding, commit.Delivery{Documents: stored(feeding), Received: time.Now()})
			assert.NoError(t, err)
		}
	})
	for range 2 {
		doctors.Go(func() {
			answer, err := a.ops.Doctor(t.Context(), ops.DoctorRequest{Send: true})
			assert.NoError(t, err)
			row := answer.Rows[len(answer.Rows)-1]
			assert.Equal(t, []string{ops.RowFeed, ops.RowOK}, []string{row.Name, row.State}, "%+v", row)
			assert.Regexp(t, `^seen after \d+ ms, patched after \d+ ms by `+instance()+`, build `+
				regexp.QuoteMeta(Version())+`$`, row.Found)
		})
	}
	doctors.Wait()
	stop()
	feed.Wait()
	require.Empty(t, stored(t.Context()))
}
