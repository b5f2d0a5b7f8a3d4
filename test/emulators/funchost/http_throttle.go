package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// httpOptions are extensions.http of host.json; -1 is no bound, the host's own value on every plan but Consumption on
// Windows (HttpOptionsSetup.cs).
type httpOptions struct {
	// concurrent is how many requests run at once, outstanding how many run and wait.
	concurrent, outstanding int
}

// parseHTTPOptions reads extensions.http. A name that the extension does not know, or that is not emulated, is an error
// here: the real host ignores the first, and a misspelt limit is no limit.
func parseHTTPOptions(text json.RawMessage) (httpOptions, error) {
	o := httpOptions{concurrent: -1, outstanding: -1}
	if len(text) == 0 || string(text) == "null" {
		return o, nil
	}
	var section binding
	if err := json.Unmarshal(text, &section); err != nil {
		return o, fmt.Errorf("host.json: extensions.http: %w", err)
	}
	r := reader{binding: section}
	r.only("maxconcurrentrequests maxoutstandingrequests dynamicthrottlesenabled")
	for name, to := range map[string]*int{
		"maxConcurrentRequests": &o.concurrent, "maxOutstandingRequests": &o.outstanding,
	} {
		if n, set := r.atLeastOne(name); set { // to the host -1 is no bound, too: leave it out
			*to = n
		}
	}
	if r.flag("dynamicThrottlesEnabled") {
		r.fail(
			errors.New("'dynamicThrottlesEnabled' is not implemented by this emulator: it reads counters of App Service"))
	}
	if err := r.problem(); err != nil {
		return o, fmt.Errorf("host.json: extensions.http: %w", err)
	}
	return o, nil
}

// throttle is the host's queue of requests. Sources: HttpThrottleMiddleware.cs, HttpRequestQueue.cs.
type throttle struct {
	running, outstanding chan struct{} // nil is no bound
}

func newThrottle(o httpOptions) throttle {
	bound := func(n int) chan struct{} {
		if n < 0 {
			return nil
		}
		return make(chan struct{}, n)
	}
	return throttle{bound(o.concurrent), bound(o.outstanding)}
}

// serve runs a request when its turn comes, or refuses it at once. A client that hangs up keeps its place.
func (q throttle) serve(w http.ResponseWriter, next func()) {
	if q.outstanding != nil {
		select {
		case q.outstanding <- struct{}{}:
			defer func() { <-q.outstanding }()
		default:
			w.Header().Set("X-Function-Scaleout", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
	}
	if q.running != nil {
		q.running <- struct{}{}
		defer func() { <-q.running }()
	}
	next()
}

// defaultBodyLimit is the largest body of a request in bytes, unless FUNCTIONS_REQUEST_BODY_SIZE_LIMIT names another
// (HttpRequestBodySizeMiddleware.cs). A larger one is an error when it is bound, so the answer is 500 (docs/facts.md
// F113).
const defaultBodyLimit = 104857600

func bodyLimit(settings map[string]string) int64 {
	if n, err := strconv.ParseInt(settings["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"], 10, 64); err == nil {
		return n
	}
	return defaultBodyLimit
}
