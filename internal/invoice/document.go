package invoice

import "time"

// HashVersion is the version of the content hash. It grows when the canonical form of a value or the set of columns
// changes. Hashes of different versions are never compared (docs/requirements.md R16).
const HashVersion = 1

// Document is one result, read and normalised by a Reader. The zero value is not useful.
type Document struct {
	// ID is the document's id. It is unique only within a partition key.
	ID string
	// ETag is the quoted etag of the snapshot; empty if the payload has none.
	ETag string
	// TS is the snapshot's _ts in seconds since 1970. It orders the contents of one document (source_ts).
	TS int64
	// SysName is request_details.sys_name, the document's environment; empty when absent.
	SysName string
	// State is the member sql_writer.
	State State
	// Version orders the document among others. For an id without a time, US is State.Version, or TS on the first read.
	// Then NeedsVersion is true, and the version must be stored before anything is written to SQL.
	Version      Version
	NeedsVersion bool
	// HasTime reports whether the id has a readable time.
	HasTime bool
	// Main is the main line's id. Duplicates are the others in order, without repeats and without Main.
	Main       int64
	Duplicates []int64
	// Values has one normalised value per entry of Columns(), in that order. RowValues adds the per-line columns, which
	// are NULL here.
	Values []Value
	// Hash is the content hash: lower-case hex SHA-256 over HashVersion, the line ids and Values. Content with a
	// Problem also has one. It covers the refused members and never equals the hash of valid content; what a Limit
	// refuses leaves it as it is.
	Hash string
	// RewrittenByHost is true when a text value looks like an ISO time, which the Functions host rewrites
	// (docs/facts.md F7). The document must then be read again from the container. The flag stays true after that read,
	// so read again once only.
	RewrittenByHost bool
	// IDLooksLikeTime is true when the host's JSON reader may take the whole id for a time. The trigger's id may then
	// be another one: trust only a document that is found under it.
	IDLooksLikeTime bool
	// Problem is nil when the document can be written. Otherwise it is an *Invalid (kind document, perhaps condition
	// unreadable) that names every refused field. Main, Duplicates and Version are filled as far as they are readable.
	Problem error
}

// Unmarkable says why the document's lines cannot get a failure mark; empty if they can. A version in the future never
// enters the ledger.
func (d Document) Unmarkable(now time.Time) string {
	switch {
	case d.Main <= 0:
		return "the document names no main line"
	case d.Version.US <= 0:
		return "the document has no version"
	case d.Version.Future(now):
		return "the document's time lies in the future"
	}
	return ""
}
