package reconcile

import (
	"path"
	"strconv"
	"strings"
)

// After reports whether e is the later of two episodes of a document. Times are in whole seconds; of two in one second the one after
// more resets is later.
func (e Episode) After(other Episode) bool {
	if !e.At.Equal(other.At) {
		return e.At.After(other.At)
	}
	return e.resets() > other.resets()
}

// resets is the number of resets in the folder's name.
func (e Episode) resets() int {
	text, _, _ := strings.Cut(path.Base(e.Folder), "-")
	n, _ := strconv.Atoi(text) // 0 for a name that has none
	return n
}
