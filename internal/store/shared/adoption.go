package shared

import (
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

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

// AdoptionState reads the state of the adoption; without a row it is the zero State. op names the operation of errors.
func AdoptionState(op string, row *sql.Row) (adopt.State, error) {
	var s adopt.State
	var counts string
	var started, finished any
	var adopted, marked int
	err := row.Scan(&s.Phase, &s.Run, &s.Watermark, &counts, &adopted, &marked, &s.By, &started, &finished)
	if errors.Is(err, sql.ErrNoRows) {
		return adopt.State{}, nil
	}
	if err != nil {
		return adopt.State{}, err
	}
	if err := json.Unmarshal([]byte(counts), &s.Counts); err != nil {
		return adopt.State{},
			fault.Wrap(fault.Infrastructure, op, "counts", "the stored counts of the adoption are damaged", err)
	}
	s.Counts.Adopted, s.Counts.Marked = adopted, marked
	s.Run = strings.ReplaceAll(s.Run, "-", "")
	var begun, ended moment
	if err := errors.Join(begun.Scan(started), ended.Scan(finished)); err != nil {
		return adopt.State{},
			fault.Wrap(fault.Infrastructure, op, "time", "the stored time of the adoption is damaged", err)
	}
	s.Started, s.Finished = begun.Time, ended.Time
	return s, nil
}

// LedgerRow reads a row of the ledger for adopt.Reader.
func LedgerRow(rows *sql.Rows) (r adopt.Row, err error) {
	var key, hash Hash
	var version sql.NullInt64
	err = rows.Scan(&r.Line, &r.Version.US, &key, &r.DocumentID, &r.SourceTS, &hash, &version, &r.SysName, &r.Outcome)
	r.Version.Key, r.Hash, r.HashVersion = string(key), string(hash), int(version.Int64)
	return r, err
}
