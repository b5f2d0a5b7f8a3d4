package expect

import "encoding/json"

// LineRows is what one line's two rows hold once a document was written to it.
type LineRows struct {
	Line             int64
	Detail, Tracking Row
}

// RowsOf maps a stored document to the rows of its lines, the main line first: for tests that write rows as another program
// would. Nobody's order of results is looked at.
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
