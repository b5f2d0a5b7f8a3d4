package commit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// deploys replaces the world's instance by a build with another mapping.
func (w *world) deploys(m *invoice.Mapping) {
	w.t.Helper()
	w.maps(m)
	w.breaker, w.commit = w.instance("a", fmt.Sprint("v", m.Version()), w.faulty, nil)
}

// stricter are mappings that refuse what the default one takes, by name. They take what othersApply writes.
func stricter() map[string]*invoice.Mapping {
	maker := func(member string, value any) *invoice.Mapping {
		return mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
			for _, table := range tables {
				table.Column("CLN_MFR_AI_NM")[member] = value
			}
		})
	}
	return map[string]*invoice.Mapping{
		"a narrower text": maker("type", "text(10)"),
		"other values":    maker("only", []string{"other 1", "other 2", "other 3"}),
		"a value at all": mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
			for _, table := range tables {
				table.Column("UNSPSC_CD")["missing"] = "refuse"
			}
		}),
	}
}

func withoutUNSPSC(doc string) string { return strings.Replace(doc, `"unspsc":"39131711",`, "", 1) }

// A mapping gets stricter, and a document that was written comes again and fails for good. Its lines have its content,
// so nothing marks them. Once its content is another, they are marked.
func TestAStricterMappingMarksNoLineThatHasTheContent(t *testing.T) {
	for name, m := range stricter() {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, invoice.DefaultMapping().Version(), m.Version(), "a rule is in no hash")
			w := newWorld(t, 1, 2)
			doc := func(maker, state string) string { return withoutUNSPSC(result(1, 1, maker, state, 2)) }
			w.run(w.put(doc("a manufacturer", ""))...)
			w.deploys(m)
			w.othersApply()
			before := w.everything(1, 2)
			require.Equal(t, map[invoice.Outcome]int{"unchanged": 1}, w.again(doc("a manufacturer", spent())).Outcomes)
			require.Equal(t, before, w.everything(1, 2))
			require.Equal(t, "committed", w.status(idOf(t, doc("", ""))))

			report := w.again(doc("another manufacturer", spent()))
			require.Equal(t, map[invoice.Outcome]int{"failed": 1}, report.Outcomes)
			for _, line := range []int64{1, 2} {
				require.Equal(t, []string{"AI-ERROR", "a manufacturer"}, []string{
					w.value(line, invoice.Detail, "IVCE_LNE_STAT"), w.value(line, invoice.Detail, "CLN_MFR_AI_NM"),
				})
			}
		})
	}
}

// everything is what the database has of lines.
func (w *world) everything(lines ...int64) (all []any) {
	for _, line := range lines {
		l, _ := w.sink.Line(line)
		e, _ := w.sink.Entry(line)
		e.SourceTS = 0 // a later snapshot of the same content raises it
		all = append(all, l, e)
	}
	return all
}

// A document that failed under one mapping is read anew under the next one: when its time comes, when an operator takes
// a poison message over, and when its evidence is put back. Nothing that was stored is of the mapping before.
func TestWhatFailedUnderOneMappingIsReadByTheNext(t *testing.T) {
	for name, m := range stricter() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2)
			w.deploys(m)
			waits := withoutUNSPSC(result(1, 1, "a manufacturer", ""))
			poison := withoutUNSPSC(result(2, 2, "a manufacturer", spent()))
			require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.run(w.put(waits)...).Outcomes)
			w.othersApply()
			require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(poison).Outcomes)
			require.Equal(t, "AI-ERROR", w.value(2, invoice.Detail, "IVCE_LNE_STAT"))

			w.deploys(invoice.DefaultMapping())
			w.clock = w.clock.Add(3 * time.Minute)
			require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.retry(idOf(t, waits)).Outcomes)
			report, err := w.batch(commit.Delivery{
				Documents: w.snapshots(idOf(t, poison)), Purpose: commit.ForRun, TakeOver: replayed(), RunID: "run-1",
			})
			require.NoError(t, err)
			require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
			for _, line := range []int64{1, 2} {
				require.Equal(t, []string{"RC-AI", "a manufacturer"}, []string{
					w.value(line, invoice.Detail, "IVCE_LNE_STAT"), w.value(line, invoice.Detail, "CLN_MFR_AI_NM"),
				})
				e, _ := w.sink.Entry(line)
				require.Equal(t, invoice.DefaultMapping().Version(), e.HashVersion)
			}
		})
	}
}

// Of content that another mapping wrote nobody can tell whether it is the one that failed. The line is left as it is,
// and the document does not count as written.
func TestADocumentThatAnotherMappingWroteFailsForGood(t *testing.T) {
	for _, maker := range []string{"a manufacturer", "another manufacturer"} {
		w := newWorld(t, 1, 2)
		doc := result(1, 1, "a manufacturer", "", 2)
		w.deploys(mapping.Without(invoice.Detail, "UPC_CD"))
		w.run(w.put(doc)...)
		before := w.everything(1, 2)
		w.deploys(stricter()["a narrower text"])
		w.othersApply()
		require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(result(1, 1, maker, spent(), 2)).Outcomes)
		require.Equal(t, before, w.everything(1, 2))
		require.Equal(t, "AI-ERROR could not be set where another mapping wrote the document, perhaps with this content: "+
			"lines 1, 2", w.state(idOf(t, doc))["final_error"])
	}
}
