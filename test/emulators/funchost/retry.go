package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// retryPolicy is the "retry" object of a function.json (docs/facts.md F43) with the strategy fixedDelay. max -1 means
// without end.
type retryPolicy struct {
	max   int
	delay time.Duration
}

// parseRetry checks the shape as Utility.ValidateRetryOptions does; nil means no policy.
func parseRetry(text json.RawMessage) (*retryPolicy, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil //nolint:nilnil // no policy is a value here
	}
	var file struct {
		Strategy      string `json:"strategy"`
		MaxRetryCount *int   `json:"maxRetryCount"`
		DelayInterval string `json:"delayInterval"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if file.MaxRetryCount == nil || *file.MaxRetryCount < -1 {
		return nil, errors.New("maxRetryCount must be there, and -1 or more")
	}
	if !strings.EqualFold(file.Strategy, "fixedDelay") {
		return nil, fmt.Errorf("strategy %q: this emulator has fixedDelay", file.Strategy)
	}
	delay, err := parseTimeSpan(file.DelayInterval)
	if err != nil || delay < 0 {
		return nil, fmt.Errorf("delayInterval %q is not a time span", file.DelayInterval)
	}
	return &retryPolicy{*file.MaxRetryCount, delay}, nil
}

// backoff hands out growing pauses.
type backoff struct {
	minimum, maximum time.Duration
	current          time.Duration
	grown            int
	factor           func() float64 // 0.8 to 1.2
}

func newBackoff(minimum, maximum time.Duration) *backoff {
	return &backoff{minimum: minimum, maximum: maximum, factor: func() float64 { return 0.8 + 0.4*rand.Float64() }}
}

// next returns the coming pause: the minimum, then the minimum plus 2^n times itself (0.8 to 1.2 of that) up to the
// maximum. Source: RandomizedExponentialBackoffStrategy.cs.
func (b *backoff) next() time.Duration {
	if b.current == b.maximum {
		return b.current
	}
	next := float64(b.minimum)
	if b.grown > 0 {
		next += b.factor() * math.Pow(2, float64(b.grown-1)) * float64(b.minimum)
	}
	b.current = min(time.Duration(next), b.maximum)
	b.grown++
	return b.current
}
