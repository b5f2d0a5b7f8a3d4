package sqlserver_test

import "sqlwriter/test/conformance"

// Differences of the one T-SQL server other than Microsoft's that was tested (Babelfish 4.3), by case. SQL Server
// itself must pass every case.
const (
	unescape = "OPENJSON ... WITH does not take the escapes out of a JSON string"
	timeout  = "a lock timeout has the number of everything unmapped, and not 1222"
	schema   = "a missing table or column has the number of everything unmapped, and not 208 or 207"
	readOnly = "a database cannot be made read-only"
	cancel   = "the attention that cancels a request is ignored: the request goes on to its COMMIT"
)

func sinkDeviations() map[string]conformance.Deviation {
	return map[string]conformance.Deviation{
		"quotes, backslashes and what looks like SQL or JSON": {
			Seen: `\"`, Because: unescape,
		},
		"control characters, line separators and blanks at both ends": {
			Seen: `\\u0001`, Because: unescape,
		},
		"a call whose context ends on the way is infrastructure and writes nothing": {
			Seen: "infrastructure cancelled", Because: cancel,
		},
		"a line that an open transaction holds is contention within bounds, and nothing is written": {
			Seen: "document 33557097", Because: timeout,
		},
		"with a ledger row: the older one whole after newer's UPDATE stays out": {
			Seen: "33557097", Because: timeout,
		},
		"with a ledger row: a still newer one whole after newer's UPDATE ends on top": {
			Seen: "33557097", Because: timeout,
		},
		"with a ledger row: an earlier snapshot of the document whole after the later's UPDATE stays out": {
			Seen: "33557097", Because: timeout,
		},
		"a missing IVCE_DTL blames no document, and all is well when it is back": {
			Seen: "document 33557097", Because: schema,
		},
		"a missing IVCE_TRKG_MSTR blames no document, and all is well when it is back": {
			Seen: "document 33557097", Because: schema,
		},
		"a missing ledger blames no document, and all is well when it is back": {
			Seen: "document 33557097", Because: schema,
		},
		"a missing column of IVCE_DTL blames no document, and all is well when it is back": {
			Seen: "document 33557097", Because: schema,
		},
		"a missing column of IVCE_TRKG_MSTR blames no document, and all is well when it is back": {
			Seen: "document 33557097", Because: schema,
		},
		"a heartbeat of a read-only database is infrastructure, until it can be written to again": {
			Seen: "'ALTER DATABASE' is not currently supported", Because: readOnly,
		},
		"a heartbeat on a row that an open transaction holds is contention within bounds, and raises nothing": {
			Seen: "infrastructure 33557097", Because: timeout,
		},
		"a takeover of a row that an open transaction holds is contention within bounds, and changes nothing": {
			Seen: "infrastructure 33557097", Because: timeout,
		},
		"a preview without items misses the tables that a preview needs": {
			Seen: "document 33557097", Because: schema,
		},
	}
}

// bisectDeviations follow from the different error numbers.
func bisectDeviations() map[string]conformance.Deviation {
	missing := conformance.Deviation{Seen: "document 33557097", Because: schema}
	locked := conformance.Deviation{Seen: "document 33557097", Because: timeout}
	return map[string]conformance.Deviation{
		"bisect: a missing table costs no document a retry, and all are written when it is back":                      missing,
		"bisect: a missing table costs no document a retry, and all are written when it is back (four parts at once)": missing,
		"bisect: a document on a locked line waits alone, uncounted":                                                  locked,
		"bisect: a document on a locked line waits alone, uncounted (four parts at once)":                             locked,
	}
}
