package invoice

import (
	"cmp"
	"time"
)

// Version orders results for the same invoice line: the newer one wins, whatever the order of arrival. Go, SQLite and
// T-SQL must agree on this total order. It compares the request time in UTC microseconds, then the document key byte by
// byte. The key is lower-case hex, so every collation agrees.
type Version struct {
	// US is the request time at the front of the document's id, in microseconds since 1970-01-01 UTC. For an id without
	// a time it is the document's _ts on the first read, stored in sql_writer.version.
	US  int64
	Key string
}

// Future reports whether the version lies so far in the future that it is never written.
func (v Version) Future(now time.Time) bool { return v.US > now.Add(maxAhead).UnixMicro() }

// Compare answers -1, 0 or +1 as v is older than, the same as, or newer than o.
func (v Version) Compare(o Version) int {
	if c := cmp.Compare(v.US, o.US); c != 0 {
		return c
	}
	return cmp.Compare(v.Key, o.Key)
}
