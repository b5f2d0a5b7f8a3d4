package invoice_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// A number is bounded before the arithmetic sees it.
func TestHugeNumbersCostAsMuchAsOthers(t *testing.T) {
	for _, c := range []struct{ name, huge, then, harmless string }{
		{"a large exponent", `123e999999`, "retry validation.out_of_range", `1.2`},
		{"as text", `"123e999999"`, "retry validation.out_of_range", `"1.2"`},
		{"a larger one as text", `"-123E+99999999999999999999"`, "retry validation.out_of_range", `"-1.2"`},
		{"a small one", `123e-999999`, "written", `0.95`},
		{"a small one as text", `"123e-999999"`, "written", `"0.95"`},
		{"a small one below 0 as text", `"-123e-999999"`, "retry validation.out_of_range", `"-1.2"`},
		{"0 with an exponent as text", `"0e999999"`, "written", `"0"`},
		{
			"400 characters as text", `"1.` + strings.Repeat("3", 398) + `"`, "retry validation.out_of_range",
			`"` + strings.Repeat("x", 400) + `"`,
		},
		{"more characters as text", `"0.` + strings.Repeat("3", 399) + `"`, "retry validation.not_a_number", `"x"`},
		{
			"10,000 digits", strings.Repeat("9", 10_000), "retry validation.out_of_range",
			`"` + strings.Repeat("x", 9_998) + `"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := func(number string) []byte {
				return rule{
					in: `{"process_output": {"manufacturer_name_confidence": ` + number +
						`, "part_number_confidence": ` + number + `, "unspsc_confidence": ` + number + `}}`,
				}.document(t)
			}
			huge, harmless := document(c.huge), document(c.harmless)
			d, err := invoice.Reader{}.Read(huge, rulesNow())
			require.Equal(t, c.then, resultOf(d, err))
			require.Less(t, allocated(huge), 2*allocated(harmless)+4*uint64(len(huge)), "bytes for a document")
		})
	}
}

// allocated is how many bytes the reading of a document allocates. Arithmetic that writes powers of ten out needs 400
// KB and more, which is 26 ms for one 123e999999.
func allocated(raw []byte) uint64 {
	const reads = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range reads {
		_, _ = invoice.Reader{}.Read(raw, rulesNow())
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / reads
}
