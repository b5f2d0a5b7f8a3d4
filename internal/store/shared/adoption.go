package shared

import (
	"encoding/json"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
)

// AdoptionRows writes the rows of a page as JSON, each an array: line, version, key, document, source_ts, hash, hash
// version, row hash, outcome.
func AdoptionRows(rows []adopt.Row) (string, error) {
	list := make([][9]any, len(rows))
	for i, r := range rows {
		list[i] = [9]any{r.Line, r.Version.US, r.Version.Key, r.DocumentID, r.SourceTS, r.Hash, r.HashVersion, r.RowHash, r.Outcome}
		if r.Outcome == adopt.Failed {
			list[i][5], list[i][6] = nil, nil
		}
		if r.RowHash == "" {
			list[i][7] = nil
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", fault.Wrap(fault.Internal, opEncode, "encode", "the rows cannot be sent", err)
	}
	return string(b), nil
}

// CodeMoved and MovedReason say that the adoption does not stand where it was read.
const (
	CodeMoved   = "adoption_moved"
	MovedReason = "the adoption does not stand where it was read: somebody else adopts at the same time"
)

// Moved is the error of a run that somebody else has moved on or ended: contention, condition changed.
func Moved(op string) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: CodeMoved, Op: op, Reason: MovedReason}
}
