package commit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Random changes and failures, 16 concurrent records: every document is counted once and ends as SQL says.
func TestRandomRacesEndWithEveryDocumentCountedAndTrue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		w := newWorld(t)
		committer := commit.NewCommit(w.faulty, w.faulty,
			commit.Options{SysName: "web", Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return w.clock
			}, Log: zerolog.New(io.Discard), MaxDocuments: 7})
		var docs []string
		for i := range 30 {
			w.sink.AddLines(int64(i%20 + 1))
			d := result(i, int64(i%20+1), "v0", "")
			if i%5 == 0 {
				d = document(fmt.Sprint("nt-", i), int64(i%20+1), "v0", "")
			}
			docs = append(docs, d)
		}
		batch := w.put(docs...)
		n := 0
		w.faulty.onRecord = func(int) error {
			mu.Lock()
			defer mu.Unlock()
			n++
			if n < 60 && r.IntN(3) == 0 {
				i := r.IntN(30)
				v := fmt.Sprint("v", r.IntN(3))
				d := result(i, int64(i%20+1), v, "")
				if i%5 == 0 {
					d = document(fmt.Sprint("nt-", i), int64(i%20+1), v, "")
				}
				if r.IntN(10) == 0 {
					return down("cosmos")
				}
				_ = w.docs.Put(json.RawMessage(d))
			}
			return nil
		}
		for retry := 0; retry < 50; retry++ {
			rep, err := committer.Run(t.Context(),
				commit.Delivery{Documents: batch, Received: w.clock, RetryCount: retry})
			total := 0
			for _, k := range rep.Outcomes {
				total += k
			}
			require.Equal(t, 30, total, "%v", rep.Outcomes)
			if err == nil {
				break
			}
		}
		w.faulty.onRecord = nil
		var ids []string
		for _, d := range docs {
			ids = append(ids, idOf(t, d))
		}
		w.run(w.snapshots(ids...)...)
		for line := int64(1); line <= 20; line++ {
			e, ok := w.sink.Entry(line)
			require.True(t, ok)
			d, err := invoice.Reader{}.Read(w.snapshots(e.DocumentID)[0], w.clock)
			require.NoError(t, err)
			if d.Hash != e.Hash {
				t.Errorf("seed %d line %d: ledger names %s with other content than it holds, status %s", seed, line,
					e.DocumentID, d.State.Status)
				return
			}
		}
	}
}
