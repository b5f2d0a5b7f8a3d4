package expect

import "encoding/json"

// LineRows are the required rows of one line.
type LineRows struct {
	Line             int64
	Detail, Tracking Row
}

// RowsOf maps a stored document to the rows of its lines, the main line first. It ignores the order of results. Tests
// write these rows as another program would.
func RowsOf(stored json.RawMessage) ([]LineRows, error) {
	d, err := read("", stored)
	if err != nil {
		return nil, err
	}
	lines := make([]LineRows, 0, len(d.lines))
	for _, line := range d.lines {
		r := LineRows{Line: line}
		if r.Detail, err = detailRow(d, line); err != nil {
			return nil, err
		}
		if r.Tracking, err = trackingRow(d, line); err != nil {
			return nil, err
		}
		lines = append(lines, r)
	}
	return lines, nil
}
