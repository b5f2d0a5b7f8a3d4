package sqlserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/writer"
)

// Each code page holds what Microsoft's table has, and nothing that SQL Server would replace by something similar.
func TestWhatACodePageHolds(t *testing.T) {
	for number, c := range map[int]struct {
		// count is how many characters Microsoft's table has, as go-mssqldb 1.11.2 knows them.
		count       int
		holds       string
		replaced    []rune // by SQL Server, for something similar or a question mark
		differences string
	}{
		437:  {256, "Üé∞≈½░", []rune{'€', '−', 'Ž', 0x81}, ""},
		850:  {256, "Üé×½░", []rune{'∞', '−', '€'}, ""},
		874:  {225, "กขฃ฿€…", []rune{'∞', '−', 'é', 0x81, 0xA0B}, ""},
		932:  {7518, "漢字かなカナｱ∞∥～－①㈱髙", []rune{'−', '€', 'é', 0xA0, '〜', '한'}, "U+0080"},
		936:  {21920, "汉字漢∞€～あЖ", []rune{'−', 'é' + 0x100, 'ǹ', '⿰', '㐀', 0xA0, '한'}, ""},
		949:  {17176, "한글똠漢∞€～あ®", []rune{'−', 'é', 0xA0, '汉'}, ""},
		950:  {13620, "漢字港裏碁∞€～﹏", []rune{'−', 'é', 'あ', 'Ж', '␀', '㐀', '한', 0xA0}, "without U+2593"},
		1250: {251, "ŁódźŽ€–", []rune{'∞', '−', 'ñ', 0x81, 0x83}, ""},
		1251: {255, "ЖёЄ€№", []rune{'∞', '−', 'é', 0x98}, ""},
		1252: {251, "Böhler Çelik €–ŽÿŒ½×", []rune{'∞', '−', 'Ω', 'ł', 'Ā', '漢', '😀', 0x81, 0x8D, 0x8F, 0x90, 0x9D}, ""},
		1253: {239, "Ωμέγα€", []rune{'∞', '−', 'é', 0xAA}, ""},
		1254: {249, "ĞİŞğış€", []rune{'∞', '−', 'ł'}, ""},
		1255: {234, "אבג₪€", []rune{'∞', '−', 'é'}, "U+05BA"},
		1256: {256, "ابپ€é", []rune{'∞', '−', 'ł'}, ""},
		1257: {244, "ĀŽš€", []rune{'∞', '−', 'ñ'}, ""},
		1258: {247, "ăơư₫€é", []rune{'∞', '−', 'ế'}, ""},
	} {
		require.Equal(t, c.count, sqlserver.Characters(number), "code page %d (%s)", number, c.differences)
		for _, r := range "Is it? Yes: 100% \\~\r\n" + c.holds {
			_, lacks, _ := sqlserver.Lacks(number, string(r))
			require.False(t, lacks, "code page %d holds U+%04X", number, r)
		}
		for _, r := range c.replaced {
			found, lacks, _ := sqlserver.Lacks(number, "abc"+string(r)+"def")
			require.True(t, lacks, "code page %d lacks U+%04X", number, r)
			require.Equal(t, r, found)
		}
		_, lacks, _ := sqlserver.Lacks(number, "abc\xff")
		require.True(t, lacks, "bytes that are no text")
	}
	for _, number := range []int{0, 65001, 1200, 20127} {
		_, _, known := sqlserver.Lacks(number, "x")
		require.False(t, known, number)
	}
}

// A column of a code page is worth a line at the start, once for the column; one that is not known is not checked.
func TestTheCheckNotesCodePages(t *testing.T) {
	require.Contains(t, strings.Join(sqlserver.NoteOn("varchar", 1252), "\n"), "dbo.T.CLN_MFR_AI_NM: varchar(max) holds the characters of code page 1252 only")
	require.Contains(t, strings.Join(sqlserver.NoteOn("char", 708), "\n"), "code page 708, which this build does not know")
	require.Empty(t, sqlserver.NoteOn("varchar", 65001))
	require.Empty(t, sqlserver.NoteOn("nvarchar", 1252), "the collation of a Unicode column has a code page too")
}

// paged is a database whose columns have code pages, and its requests.
type paged struct {
	numbers []int
	err     error
	reads   int
	at      time.Time
	sent    []string // the ids of the documents, request by request
}

func (p *paged) pages() sqlserver.CodePages {
	return sqlserver.NewCodePages(func(context.Context) ([]int, error) {
		p.reads++
		return append([]int(nil), p.numbers...), p.err
	}, func() time.Time { return p.at })
}

func (p *paged) apply(items []writer.Item) (outcomes []writer.Outcome, err error) {
	var ids []string
	for _, it := range items {
		ids = append(ids, it.DocumentID)
		outcomes = append(outcomes, writer.Outcome{DocumentID: it.DocumentID, Verdict: writer.Applied})
	}
	p.sent = append(p.sent, strings.Join(ids, " "))
	return outcomes, nil
}

// newPaged has one column of a code page.
func newPaged(column string, number int) *paged {
	p := &paged{numbers: make([]int, len(invoice.Columns())), at: time.Date(2025, 12, 17, 3, 12, 0, 0, time.UTC)}
	p.set(column, number)
	return p
}

func (p *paged) set(column string, number int) {
	for i, c := range invoice.Columns() {
		if c.Name == column && c.Table == invoice.Detail {
			p.numbers[i] = number
		}
	}
}

func TestOnlyTheDocumentWithTheCharacterIsRefused(t *testing.T) {
	p := newPaged("CLN_MFR_AI_NM", 1252)
	good, bad, other, mark := item("good", 10, 1), item("bad", 10, 2), item("other", 10, 3), item("mark", 10, 4)
	setText(t, &good, "CLN_MFR_AI_NM", "Böhler € ?")
	setText(t, &bad, "CLN_MFR_AI_NM", "secret ∞")
	setText(t, &other, "UNSPSC_CD", "∞") // a Unicode column
	mark.FailureMark, mark.Values = true, nil
	out, err := p.pages().Apply(t.Context(), []writer.Item{good, bad, other, mark}, p.apply)
	require.NoError(t, err)
	require.Equal(t, []string{"good other mark"}, p.sent, "one request, without the refused one")
	for i, want := range []string{"good", "bad", "other", "mark"} {
		require.Equal(t, want, out[i].DocumentID)
		require.Equal(t, i == 1, out[i].Refused != nil, want)
	}
	require.Empty(t, out[1].Verdict)
	refused := out[1].Refused
	require.Equal(t, fault.Document, fault.KindOf(refused))
	require.Equal(t, "validation.code_page", fault.CodeOf(refused))
	require.ErrorContains(t, refused, "document bad: IVCE_DTL.CLN_MFR_AI_NM: expected characters of the column's code page 1252, found U+221E")
	require.NotContains(t, refused.Error(), "secret")

	out, err = p.pages().Apply(t.Context(), []writer.Item{bad}, p.apply)
	require.NoError(t, err)
	require.Error(t, out[0].Refused)
	require.Len(t, p.sent, 1, "a request of nothing is not made")
	_, err = p.pages().Apply(t.Context(), nil, p.apply)
	require.NoError(t, err)
	require.Len(t, p.sent, 2, "unless nothing was asked for: a preview of no items is a shadow's heartbeat")

	p = newPaged("CLN_MFR_AI_NM", 708)
	out, err = p.pages().Apply(t.Context(), []writer.Item{bad}, p.apply)
	require.NoError(t, err)
	require.NoError(t, out[0].Refused, "a code page that is not known is not checked")
}

// A request that fails answers for all of it: the refused one is met again with the next.
func TestARequestThatFailsBesideARefusedDocument(t *testing.T) {
	p := newPaged("CLN_MFR_AI_NM", 1252)
	good, bad := item("good", 10, 1), item("bad", 10, 2)
	setText(t, &bad, "CLN_MFR_AI_NM", "∞")
	down := fault.New(fault.Infrastructure, "test", "connection", "down")
	_, err := p.pages().Apply(t.Context(), []writer.Item{bad, good}, func([]writer.Item) ([]writer.Outcome, error) { return nil, down })
	require.ErrorIs(t, err, down)
}

// What was read is believed for five minutes; before a document is refused it is read again, and that decides.
func TestCodePagesAreReadAgain(t *testing.T) {
	p := newPaged("CLN_MFR_AI_NM", 1252)
	pages := p.pages()
	good, bad := item("good", 10, 1), item("bad", 10, 2)
	setText(t, &bad, "CLN_MFR_AI_NM", "−")
	refuses := func(it writer.Item) bool {
		t.Helper()
		out, err := pages.Apply(t.Context(), []writer.Item{it}, p.apply)
		require.NoError(t, err)
		return out[0].Refused != nil
	}
	require.False(t, refuses(good))
	require.False(t, refuses(good))
	require.Equal(t, 1, p.reads)

	require.True(t, refuses(bad))
	require.Equal(t, 2, p.reads, "before it is refused")

	p.set("CLN_MFR_AI_NM", 0) // somebody makes it nvarchar
	require.False(t, refuses(bad), "a column that was changed meanwhile costs no document a failure")
	require.Equal(t, 3, p.reads)

	p.set("CLN_MFR_AI_NM", 949) // and varchar again, of another collation
	p.at = p.at.Add(5*time.Minute - time.Second)
	require.False(t, refuses(bad), "not noticed yet")
	require.Equal(t, 3, p.reads)
	p.at = p.at.Add(time.Second)
	require.True(t, refuses(bad))
	require.Equal(t, 4, p.reads, "what was read just now decides")

	p.err = fault.New(fault.Infrastructure, "test", "connection", "down")
	_, err := pages.Apply(t.Context(), []writer.Item{good, bad}, p.apply)
	require.True(t, fault.IsDependency(err), "nothing is refused by what may be out of date")
	require.True(t, errors.Is(err, p.err))
	require.False(t, refuses(good), "and what needs no reading is written")
	p.at = p.at.Add(5 * time.Minute)
	_, err = pages.Apply(t.Context(), []writer.Item{good}, p.apply)
	require.ErrorIs(t, err, p.err)
}
