package reconcile

import (
	"sqlwriter/internal/fault"
)

// Faults is the table of this package's codes, for operators.
func Faults() []fault.Row {
	given := fault.Consequence{
		Spends: fault.Nothing, Next: "the comparison ends, and its error says why; the next night begins anew",
	}
	return fault.Of("writer", []fault.Row{
		{
			Code: "impossible_cell", Kind: fault.Internal, Source: "docs/findings.md",
			Own: fault.Consequence{
				Spends: fault.Nothing, Next: "it is told and counted as impossible; the others are compared",
			},
			Reason: "a comparison met documents and rows in states that exclude each other: a mistake of the app",
		},
		{
			Code: "position", Kind: fault.Internal, Reason: "the position of a comparison cannot be read",
			Source: "internal/reconcile/comparison.go", Own: given,
		},
		{
			Code: "pass", Kind: fault.Internal, Reason: "a comparison has a part that this build does not know",
			Source: "internal/reconcile/steps.go", Own: given,
		},
	})
}
