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

// retryPolicy is the "retry" object of a function.json (docs/facts.md F43). max -1 means without end.
type retryPolicy struct {
	max         int
	exponential bool
	delay       time.Duration // fixedDelay
	minimum     time.Duration // exponentialBackoff
	maximum     time.Duration
}

// parseRetry checks the shape as Utility.ValidateRetryOptions does; nil means no policy.
func parseRetry(text json.RawMessage) (*retryPolicy, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil //nolint:nilnil // no policy is a value here
	}
	var file struct {
		Strategy        *string `json:"strategy"`
		MaxRetryCount   *int    `json:"maxRetryCount"`
		DelayInterval   *string `json:"delayInterval"`
		MinimumInterval *string `json:"minimumInterval"`
		MaximumInterval *string `json:"maximumInterval"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if file.MaxRetryCount == nil {
		return nil, errors.New("maxRetryCount is missing")
	}
	if *file.MaxRetryCount < -1 {
		return nil, fmt.Errorf("maxRetryCount must be -1 or more, found %d", *file.MaxRetryCount)
	}
	if file.Strategy == nil {
		return nil, errors.New("strategy is missing (fixedDelay or exponentialBackoff)")
	}
	p := &retryPolicy{max: *file.MaxRetryCount}
	var err error
	switch strings.ToLower(*file.Strategy) {
	case "fixeddelay":
		p.delay, err = interval("delayInterval", file.DelayInterval)
	case "exponentialbackoff":
		p.exponential = true
		if p.minimum, err = interval("minimumInterval", file.MinimumInterval); err == nil {
			p.maximum, err = interval("maximumInterval", file.MaximumInterval)
		}
		if err == nil && p.minimum > p.maximum {
			err = errors.New("minimumInterval must not be greater than maximumInterval")
		}
	default:
		err = fmt.Errorf("strategy %q is neither fixedDelay nor exponentialBackoff", *file.Strategy)
	}
	return p, err
}

func interval(name string, text *string) (time.Duration, error) {
	if text == nil {
		return 0, fmt.Errorf("%s is missing", name)
	}
	d, err := parseTimeSpan(*text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s must not be negative, found %q", name, *text)
	}
	return d, nil
}

// backoff hands out the pauses of one invocation's retries.
type backoff struct {
	policy  retryPolicy
	current time.Duration
	grown   int
	factor  func() float64 // 0.8 to 1.2
}

func newBackoff(p retryPolicy) *backoff {
	return &backoff{policy: p, factor: func() float64 { return 0.8 + 0.4*rand.Float64() }}
}

// next returns the pause before the coming attempt: the fixed delay, or the minimum, then the minimum plus 2^n times
// itself (0.8 to 1.2 of that) up to the maximum. Source: RandomizedExponentialBackoffStrategy.cs.
func (b *backoff) next() time.Duration {
	if !b.policy.exponential {
		return b.policy.delay
	}
	if b.current == b.policy.maximum {
		return b.current
	}
	next := float64(b.policy.minimum)
	if b.grown > 0 {
		next += b.factor() * math.Pow(2, float64(b.grown-1)) * float64(b.policy.minimum)
	}
	if next >= float64(b.policy.maximum) {
		b.current = b.policy.maximum
		return b.current
	}
	b.current = time.Duration(next)
	b.grown++
	return b.current
}
