package comparison

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/reconcile"
)

// reviewed is a world with a REVIEW_KEY.
func reviewed(t *testing.T, open func(testing.TB, func() time.Time) database, contain func(testing.TB, func() time.Time) container) *world {
	t.Helper()
	w := newWorld(t, open, contain)
	key, err := reconcile.ReadReviewKey("process_output.invoice_number,process_output.item")
	require.NoError(t, err)
	w.options.ReviewKey, w.options.ReviewConfidence = key, 0.8
	return w
}

// item is a document of line with the invoice number 1.
type item struct {
	line         int64
	manufacturer string
	confidence   string
	duplicates   []int64
}

func (i item) id() string { return idOf(i.line) }

var confidence = regexp.MustCompile(`"manufacturer_name_confidence": [0-9.]+`)

// arrives commits documents, and compares a day later.
func (w *world) arrives(items ...item) night {
	w.Helper()
	var ids []string
	for _, i := range items {
		text := documentOf(i.id(), i.line, i.manufacturer, `{"status":"pending","retry_count":0}`, i.duplicates...)
		text = strings.Replace(text, fmt.Sprintf(`"invoice_number":"INV-%d"`, i.line), `"invoice_number":"INV-1"`, 1)
		text = confidence.ReplaceAllString(text, `"manufacturer_name_confidence": `+i.confidence)
		ids = append(ids, w.put(text))
	}
	w.offer(ids...)
	w.pass(day)
	return w.compare(false)
}

func differs(i item) reconcile.Key {
	return reconcile.Key{Class: reconcile.SameKeyDiffers, Line: i.line, Document: i.id()}
}

func eachDatabase(t *testing.T, test func(w *world)) {
	t.Helper()
	for name, open := range databases() {
		contain := inMemoryContainer
		if name == "sqlite" {
			contain = emulated
		}
		t.Run(name, func(t *testing.T) { test(reviewed(t, open, contain)) })
	}
}

func TestTwoLinesWithOneKeyAreListedOnceWhateverTheOrder(t *testing.T) {
	a, b := item{11, "ACME", "0.8", nil}, item{12, "Bolt Works", "0.95", nil}
	for _, nights := range [][][]item{{{a}, {b}}, {{b}, {a}}, {{a, b}}, {{b, a}}} {
		eachDatabase(t, func(w *world) {
			w.db.addLines(w, 11, 12)
			for i, items := range nights {
				wanted := 0
				if i == len(nights)-1 {
					wanted = 1
				}
				found := w.arrives(items...)
				require.Equal(w, wanted, found.counts()[reconcile.SameKeyDiffers])
				require.Empty(w, found.mended)
			}
			for _, whole := range []bool{false, true} { // listed once in every night, and counted by those that come to it
				requireKeys(w, []reconcile.Key{differs(a)}, w.inState(reconcile.Open))
				w.pass(day)
				w.compare(whole)
			}
			requireKeys(w, []reconcile.Key{differs(a)}, w.inState(reconcile.Open))
			require.Empty(w, w.inState(reconcile.Gone))
		})
	}
}

// The documents of a key are on two pages of those that changed.
func TestAKeyCountsOnceInANight(t *testing.T) {
	eachDatabase(t, func(w *world) {
		w.db.addLines(w, 11, 3000)
		w.offer(w.consistent(100, 120)...)
		found := w.arrives(item{11, "ACME", "0.9", nil}, item{3000, "Bolt Works", "0.9", nil})
		require.Equal(w, 1, found.counts()[reconcile.SameKeyDiffers])
		requireKeys(w, []reconcile.Key{differs(item{line: 11})}, w.inState(reconcile.Open))
	})
}

// A third line with the same key changes the finding, and does not make another.
func TestAThirdLineWithTheKeyMakesNoSecondFinding(t *testing.T) {
	eachDatabase(t, func(w *world) {
		w.db.addLines(w, 11, 12, 13)
		w.arrives(item{12, "ACME", "0.9", nil}, item{13, "Bolt Works", "0.9", nil})
		requireKeys(w, []reconcile.Key{differs(item{line: 12})}, w.inState(reconcile.Open))
		w.arrives(item{11, "Carr", "0.9", nil})
		requireKeys(w, []reconcile.Key{differs(item{line: 11})}, w.inState(reconcile.Open))
		requireKeys(w, []reconcile.Key{differs(item{line: 12})}, w.inState(reconcile.Gone))
	})
}

func TestLowConfidenceIsCountedAndNotListed(t *testing.T) {
	eachDatabase(t, func(w *world) {
		w.db.addLines(w, 11, 12)
		w.arrives(item{11, "ACME", "0.7999", nil})
		found := w.arrives(item{12, "Bolt Works", "0.95", nil})
		require.Equal(w, 1, found.counts()[reconcile.Ambiguous])
		require.Zero(w, found.counts()[reconcile.SameKeyDiffers])
		require.Empty(w, w.inState(reconcile.Open))
	})
}

// A duplicate has its main line's key by its nature, and equal values are right. Only the lines 12 and 13 differ.
func TestDuplicatesAndEqualValuesAreNoFinding(t *testing.T) {
	eachDatabase(t, func(w *world) {
		w.db.addLines(w, 11, 12, 13)
		w.arrives(item{11, "ACME", "0.9", []int64{12}}, item{13, "ACME", "0.9", nil})
		require.Empty(w, w.inState(reconcile.Open))
		w.arrives(item{12, "Bolt Works", "0.9", nil})
		requireKeys(w, []reconcile.Key{differs(item{line: 12})}, w.inState(reconcile.Open))
		require.Contains(w, w.inState(reconcile.Open)[0].Detail, "12, 13")
	})
}

// What a person corrects is no longer listed, and nothing is ever written for it.
func TestACorrectedKeyIsGone(t *testing.T) {
	eachDatabase(t, func(w *world) {
		w.db.addLines(w, 11, 12)
		found := w.arrives(item{11, "ACME", "0.9", nil}, item{12, "Bolt Works", "0.9", nil})
		require.Len(w, w.inState(reconcile.Open), 1)
		require.Empty(w, found.mended)
		w.pass(time.Minute)
		w.arrives(item{12, "ACME", "0.9", nil})
		require.Empty(w, w.inState(reconcile.Open))
		requireKeys(w, []reconcile.Key{differs(item{line: 11})}, w.inState(reconcile.Gone))
	})
}
