package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/mapping"
)

func subjects() []Subject { return []Subject{SubjectLine, SubjectLink, SubjectLeft} }

// cells calls each with every cell.
func cells(each func(Cell)) {
	for _, d := range docStates() {
		for _, l := range ledgerStates() {
			for _, r := range rowStates() {
				each(Cell{Document: d, Ledger: l, Rows: r})
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
		if r.Mends {
			require.True(t, m.Finding, "%+v", r)
			require.NotEmpty(t, m.Mends, "%+v", r)
		}
		for _, list := range [][]string{texts(r.Documents), texts(r.Ledgers), texts(r.Rows)} {
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

// A class is of the table, or of what a second look or a save adds.
func TestEveryClassIsReachedAndExplained(t *testing.T) {
	reached := map[Class]bool{Impossible: true, Changing: true, NewEdits: true, Unlisted: true}
	for _, s := range subjects() {
		cells(func(c Cell) {
			if r, err := Judge(s, c); err == nil {
				reached[r.Class] = true
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
			case c.Document == DocOther || c.Document == DocManual:
				require.Equal(t, Consistent, link.Class, "%+v: it promises nothing", c)
			case c.Document == DocUnaudited:
				require.Equal(t, MarkWithoutAudit, link.Class, "%+v: anybody can write that", c)
				require.False(t, link.Mends, "%+v: it may be a person's work", c)
			case c.Document == DocUnordered:
				require.Equal(t, NotComparable, link.Class)
			case c.Ledger == LedgerNewer:
				require.Equal(t, Consistent, link.Class, "%+v: newest wins", c)
			case c.Ledger == LedgerSame:
				require.Equal(t, Consistent, link.Class, "%+v", c)
			case c.Ledger == LedgerUnknown:
				require.Equal(t, NotComparable, link.Class, "%+v", c)
			case c.Rows == RowsArchived:
				require.Equal(t, Archived, link.Class, "%+v", c)
			default:
				require.True(t, finding(link.Class), "%+v: a committed document's line has not its content", c)
			}
			if link.Mends {
				require.Contains(t, []RowState{RowsSame, RowsReviewed, RowsUnknown}, c.Rows,
					"%+v: what a person may have edited is a person's", c)
				require.Equal(t, c.Rows == RowsUnknown, c.Ledger == LedgerNone, "%+v", c)
				require.False(t, c.Document == DocCommittedBefore && c.Ledger == LedgerNone,
					"%+v: history is a person's", c)
			}
		}
		left, err := Judge(SubjectLeft, c)
		if err == nil && c.Rows != RowsMissing && c.Rows != RowsArchived {
			require.Equal(t, left.Class == NoDocument, c.Document == DocOther, "%+v", c)
			require.Equal(t, left.Class == NotNamed, c.Document != DocOther, "%+v", c)
			require.False(t, left.Mends && !slices.Contains(sent(), c.Document), "%+v: no order, or a person's", c)
			require.False(t, left.Mends && c.Ledger != LedgerDropped, "%+v: whoever deleted it decides", c)
			require.False(t, left.Mends && (c.Rows == RowsEdited || c.Rows == RowsUnknown), "%+v: a person's", c)
		}
		line, err := Judge(SubjectLine, c)
		if err != nil || c.Ledger == LedgerNone || c.Document == DocManual {
			return
		}
		for rows, class := range map[RowState]Class{
			RowsSame: Consistent, RowsReviewed: Reviewed, RowsEdited: Edited, RowsMissing: RowMissing,
			RowsArchived: Archived, RowsNoTracking: TrackingMissing,
		} {
			require.Equal(t, c.Rows == rows, line.Class == class && c.Rows != RowsUnknown, "%+v", c)
		}
		require.Equal(t, line.Mends,
			c.Rows == RowsNoTracking && slices.Contains(sent(), c.Document) && c.Ledger != LedgerUnknown, "%+v", c)
	})
}

func TestJudgeRefusesAStateThatDoesNotExist(t *testing.T) {
	for _, c := range []Cell{
		{},
		{Document: "x", Ledger: LedgerSame, Rows: RowsSame},
		{Document: DocCommitted, Ledger: LedgerSame},
	} {
		_, err := Judge(SubjectLink, c)
		require.Equal(t, fault.Internal, fault.KindOf(err))
	}
	_, err := Judge("x", Cell{Document: DocOther, Ledger: LedgerNone, Rows: RowsMissing})
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func now() time.Time { return time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return now().Add(-d) }

func stamp(at time.Time) string { return invoice.Stamp(at, time.UTC) }

func usual() Circumstances {
	return Circumstances{
		SysName: "web", Now: now(), AdoptedAt: ago(48 * time.Hour),
		Marks: map[run.Mark]run.Audit{{Document: "by hand", CommittedAt: stamp(ago(5 * time.Minute))}: {}},
	}
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
	status := func(s invoice.Status) func(*invoice.Document) {
		return func(d *invoice.Document) { d.State = invoice.State{Present: true, Status: s} }
	}
	for name, c := range map[string]struct {
		change func(*invoice.Document)
		want   DocState
	}{
		"committed": {func(*invoice.Document) {}, DocCommitted},
		"committed at the adoption": {func(d *invoice.Document) {
			d.State.CommittedAt = stamp(ago(48 * time.Hour))
		}, DocCommitted},
		"committed before the adoption": {func(d *invoice.Document) {
			d.State.CommittedAt = stamp(ago(49 * time.Hour))
		}, DocCommittedBefore},
		"committed at an unknown time": {func(d *invoice.Document) {
			d.State.CommittedAt = "yesterday"
		}, DocCommittedBefore},
		"committed by hand": {func(d *invoice.Document) {
			d.ID, d.State.Outcome = "by hand", "manual"
		}, DocManual},
		"committed by hand, it says":  {func(d *invoice.Document) { d.State.Outcome = "manual" }, DocUnaudited},
		"committed without a version": {func(d *invoice.Document) { d.NeedsVersion = true }, DocUnordered},
		"committed from the future": {func(d *invoice.Document) {
			d.Version.US = ago(-2 * time.Hour).UnixMicro()
		}, DocUnordered},
		"of another environment": {func(d *invoice.Document) { d.SysName = "other" }, DocOther},
		"without a status":       {status(""), DocOther},
		"with an unknown status": {status("paused"), DocOther},
		"pending":                {status(invoice.Pending), DocOther},
		"processing":             {status(invoice.Processing), DocOther},
		"failed":                 {status(invoice.Failed), DocOther},
		"gone":                   {func(d *invoice.Document) { *d = invoice.Document{} }, DocOther},
	} {
		require.Equal(t, c.want, usual().DocState(doc(c.change)), name)
	}
	c := usual()
	c.AdoptedAt = time.Time{}
	require.Equal(t, DocCommittedBefore, c.DocState(doc(func(*invoice.Document) {})), "not adopted")
}

func TestStatesOfALedgerRow(t *testing.T) {
	d := doc(func(*invoice.Document) {})
	row := func(change func(*Ledger)) Ledger {
		l := Ledger{
			Outcome: "applied", Version: d.Version, DocumentID: d.ID, Hash: d.Hash,
			HashVersion: invoice.DefaultMapping().Version(),
		}
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
		"none":    {Ledger{}, LedgerNone},
		"applied": {row(func(*Ledger) {}), LedgerSame},
		"adopted": {row(func(l *Ledger) { l.Outcome = "adopted" }), LedgerSame},
		"adopted unproven": {
			row(func(l *Ledger) { l.Outcome, l.HashVersion = "adopted", adopt.Unproven }), LedgerUnknown,
		},
		"another hash version": {row(func(l *Ledger) { l.HashVersion++ }), LedgerUnknown},
		"another version":      {row(func(l *Ledger) { l.Version.US++ }), LedgerUnknown},
		"other content":        {row(func(l *Ledger) { l.Hash = "x" }), LedgerOther},
		"its mark": {
			row(func(l *Ledger) { l.Outcome, l.Hash, l.HashVersion = "failed", "", 0 }), LedgerMarked,
		},
		"older":            {row(func(l *Ledger) { l.Version = older }), LedgerOlder},
		"newer":            {row(func(l *Ledger) { l.Version = newer }), LedgerNewer},
		"of the same time": {row(func(l *Ledger) { l.Version = samesTime }), LedgerNewer},
		"another's mark":   {row(func(l *Ledger) { l.Outcome, l.Version = "failed", older }), LedgerOlder},
	} {
		require.Equal(t, c.want, LedgerStateOf(d, c.l), name)
	}
	require.Equal(t, LedgerUnknown, LedgerStateOf(invoice.Document{}, row(func(*Ledger) {})), "the document is gone")
	require.Equal(t, LedgerMarked,
		LedgerStateOf(invoice.Document{}, row(func(l *Ledger) { l.Outcome = "failed" })), "the document is gone")
	require.Equal(t, LedgerNone, LedgerStateOf(invoice.Document{}, Ledger{}))
}

// A ledger row of an earlier version is compared by that version's columns. A value in a column that came since is not
// the content's there; one that cannot be read is.
func TestStatesOfALedgerRowOfAnEarlierMapping(t *testing.T) {
	m := invoice.DefaultMapping()
	earlier := mapping.Without(invoice.Detail, "WEB_SRCH_URL")
	recipe, ok := m.Recipe(earlier.Version(), earlier.Lines())
	require.True(t, ok)
	var limits []invoice.Limit
	read := func(by *invoice.Mapping, output string) invoice.Document {
		d, err := invoice.Reader{Mapping: by, Limits: limits}.Read([]byte(`{"id":"2025-12-17 10:00:00.000000-06:00-0001-1",
			"invoice_details_from_rpa":{"IVCE_DTL_UID":1},"process_output":`+output+`}`), now())
		require.NoError(t, err)
		return d
	}
	const written = `{"invoice_line_status":"DS1","manufacturer_name":"a"}`
	row := func(recipe *invoice.Recipe) Ledger {
		d := read(earlier, written)
		require.NoError(t, d.Problem)
		return Ledger{
			Outcome: "applied", Version: d.Version, DocumentID: d.ID, Hash: d.Hash, HashVersion: earlier.Version(),
			Recipe: recipe,
		}
	}
	for output, want := range map[string]LedgerState{
		written: LedgerSame,
		`{"invoice_line_status":"DS1","manufacturer_name":"b"}`:                                               LedgerOther,
		`{"invoice_line_status":"DS1","manufacturer_name":"` + strings.Repeat("a", 300) + `"}`:                LedgerOther,
		`{"invoice_line_status":"DS1","manufacturer_name":["a"]}`:                                             LedgerUnknown,
		`{"invoice_line_status":"DS1","manufacturer_name":"a","manufacturer_name_confidence":7}`:              LedgerOther,
		`{"invoice_line_status":"DS1","manufacturer_name":"a","manufacturer_name_confidence":"not a number"}`: LedgerUnknown,
	} {
		d := read(m, output)
		require.Equal(t, want, LedgerStateOf(d, row(&recipe)), output)
		require.Equal(t, LedgerUnknown, LedgerStateOf(d, row(nil)), "%s: no recipe", output)
	}
	then := row(&recipe)
	limits = []invoice.Limit{func(invoice.Document) *invoice.FieldError { return &invoice.FieldError{Code: "later"} }}
	d := read(m, written)
	require.Error(t, d.Problem)
	require.Equal(t, LedgerSame, LedgerStateOf(d, then), "a limit hides no value")
}
