package shared

import (
	"encoding/json"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
)

// AdoptionRows encodes the rows of a page as a JSON array of arrays. A row is: line, version, key, document, source_ts,
// hash, hash version, sys_name, outcome. Key and hash are places in Hashes. Errors by kind: internal, code "bug".
func AdoptionRows(rows []adopt.Row) (Payload, error) {
	var hashes hashList
	list := make([][9]any, len(rows))
	for i, r := range rows {
		key, err := hashes.add(Hash(r.Version.Key))
		if err != nil {
			return Payload{}, err
		}
		list[i] = [9]any{r.Line, r.Version.US, key, r.DocumentID, r.SourceTS, nil, nil, r.SysName, r.Outcome}
		if r.Outcome == adopt.Failed {
			continue
		}
		if list[i][5], err = hashes.add(Hash(r.Hash)); err != nil {
			return Payload{}, err
		}
		list[i][6] = r.HashVersion
	}
	b, err := json.Marshal(list)
	if err != nil {
		return Payload{}, fault.Wrap(fault.Internal, opEncode, fault.CodeBug, "the rows cannot be sent", err)
	}
	return Payload{JSON: string(b), Hashes: hashes}, nil
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
