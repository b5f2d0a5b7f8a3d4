package reconcile

import "sqlwriter/internal/fault"

// Faults is the table of this package's codes, for operators.
func Faults() []fault.Row {
	given := fault.Consequence{Spends: fault.Nothing, Next: "the run is failed at once and its error says why; the next night begins anew"}
	return fault.Of("writer", []fault.Row{
		{
			Code: "impossible_cell", Kind: fault.Internal, Source: "docs/findings.md", Own: given,
			Reason: "a comparison met documents and rows in states that exclude each other: a mistake of the app",
		},
	})
}
