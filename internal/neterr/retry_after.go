package neterr

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter is the wait that a response asks for; 0 if it asks for none. Headers and their order are those of azcore.
func RetryAfter(h http.Header) time.Duration {
	for _, f := range []struct {
		header string
		unit   time.Duration
	}{{"retry-after-ms", time.Millisecond}, {"x-ms-retry-after-ms", time.Millisecond}, {"Retry-After", time.Second}} {
		if n, err := strconv.Atoi(h.Get(f.header)); err == nil && n > 0 {
			return time.Duration(n) * f.unit
		}
	}
	return 0
}
