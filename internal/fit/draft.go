package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sqlwriter/internal/invoice"
)

// mend is what a finding suggests for a column of a mapping's file. Empty members change nothing.
type mend struct {
	name, from, kind string
	// keep leaves what the row has, gone takes the column out of the file; known: rows have shown it.
	keep, gone, known bool
}

// mends are by table and column, or key.
type mends map[[2]string]*mend

func (m mends) of(table invoice.Table, column string) *mend {
	at := [2]string{string(table), column}
	if m[at] == nil {
		m[at] = &mend{}
	}
	return m[at]
}

// Draft is the mapping's file with what the findings suggest. What only a person knows stays as it is, but a column
// that the table does not have goes, unless it is the status. The error is that of a file that is no mapping.
func (r *Report) Draft(file []byte) ([]byte, error) {
	var tables map[invoice.Table]struct {
		Key     string
		Columns []invoice.FileColumn
	}
	if err := json.Unmarshal(bytes.TrimPrefix(file, []byte("\ufeff")), &tables); err != nil {
		return nil, fmt.Errorf("draft: %w", err)
	}
	var b bytes.Buffer
	separator := "{\n"
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		t := tables[table]
		replace(&t.Key, r.mends.of(table, t.Key).name)
		key, err := json.Marshal(t.Key)
		if err != nil {
			return nil, fmt.Errorf("draft: %w", err)
		}
		fmt.Fprintf(&b, "%s  %q: {\n    \"key\": %s,\n    \"columns\": [", separator, table, key)
		separator = "\n"
		for _, c := range t.Columns {
			m := r.mends.of(table, c.Name)
			if m.gone && !c.Status {
				continue
			}
			replace(&c.Name, m.name)
			replace(&c.Type, m.kind)
			if m.from != "" {
				c.From = []string{m.from}
			}
			if m.known || m.from+m.name != "" {
				c.Assumed = ""
			}
			if m.keep {
				c.Missing = "keep"
			}
			line, err := json.Marshal(c)
			if err != nil {
				return nil, fmt.Errorf("draft: %w", err)
			}
			fmt.Fprintf(&b, "%s      %s", separator, line)
			separator = ",\n"
		}
		b.WriteString("\n    ]\n  }")
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// Mends reports whether the draft mends what a finding says.
func (r *Report) Mends(f Finding) bool {
	table, column, _ := strings.Cut(f.Where, ".")
	m := *r.mends.of(invoice.Table(table), column)
	m.known, m.keep = false, false // a person decides what a row keeps
	return m != mend{}
}

func replace(text *string, by string) {
	if by != "" {
		*text = by
	}
}
