package invoice

import (
	"bytes"
	"encoding/json"
	"time"
)

// Snapshot is a document that was read whole, as the container or the change feed gave it. Only a snapshot can be
// recorded: any member may be the container's partition key, and a projection may lack it. ReadSnapshot makes one.
type Snapshot struct {
	Document

	whole json.RawMessage
}

// Projection is some members of a document, as a query selected them. Reader.Read takes it, and ReadSnapshot does not.
type Projection json.RawMessage

// ReadSnapshot is Read for a whole document. The snapshot keeps whole.
func (by Reader) ReadSnapshot(whole json.RawMessage, now time.Time) (Snapshot, error) {
	d, err := by.Read(whole, now)
	return Snapshot{d, whole}, err
}

// JSON is the whole document; nil if ReadSnapshot did not make the snapshot.
func (s Snapshot) JSON() json.RawMessage { return s.whole }

// Identity tells the document from every other one of its container, also from one that is put anew after it was
// deleted: the service's _rid. Without that it is the id, which is unique only within a partition key.
func (s Snapshot) Identity() string {
	if rid := Member(s.whole, []string{"_rid"}); typeOf(rid) == jsonText {
		return string(rid)
	}
	return s.ID
}

// Member is the value at a path of names in a JSON object; nil if it is absent, or if something on its way is no
// object. The last value of a repeated name counts, as in Cosmos DB. The object must be valid JSON.
func Member(object json.RawMessage, path []string) json.RawMessage {
	value := bytes.TrimLeft(object, " \t\r\n")
	for _, name := range path {
		if typeOf(value) != jsonObject {
			return nil
		}
		var found []byte
		eachMember(value, func(n, v []byte) {
			if string(n) == name {
				found = v
			}
		})
		value = found
	}
	return value
}
