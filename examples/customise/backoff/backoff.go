package backoff

import (
	"math/rand/v2"
	"time"
)

// Full returns pauses drawn evenly from zero to a step that doubles from first up to limit. They
// spread nodes that failed together more widely than the default does; a pause can be almost zero.
// Both must be positive.
func Full(first, limit time.Duration) func(attempt int) time.Duration {
	return func(attempt int) time.Duration { return rand.N(step(first, limit, attempt) + 1) }
}

// step doubles first attempt times, up to limit.
func step(first, limit time.Duration, attempt int) time.Duration {
	for range attempt {
		if first >= limit/2 {
			return limit
		}
		first *= 2
	}
	return min(first, limit)
}

// Within returns pauses for a session: those of another back-off, but never more than a
// tenth of the TTL, so that several attempts are left before the deadline.
func Within(ttl time.Duration, pauses func(attempt int) time.Duration) func(attempt int) time.Duration {
	return func(attempt int) time.Duration { return min(pauses(attempt), ttl/10) }
}
