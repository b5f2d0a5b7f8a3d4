package shared

import (
	"encoding/json"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
)

// AdoptionRows encodes the rows of a page as a JSON array of arrays. A row is: line, version, key, document,
// source_ts, hash, hash version, sys_name, outcome. Errors by kind: internal, code "encode".
func AdoptionRows(rows []adopt.Row) (string, error) {
	list := make([][9]any, len(rows))
	for i, r := range rows {
		list[i] = [9]any{r.Line, r.Version.US, r.Version.Key, r.DocumentID, r.SourceTS, r.Hash, r.HashVersion, r.SysName, r.Outcome}
		if r.Outcome == adopt.Failed {
			list[i][5], list[i][6] = nil, nil
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", fault.Wrap(fault.Internal, opEncode, "encode", "the rows cannot be sent", err)
	}
	return string(b), nil
}

// CodeMoved and MovedReason are the code and the reason of AdoptionMoved.
const (
	CodeMoved   = "adoption_moved"
	MovedReason = "the state of the adoption changed after it was read: another adoption is running"
)

// AdoptionMoved is the error of an adoption whose state another caller changed. It is contention with the condition
// changed.
func AdoptionMoved(op string) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: CodeMoved, Op: op, Reason: MovedReason}
}
