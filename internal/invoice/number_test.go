package invoice_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// Arithmetic that writes powers of ten out takes 26 ms for one 123e999999.
func TestHugeNumbersCostAsMuchAsOthers(t *testing.T) {
	for _, c := range []struct{ name, huge, then, harmless string }{
		{"a large exponent", `123e999999`, "retry validation.out_of_range", `1.2`},
		{"as text", `"123e999999"`, "retry validation.out_of_range", `"1.2"`},
		{"a larger one as text", `"-123E+99999999999999999999"`, "retry validation.out_of_range", `"-1.2"`},
		{"a small one", `123e-999999`, "written", `0.95`},
		{"a small one as text", `"123e-999999"`, "written", `"0.95"`},
		{"a small one below 0 as text", `"-123e-999999"`, "retry validation.out_of_range", `"-1.2"`},
		{"0 with an exponent as text", `"0e999999"`, "written", `"0"`},
		{"400 characters as text", `"1.` + strings.Repeat("3", 398) + `"`, "retry validation.out_of_range", `"` + strings.Repeat("x", 400) + `"`},
		{"more characters as text", `"0.` + strings.Repeat("3", 399) + `"`, "retry validation.not_a_number", `"x"`},
		{"10,000 digits", strings.Repeat("9", 10_000), "retry validation.out_of_range", `"` + strings.Repeat("x", 9_998) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := func(number string) []byte {
				return rule{in: `{"process_output": {"manufacturer_name_confidence": ` + number + `, "part_number_confidence": ` + number + `, "unspsc_confidence": ` + number + `}}`}.document(t)
			}
			huge, harmless := document(c.huge), document(c.harmless)
			d, err := invoice.Read(huge, rulesNow())
			require.Equal(t, c.then, resultOf(d, err))
			least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
			for reads, begin := 0, time.Now(); time.Since(begin) < 10*time.Second; reads++ { // other processes disturb single reads
				for i, raw := range [][]byte{harmless, huge} {
					begin := time.Now()
					_, _ = invoice.Read(raw, rulesNow())
					least[i] = min(least[i], time.Since(begin))
				}
				if reads >= 100 && least[1] < 2*least[0] {
					return
				}
			}
			t.Fatalf("a document took %s, a harmless one %s: expected less than twice the time", least[1], least[0])
		})
	}
}
