package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// reviewed gives two documents one key and different manufacturers, and commits them.
func (w *world) reviewed(line, other int64, confidence string) {
	w.t.Helper()
	w.keyed(line, `"shared"`, "ACME", confidence)
	w.keyed(other, `"shared"`, "OTHER", confidence)
}

// keyed commits a document with a key.
func (w *world) keyed(line int64, key, manufacturer, confidence string) {
	w.t.Helper()
	members := `"item":` + key + `,`
	for _, name := range []string{"manufacturer_name", "part_number", "unspsc"} {
		members += fmt.Sprintf(`"%s_confidence":%s,`, name, confidence)
	}
	w.addLines(line)
	w.offer(w.put(documentWith(members, w.idOf(line), line, manufacturer, "")))
}

func withKey(t *testing.T) *world {
	w := newWorld(t)
	w.options.ReviewKey = []reconcile.Path{{"process_output", "item"}}
	return w
}

// Two lines with one key are listed once, whatever the order in which they come.
func TestTwoLinesWithOneKey(t *testing.T) {
	t.Parallel()
	const far = 140 // in another page of documents
	for _, order := range [][2]int64{{4, far}, {far, 4}} {
		w := withKey(t)
		w.consistent(150)
		for _, line := range order {
			w.keyed(line, `"shared"`, map[int64]string{4: "ACME", far: "OTHER"}[line], "0.9")
			w.pass(24 * time.Hour)
			w.night(run.Filter{})
		}
		require.Equal(t, []string{"same_key_differs 4 " + w.idOf(4)}, w.open())
		f := w.all(reconcile.Query{})[0]
		require.Equal(t, "the lines 4, 140 have one review key and differ in CLN_MFR_AI_NM", f.Detail)
		require.Equal(t, reconcile.ByPeople, f.Mend)
		require.NotEmpty(t, f.RowHash)
		w.pass(24 * time.Hour)
		row := w.night(run.Filter{Whole: true})
		require.Equal(t, 1, row.Counts["same_key_differs"])
		w.keyed(far, `"other"`, "OTHER", "0.9")
		w.pass(24 * time.Hour)
		w.night(run.Filter{})
		require.Empty(t, w.open())
	}
}

func TestWhatIsNoFindingOfOneKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do        func(w *world)
		ambiguous int
	}{
		"a confidence below the setting": {func(w *world) { w.reviewed(4, 7, "0.79") }, 1},
		"no confidence":                  {func(w *world) { w.reviewed(4, 7, "null") }, 1},
		"the same values": {func(w *world) {
			w.keyed(4, `"shared"`, "ACME", "0.9")
			w.keyed(7, `"shared"`, "ACME", "0.9")
		}, 0},
		"other keys": {func(w *world) {
			w.keyed(4, `"a"`, "ACME", "0.9")
			w.keyed(7, `"b"`, "OTHER", "0.9")
		}, 0},
		"no keys": {func(w *world) {
			w.keyed(4, `null`, "ACME", "0.9")
			w.keyed(7, `null`, "OTHER", "0.9")
			w.keyed(8, `" "`, "ACME", "0.9")
			w.keyed(10, `" "`, "OTHER", "0.9")
		}, 0},
		"one of them is not in SQL": {func(w *world) {
			w.reviewed(4, 7, "0.9")
			newer := w.put(documentOf(idOf(599, 7)+"b", 7, "NEWER", ""))
			w.offer(newer)
		}, 0},
		"one of them is not committed": {func(w *world) {
			w.reviewed(4, 7, "0.9")
			w.record(w.idOf(7), func(s *invoice.State) { s.Status = invoice.Pending })
		}, 0},
		"no setting": {func(w *world) {
			w.options.ReviewKey = nil
			w.reviewed(4, 7, "0.9")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withKey(t)
			w.consistent(12)
			c.do(w)
			w.pass(30 * time.Minute)
			row := w.night(run.Filter{Whole: true})
			require.Empty(t, w.open())
			require.Equal(t, c.ambiguous, row.Counts["ambiguous"])
		})
	}
}

// Only values that are equal as the container compares them are one key.
func TestManyLinesWithOneKey(t *testing.T) {
	t.Parallel()
	w := withKey(t)
	w.options.ReviewKey = append(w.options.ReviewKey, reconcile.Path{"process_output", "part_number"})
	for line := int64(1); line <= 50; line++ {
		w.keyed(line, `"https://a"`, fmt.Sprint("M", line%3), "0.9")
	}
	w.pass(time.Hour)
	row := w.night(run.Filter{})
	require.Equal(t, []string{"same_key_differs 1 " + w.idOf(1)}, w.open())
	require.Equal(t, 1, row.Counts["same_key_differs"])
	require.Contains(t, w.all(reconcile.Query{})[0].Detail, "18, 19, 20, 30 more have one review key and differ in CLN_MFR_AI_NM")
}

// A key that more documents have than one answer holds means nothing; the keys beside it are compared all the same.
func TestAKeyThatIsTooCommon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand documents with one key")
	}
	w := withKey(t)
	for line := int64(1); line <= 1001; line++ {
		w.keyed(line, `"none"`, fmt.Sprint("M", line%3), "0.9")
	}
	w.reviewed(1501, 1502, "0.9")
	w.pass(time.Hour)
	row := w.night(run.Filter{})
	require.Equal(t, []string{"same_key_differs 1501 " + w.idOf(1501)}, w.open())
	require.Positive(t, row.Counts["ambiguous"])
}

// It changes between the reads: it is looked at again.
func TestAKeyThatChangesIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := withKey(t)
	w.reviewed(4, 7, "0.9")
	w.pass(time.Hour)
	w.after = func(call string) error {
		if call == "SameKeys" && w.calls[call] == 1 {
			w.keyed(7, `"other"`, "OTHER", "0.9")
		}
		return nil
	}
	w.night(run.Filter{})
	require.Equal(t, 2, w.calls["SameKeys"])
	require.Empty(t, w.open())
}

func TestReadReviewKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]reconcile.Path{
		"":   nil,
		"  ": nil,
		"a":  {{"a"}},
		"process_output.invoice_number, process_output.item": {{"process_output", "invoice_number"}, {"process_output", "item"}},
		"post-processing.x": {{"post-processing", "x"}},
	} {
		paths, err := reconcile.ReadReviewKey(text)
		require.NoError(t, err)
		require.Equal(t, want, paths, text)
	}
	for text, says := range map[string]string{
		"a,,b":        `separated by commas, such as process_output.invoice_number,process_output.item; found ""`,
		"a.":          `found "a."`,
		"a b":         `found "a b"`,
		"a[0]":        `found "a[0]"`,
		`a"b`:         `found "a\"b"`,
		"a,b,a":       `the path "a" is there twice`,
		"a,b,c,d,e,f": "expected at most 5 paths, found 6",
	} {
		_, err := reconcile.ReadReviewKey(text)
		require.ErrorContains(t, err, says)
	}
}
