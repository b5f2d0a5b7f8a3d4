// Package fill completes the documents of tests, so that none needs an edit for a new column.
package fill

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// Document adds each member of the column table that the document lacks, with a valid value. The other text stays as it
// is. It panics without the object that a member belongs to; that object must not be empty.
func Document(document string) string {
	var parsed map[string]any
	if err := json.Unmarshal([]byte(document), &parsed); err != nil {
		panic(err)
	}
	for _, c := range mapping.InUse().Columns() {
		if c.Source != invoice.FromDocument {
			continue
		}
		object, name, _ := strings.Cut(c.Paths[0], ".")
		members := parsed[object].(map[string]any)
		if _, there := members[name]; there {
			continue
		}
		members[name] = nil
		at := regexp.MustCompile(`"` + regexp.QuoteMeta(object) + `":\s*\{`).FindStringIndex(document)[1]
		document = fmt.Sprintf("%s%q: %s, %s", document[:at], name, valueOf(c, name), document[at:])
	}
	return document
}

// valueOf is a valid value of a column as JSON.
func valueOf(c invoice.Column, name string) string {
	switch c.Kind {
	case invoice.Integer, invoice.Decimal:
		return cmp.Or(c.Limit, c.Min, "7")
	case invoice.Flag:
		return "true"
	case invoice.Time:
		return `"2025-12-17T16:30:03.5Z"`
	case invoice.Text:
		if len(c.Values) > 0 {
			name = c.Values[0]
		}
	}
	return fmt.Sprintf("%q", name[:min(len(name), c.Max)])
}
