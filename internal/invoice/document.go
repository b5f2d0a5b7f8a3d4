package invoice

import "time"

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
	// Mapping made Values: one normalised value for each of its columns, in their order. RowValues adds the per-line
	// columns, which are NULL here.
	Mapping *Mapping
	Values  []Value
	// Hash is the content hash: lower-case hex SHA-256 over the mapping's version, the line ids and Values. Content
	// with a Problem also has one. It covers the refused members and never equals the hash of valid content. A value
	// that is read and that only a rule refuses, of the mapping or a Limit, leaves it as it is: the same content has
	// the same hash whatever the rules.
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

	// guessed: a value is unknown, because it or a member on the way to it is refused.
	guessed bool
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
