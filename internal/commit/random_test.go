package commit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/seeds"
)

// Random changes and failures, 16 concurrent records, and an instance's clock that is up to ten minutes off: every
// document is counted once and ends as SQL says. A change is other content, fewer duplicates or another key, or the
// document is deleted, and made anew later.
func TestRandomRacesEndWithEveryDocumentCountedAndTrue(t *testing.T) {
	left, gone := 0, 0
	first := uint64(seeds.First(t))
	for seed := first; seed < first+races(); seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		skew := time.Duration(r.Int64N(int64(20*time.Minute))) - 10*time.Minute
		w := newWorld(t)
		committer := commit.NewCommit(w.faulty, w.faulty,
			commit.Options{SysName: "web", Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return w.clock.Add(skew)
			}, Log: zerolog.New(io.Discard), MaxDocuments: 7})
		var docs []string
		lines := make([][]int64, 30)
		// doc is a document's new content, on the lines that it names now.
		doc := func(i int, v string) string {
			id := fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-0001-%d", i, i%20+1)
			if i%5 == 0 {
				id = fmt.Sprint("nt-", i)
			}
			return document(id, lines[i][0], v, "", lines[i][1:]...)
		}
		for i := range lines {
			w.sink.AddLines(int64(i%20 + 1))
			if lines[i] = []int64{int64(i%20 + 1)}; i%3 == 0 {
				lines[i] = append(lines[i], r.Int64N(20)+1)
			}
			docs = append(docs, doc(i, "v0"))
		}
		batch := w.put(docs...)
		n := 0
		w.faulty.onRecord = func(int) error {
			mu.Lock()
			defer mu.Unlock()
			n++
			if n < 60 && r.IntN(3) == 0 {
				i := r.IntN(30)
				switch r.IntN(20) {
				case 0, 1:
					return down("cosmos")
				case 2:
					w.docs.Delete(idOf(t, docs[i]))
					return nil
				case 3, 4:
					lines[i] = lines[i][:1]
				case 5, 6:
					lines[i] = []int64{r.Int64N(20) + 1, r.Int64N(20) + 1}[:1+r.IntN(2)]
				}
				_ = w.docs.Put(json.RawMessage(doc(i, fmt.Sprint("v", r.IntN(3)))))
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
		now := map[string]invoice.Document{}
		for again := range 2 { // once to write, once to look
			for _, doc := range docs {
				raw, err := w.docs.Read(t.Context(), idOf(t, doc))
				if err != nil {
					continue
				}
				if again == 0 {
					w.run(raw)
				}
				d, err := invoice.Reader{}.Read(raw, w.clock)
				require.NoError(t, err)
				now[d.ID] = d
			}
		}
		for line := int64(1); line <= 20; line++ {
			e, _ := w.sink.Entry(line)
			switch d, there := now[e.DocumentID]; {
			case e.DocumentID == "":
			case !there:
				gone++
			case d.Main != line && !slices.Contains(d.Duplicates, line):
				left++ // the night gives it back
			default:
				require.Equal(t, d.Hash, e.Hash, "seed %d: line %d has other content of %s, status %s", seed, line,
					d.ID, d.State.Status)
			}
		}
		for id, d := range now {
			for _, line := range append([]int64{d.Main}, d.Duplicates...) {
				e, _ := w.sink.Entry(line)
				require.True(t, e.DocumentID == id || e.Version.Compare(d.Version) > 0,
					"seed %d: line %d has %q, which is older than %s", seed, line, e.DocumentID, id)
			}
		}
	}
	t.Logf("from seed %d: %d lines left, %d of deleted documents", first, left, gone)
	require.Positive(t, min(left, gone))
}

// races is the number of histories: 200, or what HISTORIES says.
func races() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("HISTORIES"), 10, 64); err == nil {
		return n
	}
	return 200
}
