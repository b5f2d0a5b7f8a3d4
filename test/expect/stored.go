package expect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// read decodes a stored document. lines is empty if the document names no valid line.
func read(name string, raw json.RawMessage) (document, error) {
	v, err := decode(raw)
	if err != nil {
		return document{}, err
	}
	d := document{name: name}
	d.id, _ = v["id"].(string)
	d.output, _ = v["process_output"].(map[string]any)
	d.writer, _ = v["sql_writer"].(map[string]any)
	d.at, d.hasTime = requestTime(d.id)
	d.versions = version{us: d.at.UnixMicro(), key: keyOf(d.id)}
	if !d.hasTime {
		d.versions.us, _ = integer(d.writer["version"])
	}
	rpa, _ := v["invoice_details_from_rpa"].(map[string]any)
	main, err := integer(rpa["IVCE_DTL_UID"])
	if err != nil {
		return d, nil //nolint:nilerr // some examples have no valid line
	}
	d.lines = []int64{main}
	post, _ := v["post-processing"].(map[string]any)
	list, _ := post["duplicate_detail_uids"].([]any)
	for _, item := range list {
		if line, err := integer(item); err == nil && !slices.Contains(d.lines, line) {
			d.lines = append(d.lines, line)
		}
	}
	return d, nil
}

func integer(v any) (int64, error) {
	switch v := v.(type) {
	case json.Number:
		return v.Int64()
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, errors.New("not an integer")
}

// decode decodes a JSON object and keeps the text of numbers.
func decode(raw json.RawMessage) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	return v, nil
}

// sameContent compares two documents without the members that the database adds. withWriter includes sql_writer.
func sameContent(submitted, stored json.RawMessage, withWriter bool) (bool, error) {
	a, err := decode(submitted)
	if err != nil {
		return false, err
	}
	b, err := decode(stored)
	if err != nil {
		return false, err
	}
	ignored := []string{"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"}
	if !withWriter {
		ignored = append(ignored, "sql_writer")
	}
	for _, member := range ignored {
		delete(a, member)
		delete(b, member)
	}
	return reflect.DeepEqual(a, b), nil
}
