package commit

import "time"

// The retry schedule of the requirements: 2, 4, 8, 16, 32 minutes, never more than an hour.
const (
	// MaxRetries is the number of retries that a document may spend.
	MaxRetries = 5
	// initialBackoff and maxBackoff bound the wait before a retry.
	initialBackoff = 120 * time.Second
	maxBackoff     = time.Hour
	// jitterShare is the largest share that jitter adds. It never shortens the wait, which is a promise to the
	// operators.
	jitterShare = 0.2
	// aloneBackoff is the wait of a document that lost every race, or whose evidence, count or mark could not be
	// written. It spends no retry.
	aloneBackoff = 120 * time.Second
)

// Backoff is the wait before retry n (0-based): min(3600, 120*2^n) seconds plus 0-20 % (docs/requirements.md R38). draw
// is in [0,1).
func Backoff(n int, draw float64) time.Duration {
	d := maxBackoff
	if n < 5 { // 120 s * 2^5 exceeds the cap, and larger shifts would overflow
		d = min(maxBackoff, initialBackoff<<max(n, 0))
	}
	return withJitter(d, draw)
}

func withJitter(d time.Duration, draw float64) time.Duration {
	return d + time.Duration(float64(d)*jitterShare*draw)
}

// dueAt is the epoch second at which a wait from now ends, rounded up so that a retry is never early.
func dueAt(now time.Time, wait time.Duration) int64 {
	return now.Add(wait + time.Second - 1).Unix()
}
