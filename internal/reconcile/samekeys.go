package reconcile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// MaxSameKeys is the most documents of one Documents.SameKeys.
const MaxSameKeys = 1000

// CheckKeys validates the arguments of Documents.SameKeys. Errors by kind: internal, code "keys".
//
// A name in a path stands in the text of a query, so it has no control character, quote or backslash.
func CheckKeys(op string, paths []Path, keys [][]json.RawMessage) error {
	if len(paths) == 0 {
		return fault.New(fault.Internal, op, "keys", "there is no path")
	}
	for _, path := range paths {
		if len(path) == 0 || slices.ContainsFunc(path, oddName) {
			return fault.New(fault.Internal, op, "keys", "a path is empty, or a name in it is empty or has a quote, a backslash or a control character")
		}
	}
	for _, key := range keys {
		if len(key) != len(paths) || slices.ContainsFunc(key, isNoScalar) {
			return fault.New(fault.Internal, op, "keys", "a key has not one text, number, true, false or null for each path")
		}
	}
	return nil
}

func oddName(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f })
}

func isNoScalar(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return !json.Valid(value) || value[0] == '{' || value[0] == '['
}

// KeyMembers lists the top-level members that a document of Documents.SameKeys has at least, sorted: those of invoice.Read and those of
// the paths.
func KeyMembers(paths []Path) []string {
	members := invoice.Members()
	for _, path := range paths {
		members = append(members, path[0])
	}
	slices.Sort(members)
	return slices.Compact(members)
}

// ManySameKeys is the error for more than MaxSameKeys documents.
func ManySameKeys(op string) error {
	return fault.New(fault.Document, op, "too_many", "more than %d documents have one of the keys", MaxSameKeys)
}
