package invoice

import "time"

// HashVersion is the version of the content hash's recipe. It grows when the canonical form of a value changes, so
// that an old hash is never compared with a new one as if they spoke of the same thing (docs/requirements.md R16).
const HashVersion = 1

// Document is one result, read and normalised. The zero value is not useful; Read makes them.
type Document struct {
	// ID is the document's id and partition key.
	ID string
	// ETag is the quoted etag of the snapshot this was read from; empty in a payload that carries none.
	ETag string
	// TS is the snapshot's _ts in whole seconds since 1970. It orders the contents of one document (source_ts).
	TS int64
	// SysName is request_details.sys_name: the environment the document belongs to; empty when absent.
	SysName string
	// State is the member sql_writer, ours.
	State State
	// Version orders the document among others. For an id without a time US is State.Version, or TS at first sight:
	// then NeedsVersion is true and the version must be recorded before anything is written to SQL.
	Version      Version
	NeedsVersion bool
	// HasTime says whether the id carries a readable time.
	HasTime bool
	// Main is the main line's id; Duplicates are the others, without the main one and without repeats, in order.
	Main       int64
	Duplicates []int64
	// Values holds one normalised value per entry of Columns(), in its order; columns that are neither
	// FromDocument nor FromRequestTime are NULL here and made per line by RowValues.
	Values []Value
	// Hash is the content hash: lower-case hex SHA-256 over HashVersion, the line ids and Values. Content with a
	// Problem has one too, over the refused members as well, which no content that can be written shares.
	Hash string
	// RewrittenByHost is true when a text value looks like an ISO time, which the Functions host re-prints: the
	// document must be read again before its text is believed (docs/facts.md F7). It stays true for a document that was
	// read again, so once is enough.
	RewrittenByHost bool
	// IDLooksLikeTime is true when the whole id may be a time to the host's JSON reader: what the trigger shows may then be
	// another id than the document's, and only a document that is found under it can be believed.
	IDLooksLikeTime bool
	// Problem is nil when the document can be written; otherwise an *Invalid (kind document, perhaps condition
	// unreadable) that names every field. Main, Duplicates, Version are still filled as far as they could be read.
	Problem error
}

// Unmarkable says why no failure mark can be made for the document's lines; empty when one can. A version that lies in the
// future never enters the ledger.
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
