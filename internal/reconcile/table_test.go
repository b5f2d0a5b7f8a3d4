package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func subjects() []Subject { return []Subject{SubjectLine, SubjectLink, SubjectDocument} }

// cells calls each with every cell.
func cells(each func(Cell)) {
	for _, d := range docStates() {
		for _, l := range ledgerStates() {
			for _, r := range rowStates() {
				for _, e := range evidenceStates() {
					each(Cell{Document: d, Ledger: l, Rows: r, Evidence: e})
				}
			}
		}
	}
}

// Each cell of each subject is decided, and each rule decides some.
func TestEveryCellIsDecidedAndEveryRuleIsNeeded(t *testing.T) {
	rules := Rules()
	decides := make([]int, len(rules))
	for _, s := range subjects() {
		cells(func(c Cell) {
			first := slices.IndexFunc(rules, func(r Rule) bool { return r.matches(s, c) })
			require.GreaterOrEqual(t, first, 0, "%s %+v", s, c)
			decides[first]++
			r, err := Judge(s, c)
			if rules[first].Impossible {
				require.Equal(t, fault.Internal, fault.KindOf(err), "%s %+v", s, c)
				require.Equal(t, "impossible_cell", fault.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, rules[first], r)
		})
	}
	for i, n := range decides {
		require.NotZero(t, n, "a rule before it has all cells of: %+v", rules[i])
	}
}

func TestRulesAreWhole(t *testing.T) {
	for _, r := range Rules() {
		m, known := MeaningOf(string(r.Class))
		require.NotEmpty(t, r.Because)
		require.Equal(t, r.Impossible, r.Class == "", "%+v", r)
		require.Equal(t, !r.Impossible, known, "%+v", r)
		if r.Mend != ByPeople || r.Settled {
			require.True(t, m.Finding, "%+v", r)
		}
		if r.Mend != ByPeople {
			require.NotEmpty(t, m.Mends, "%+v", r)
		}
		for _, list := range [][]string{texts(r.Documents), texts(r.Ledgers), texts(r.Rows), texts(r.Evidence)} {
			slices.Sort(list)
			require.Equal(t, list, slices.Compact(slices.Clone(list)), "a state stands there twice: %+v", r)
		}
	}
}

func texts[S ~string](list []S) (all []string) {
	for _, s := range list {
		all = append(all, string(s))
	}
	return all
}

// A class is of the table, or of a pass that has no cells.
func TestEveryClassIsReachedAndExplained(t *testing.T) {
	reached := map[Class]bool{LeftBehind: true, Impossible: true, GoneNow: true}
	for _, s := range subjects() {
		cells(func(c Cell) {
			for _, c.Fresh = range []bool{false, true} {
				if r, err := Judge(s, c); err == nil {
					reached[r.Class] = true
				}
			}
		})
	}
	seen := map[Class]bool{}
	for _, m := range Meanings() {
		require.False(t, seen[m.Class], m.Class)
		seen[m.Class] = true
		require.True(t, reached[m.Class], m.Class)
		require.NotEmpty(t, m.Means, m.Class)
		require.NotEmpty(t, m.Do, m.Class)
		require.True(t, m.Finding || m.Mends == "", m.Class)
	}
	require.Len(t, seen, len(reached))
}

// What the promise of the tables is: these cells are never a finding, those always are.
func TestJudgeKeepsThePromises(t *testing.T) {
	finding := func(c Class) bool { m, _ := MeaningOf(string(c)); return m.Finding }
	cells(func(c Cell) {
		link, err := Judge(SubjectLink, c)
		if err == nil {
			switch {
			case slices.Contains([]DocState{DocWaiting, DocOverdue, DocNotOffered, DocGone, DocManual, DocUnmarkable}, c.Document):
				require.Equal(t, Consistent, link.Class, "%+v: it promises nothing", c)
			case c.Document == DocUnordered:
				require.Equal(t, NotComparable, link.Class)
			case c.Ledger == LedgerNewer:
				require.Equal(t, Consistent, link.Class, "%+v: newest wins", c)
			case c.Document == DocFailed && c.Rows == RowsMissing, c.Document == DocFailed && c.Ledger == LedgerMarked:
				require.Equal(t, Consistent, link.Class, "%+v", c)
			case c.Document == DocFailed:
				require.True(t, finding(link.Class), "%+v: neither marked nor newer", c)
			case c.Ledger == LedgerSame:
				require.Equal(t, Consistent, link.Class, "%+v", c)
			case c.Ledger == LedgerUnknown:
				require.Equal(t, NotComparable, link.Class, "%+v", c)
			default:
				require.True(t, finding(link.Class), "%+v: a committed document's line has not its content", c)
			}
			if link.Mend != ByPeople {
				require.Contains(t, []RowState{RowsSame, RowsReviewed, RowsUnknown}, c.Rows, "%+v: what a person may have edited is a person's", c)
				require.Equal(t, c.Rows == RowsUnknown, c.Ledger == LedgerNone, "%+v", c)
				require.False(t, c.Document == DocCommittedBefore && c.Ledger == LedgerNone, "%+v: history is a person's", c)
			}
			fresh := c
			fresh.Fresh = true
			soon, err := Judge(SubjectLink, fresh)
			require.NoError(t, err)
			if link.Settled {
				require.Equal(t, Changing, soon.Class)
				require.Equal(t, ByPeople, soon.Mend)
			} else {
				require.Equal(t, link, soon)
			}
			require.Equal(t, finding(link.Class) && slices.Contains([]LedgerState{LedgerSame, LedgerOther, LedgerMarked, LedgerUnknown}, c.Ledger), link.Settled,
				"%+v: a write of this very document may not be recorded yet", c)
		}
		line, err := Judge(SubjectLine, c)
		if err != nil || c.Ledger == LedgerNone || c.Document == DocManual {
			return
		}
		for rows, class := range map[RowState]Class{RowsSame: Consistent, RowsReviewed: Reviewed, RowsEdited: Edited, RowsMissing: RowMissing, RowsNoTracking: TrackingMissing} {
			require.Equal(t, c.Rows == rows, line.Class == class && c.Rows != RowsUnknown, "%+v", c)
		}
		require.Equal(t, line.Mend == WithRewrite, c.Rows == RowsNoTracking && slices.Contains(sent(), c.Document) && c.Ledger != LedgerUnknown, "%+v", c)
	})
}

func TestJudgeRefusesAStateThatDoesNotExist(t *testing.T) {
	for _, c := range []Cell{
		{},
		{Document: "x", Ledger: LedgerSame, Rows: RowsSame, Evidence: EvidenceThere},
		{Document: DocCommitted, Ledger: LedgerSame, Rows: RowsSame},
	} {
		_, err := Judge(SubjectDocument, c)
		require.Equal(t, fault.Internal, fault.KindOf(err))
	}
	_, err := Judge("x", Cell{Document: DocGone, Ledger: LedgerNone, Rows: RowsMissing, Evidence: EvidenceNone})
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func now() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return now().Add(-d) }

func stamp(at time.Time) string { return invoice.Stamp(at, time.UTC) }

func usual() Circumstances {
	return Circumstances{SysName: "web", Now: now(), FlowSince: ago(2 * time.Hour), AdoptedAt: ago(48 * time.Hour)}
}

// doc is a document of the environment, changed five minutes ago.
func doc(change func(*invoice.Document)) invoice.Document {
	d := invoice.Document{
		ID: "a", SysName: "web", TS: ago(5 * time.Minute).Unix(), Main: 1, HasTime: true, Hash: "h",
		Version: invoice.Version{US: ago(24 * time.Hour).UnixMicro(), Key: invoice.Key("a")},
		State:   invoice.State{Present: true, Status: invoice.Committed, CommittedAt: stamp(ago(5 * time.Minute))},
	}
	change(&d)
	return d
}

func TestStatesOfADocument(t *testing.T) {
	status := func(s invoice.Status, changed time.Duration) func(*invoice.Document) {
		return func(d *invoice.Document) {
			d.State, d.TS = invoice.State{Present: true, Status: s}, ago(changed).Unix()
		}
	}
	retry := func(after time.Time) func(*invoice.Document) {
		return func(d *invoice.Document) {
			d.State, d.TS = invoice.State{Present: true, Status: invoice.RetryScheduled, RetryAfter: after.Unix()}, ago(3*time.Hour).Unix()
		}
	}
	for name, c := range map[string]struct {
		change func(*invoice.Document)
		want   DocState
	}{
		"committed":                         {func(*invoice.Document) {}, DocCommitted},
		"committed at the adoption":         {func(d *invoice.Document) { d.State.CommittedAt = stamp(ago(48 * time.Hour)) }, DocCommitted},
		"committed before the adoption":     {func(d *invoice.Document) { d.State.CommittedAt = stamp(ago(49 * time.Hour)) }, DocCommittedBefore},
		"committed at an unknown time":      {func(d *invoice.Document) { d.State.CommittedAt = "yesterday" }, DocCommittedBefore},
		"committed by hand":                 {func(d *invoice.Document) { d.State.Outcome = "manual" }, DocManual},
		"committed without a version":       {func(d *invoice.Document) { d.NeedsVersion = true }, DocUnordered},
		"committed from the future":         {func(d *invoice.Document) { d.Version.US = ago(-2 * time.Hour).UnixMicro() }, DocUnordered},
		"of another environment":            {func(d *invoice.Document) { d.SysName = "other" }, DocNotOffered},
		"without a status":                  {status("", time.Minute), DocNotOffered},
		"with an unknown status":            {status("paused", 3*time.Hour), DocNotOffered},
		"pending for an hour":               {status(invoice.Pending, time.Hour), DocWaiting},
		"pending for more":                  {status(invoice.Pending, time.Hour+time.Second), DocOverdue},
		"processing for more":               {status(invoice.Processing, 2*time.Hour), DocOverdue},
		"a retry that was due an hour ago":  {retry(ago(time.Hour)), DocWaiting},
		"a retry that was due before":       {retry(ago(time.Hour + time.Second)), DocOverdue},
		"a retry that is due later":         {retry(ago(-time.Minute)), DocWaiting},
		"a retry that is due too far ahead": {retry(ago(-48 * time.Hour)), DocOverdue},
		"failed":                            {status(invoice.Failed, time.Minute), DocFailed},
		"failed without a version":          {func(d *invoice.Document) { d.State.Status, d.NeedsVersion = invoice.Failed, true }, DocUnmarkable},
		"failed without a line":             {func(d *invoice.Document) { d.State.Status, d.Main = invoice.Failed, 0 }, DocUnmarkable},
	} {
		require.Equal(t, c.want, usual().DocState(doc(c.change), true), name)
	}
	require.Equal(t, DocGone, usual().DocState(invoice.Document{}, false))

	late := doc(status(invoice.Pending, 3*time.Hour))
	for name, since := range map[string]time.Time{"unknown": {}, "a moment ago": ago(time.Minute), "59 minutes ago": ago(59 * time.Minute)} {
		c := usual()
		c.FlowSince = since
		require.Equal(t, DocWaiting, c.DocState(late, true), "the flow runs since: %s", name)
	}
	c := usual()
	c.AdoptedAt = time.Time{}
	require.Equal(t, DocCommittedBefore, c.DocState(doc(func(*invoice.Document) {}), true), "not adopted")
}

func TestStatesOfALedgerRow(t *testing.T) {
	d := doc(func(*invoice.Document) {})
	row := func(change func(*Ledger)) Ledger {
		l := Ledger{Outcome: "applied", Version: d.Version, DocumentID: d.ID, Hash: d.Hash, HashVersion: invoice.HashVersion}
		change(&l)
		return l
	}
	older, newer := d.Version, d.Version
	older.US--
	newer.US++
	older.Key, newer.Key = "another", "another"
	samesTime := newer
	samesTime.US, samesTime.Key = d.Version.US, "ffff"
	for name, c := range map[string]struct {
		l    Ledger
		want LedgerState
	}{
		"none":                 {Ledger{}, LedgerNone},
		"applied":              {row(func(*Ledger) {}), LedgerSame},
		"adopted":              {row(func(l *Ledger) { l.Outcome = "adopted" }), LedgerSame},
		"adopted unproven":     {row(func(l *Ledger) { l.Outcome, l.HashVersion = "adopted", adopt.Unproven }), LedgerUnknown},
		"another hash version": {row(func(l *Ledger) { l.HashVersion++ }), LedgerUnknown},
		"another version":      {row(func(l *Ledger) { l.Version.US++ }), LedgerUnknown},
		"other content":        {row(func(l *Ledger) { l.Hash = "x" }), LedgerOther},
		"its mark":             {row(func(l *Ledger) { l.Outcome, l.Hash, l.HashVersion = "failed", "", 0 }), LedgerMarked},
		"older":                {row(func(l *Ledger) { l.Version = older }), LedgerOlder},
		"newer":                {row(func(l *Ledger) { l.Version = newer }), LedgerNewer},
		"of the same time":     {row(func(l *Ledger) { l.Version = samesTime }), LedgerNewer},
		"another's mark":       {row(func(l *Ledger) { l.Outcome, l.Version = "failed", older }), LedgerOlder},
	} {
		require.Equal(t, c.want, LedgerStateOf(d, c.l), name)
	}
	require.Equal(t, LedgerUnknown, LedgerStateOf(invoice.Document{}, row(func(*Ledger) {})), "the document is gone")
	require.Equal(t, LedgerMarked, LedgerStateOf(invoice.Document{}, row(func(l *Ledger) { l.Outcome = "failed" })), "the document is gone")
	require.Equal(t, LedgerNone, LedgerStateOf(invoice.Document{}, Ledger{}))
}

func TestStatesOfEvidence(t *testing.T) {
	failed := func(kind string, at time.Time) invoice.Document {
		return doc(func(d *invoice.Document) {
			d.State = invoice.State{Status: invoice.Failed, LastErrorKind: kind, FailedAt: stamp(at)}
		})
	}
	of := func(d invoice.Document, found bool, at time.Time) EvidenceState {
		return usual().EvidenceState(d, Episode{At: at}, found)
	}
	require.Equal(t, EvidenceNone, of(failed("document", ago(time.Hour)), false, time.Time{}))
	require.Equal(t, EvidenceNotLooked, of(failed("", ago(time.Hour)), false, time.Time{}), "another writer's")
	require.Equal(t, EvidenceNone, of(failed("document", ago(363*24*time.Hour)), false, time.Time{}))
	require.Equal(t, EvidenceNotLooked, of(failed("document", ago(365*24*time.Hour)), false, time.Time{}), "as old as evidence is kept")
	require.Equal(t, EvidenceThere, of(failed("document", ago(time.Hour)), true, ago(2*time.Hour)))

	committed := func(change func(*invoice.State)) invoice.Document {
		return doc(func(d *invoice.Document) { d.State.CommittedAt = stamp(ago(10 * time.Hour)); change(&d.State) })
	}
	clean := func(*invoice.State) {}
	require.Equal(t, EvidenceUnexplained, of(committed(clean), true, ago(9*time.Hour)))
	require.Equal(t, EvidenceThere, of(committed(clean), true, ago(59*time.Minute)), "too young")
	require.Equal(t, EvidenceThere, of(committed(clean), true, ago(11*time.Hour)), "committed after it")
	require.Equal(t, EvidenceThere, of(committed(clean), true, ago(10*time.Hour-4*time.Minute)), "two clocks")
	for name, change := range map[string]func(*invoice.State){
		"failed_at":       func(s *invoice.State) { s.FailedAt = stamp(ago(time.Hour)) },
		"reprocess_count": func(s *invoice.State) { s.ReprocessCount = 1 },
		"attempts":        func(s *invoice.State) { s.Attempts = []invoice.Attempt{{Kind: "document"}} },
		"committed_at":    func(s *invoice.State) { s.CommittedAt = "yesterday" }, // _ts counts
	} {
		want := EvidenceThere
		require.Equal(t, want, of(committed(change), true, ago(9*time.Hour)), name)
	}
	require.Equal(t, EvidenceUnexplained, of(doc(func(d *invoice.Document) { d.State = invoice.State{} }), true, ago(9*time.Hour)), "its state was removed")
	require.Equal(t, EvidenceThere, of(invoice.Document{}, true, ago(9*time.Hour)), "the document is gone")
}

func TestFresh(t *testing.T) {
	for at, want := range map[time.Time]bool{
		{}:                         false,
		now():                      true,
		ago(14 * time.Minute):      true,
		ago(15 * time.Minute):      false,
		ago(-14 * time.Minute):     true,
		ago(-365 * 24 * time.Hour): false,
	} {
		require.Equal(t, want, Ledger{WrittenAt: at}.Fresh(now()), at)
	}
}
