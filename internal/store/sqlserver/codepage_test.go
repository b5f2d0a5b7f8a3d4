package sqlserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
)

// Each code page must equal Microsoft's table, without characters that SQL Server would replace by similar ones.
func TestWhatACodePageHolds(t *testing.T) {
	for number, c := range map[int]struct {
		// count is the number of characters in Microsoft's table of go-mssqldb 1.11.2.
		count       int
		holds       string
		replaced    []rune // SQL Server stores a similar character or a question mark
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
		1252: {
			251, "Böhler Çelik €–ŽÿŒ½×", []rune{'∞', '−', 'Ω', 'ł', 'Ā', '漢', '😀', 0x81, 0x8D, 0x8F, 0x90, 0x9D}, "",
		},
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

// A column of one code page gets one note at the start. An unknown code page is not checked.
func TestTheCheckNotesCodePages(t *testing.T) {
	of := func(kind string, codePage int) (notes []string) {
		_, notes = sqlserver.Checked(invoice.Column{Name: "CLN_MFR_AI_NM", Kind: invoice.Text, Max: 9},
			sqlserver.UserColumn{Kind: kind, Length: -1, CodePage: codePage})
		return notes
	}
	require.Contains(t, strings.Join(of("varchar", 1252), "\n"),
		"dbo.T.CLN_MFR_AI_NM: varchar(max) has the characters of code page 1252 only")
	require.Contains(t, strings.Join(of("char", 708), "\n"),
		"code page 708, which this build does not know")
	require.Empty(t, of("varchar", 65001))
	require.Empty(t, of("nvarchar", 1252), "the collation of a Unicode column has a code page too")
}
