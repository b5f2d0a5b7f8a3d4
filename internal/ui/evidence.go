package ui

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// evidence shows the evidence of a document: where it is, and what it says of each failure. Its content is on the command line.
func (v *visit) evidence() (content, error) {
	q, err := query(v, opsapi.EvidenceShow)
	if err != nil {
		return content{}, err
	}
	var found ops.DocumentEvidence
	if found, err = do(v, opsapi.EvidenceShow, q); err != nil {
		return content{}, err
	}
	return content{Title: "Evidence of " + found.Document, Command: "sqlwriterctl evidence show " + shellWord(found.Document), Main: found}, nil
}
