package invoice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func readRule(t testing.TB, in string) invoice.Document {
	d, err := invoice.Reader{}.Read(rule{in: in}.document(t), rulesNow())
	require.NoError(t, err)
	return d
}

func ExampleInvalid() {
	d, err := invoice.Reader{}.Read([]byte(`{"id": "doc1", "invoice_details_from_rpa": {"IVCE_DTL_UID": "12a"},
		"process_output": {"invoice_line_status": "RC-AI", "part_number_confidence": 1.2}}`), rulesNow())
	fmt.Println(err)
	fmt.Println(d.Problem)
	fmt.Println(fault.KindOf(d.Problem), fault.CodeOf(d.Problem), fault.Has(d.Problem, fault.Unreadable))
	// Output:
	// <nil>
	// document "doc1": invoice_details_from_rpa.IVCE_DTL_UID: expected the id of an invoice line: a whole number from 1, found text "12a"; process_output.part_number_confidence: expected a number from 0 to 1, found number 1.2
	// document validation.id true
}

func TestAnErrorNamesEveryFieldOnceAndLogsNoValue(t *testing.T) {
	d := readRule(t,
		`{"process_output": {"part_number": "«secret*20»", "unspsc": "0123456789A", "data_verified": "perhaps",
		"upc": 1.5, "stage": {"secret": 1}, "processing_started_at": "2025-12-17 10:30:00", "invoice_line_status": ""}}`)
	var problem *invoice.Invalid
	require.ErrorAs(t, d.Problem, &problem)
	var paths []string
	for _, f := range problem.Fields {
		paths = append(paths, f.Path+" "+f.Code)
	}
	require.Equal(t, []string{
		"process_output.part_number too_long", "process_output.unspsc too_long", "process_output.upc wrong_type",
		"process_output.invoice_line_status required", "process_output.data_verified flag",
		"process_output.stage wrong_type",
		"process_output.processing_started_at no_offset",
	}, paths)
	require.Contains(t, problem.Error(),
		`process_output.part_number: expected text of at most 100 characters, found text of 120 characters "secretsecretsecretsecretsecretsecretsecr"…;`)
	require.Contains(t, problem.Error(), "found number 1.5")
	safe := problem.Safe()
	require.Contains(t, safe,
		"process_output.part_number: expected text of at most 100 characters, found text of 120 characters;")
	for _, value := range []string{"secret", "0123456789A", "perhaps", "1.5", "10:30:00\""} {
		require.NotContains(t, safe, value)
		require.NotContains(t, fault.As(d.Problem).Error(), value, "the classified form is what logs print")
	}
	require.False(t, fault.Has(d.Problem, fault.Unreadable))
	require.Equal(t, fault.ScopeDocument, fault.ScopeOf(fault.KindOf(d.Problem)))
}

func TestAnErrorIsOneLineOfOneKilobyte(t *testing.T) {
	ids := strings.Repeat(`"x\n🔩",`, 5000) + `"x"`
	d := readRule(t,
		`{"id": "`+strings.Repeat(`🔩\n`, 3000)+`", "post-processing": {"duplicate_detail_uids": [`+ids+
			`]}, "process_output": {"part_number": []}}`)
	var problem *invoice.Invalid
	require.ErrorAs(t, d.Problem, &problem)
	require.Len(t, problem.Fields, 64)
	require.InDelta(t, 5001+1-64, problem.Omitted, 1)
	for _, line := range []string{problem.Error(), problem.Safe()} {
		require.LessOrEqual(t, len(line), invoice.MaxErrorBytes)
		require.NotContains(t, line, "\n")
	}
	require.Regexp(t, ` and \d+ more$`,
		readRule(t, `{"post-processing": {"duplicate_detail_uids": [`+ids+`]}}`).Problem.Error())
}

func TestAProblemIsFoundThroughEveryWrapping(t *testing.T) {
	err := fmt.Errorf("committing: %w", readRule(t, `{"process_output": "x"}`).Problem)
	var f *fault.Error
	require.True(t, errors.As(err, &f))
	require.Equal(t, fault.Document, f.Kind)
	require.Equal(t, fault.Unreadable, f.Condition)
	require.Equal(t, "validation.not_an_object", f.Code)
	require.Equal(t, "validation", fault.CodeOf(&invoice.Invalid{}))
}

func TestWhatMakesItUnreadableComesFirst(t *testing.T) {
	d := readRule(t, `{"process_output": {"part_number": true}, "invoice_details_from_rpa": 5}`)
	require.Equal(t, "validation.not_an_object", fault.CodeOf(d.Problem))
	require.Contains(t, d.Problem.Error(),
		"invoice_details_from_rpa: expected an object, found number 5; process_output.part_number: ")
}
