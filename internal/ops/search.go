package ops

import (
	"encoding/json"

	"sqlwriter/internal/invoice"
)

// listed are the members of a document in a list. The error's text and the attempts are left out: they have up to 11
// KB.
func listed() []string {
	return []string{
		"id", "_ts", "request_details", "invoice_details_from_rpa.IVCE_DTL_UID", "sql_writer.status",
		"sql_writer.retry_count",
		"sql_writer.retry_after", "sql_writer.last_error_kind", "sql_writer.last_error_code",
		"sql_writer.failed_at", "sql_writer.version",
	}
}

// found is a document of a search.
type found struct {
	invoice.Document
	// request is request_details.id; expected is request_details.total_invoice_detail_ids, 0 when it is no number.
	request  string
	expected int
}

// foundOf reads a document of a search. Members of an unexpected type count as missing. Of a document whose id the app
// cannot use, only the id and _ts are read.
func (o *Ops) foundOf(doc invoice.Projection) (f found, err error) {
	if f.Document, err = o.o.Reader.Read(doc, o.o.Now()); err != nil {
		var head struct {
			ID string `json:"id"`
			TS int64  `json:"_ts"`
		}
		if json.Unmarshal(doc, &head) != nil {
			return f, err
		}
		f.Document = invoice.Document{ID: head.ID, TS: head.TS, Version: invoice.Version{Key: invoice.Key(head.ID)}}
		return f, nil //nolint:nilerr // the list shows it
	}
	var members struct {
		Request map[string]json.RawMessage `json:"request_details"`
	}
	_ = json.Unmarshal(doc, &members) // what is no object has no members
	if id := members.Request["id"]; json.Unmarshal(id, &f.request) != nil {
		var n json.Number
		if json.Unmarshal(id, &n) == nil {
			f.request = n.String()
		}
	}
	_ = json.Unmarshal(members.Request["total_invoice_detail_ids"], &f.expected) // stays 0
	return f, nil
}
