package renewal

import (
	"time"

	"github.com/eldest-io/eldest/lease"
)

// Sparing renews every half of the TTL: half as many requests as the default, and time
// for two or three attempts after one that failed.
func Sparing(granted time.Duration) lease.Renewal {
	return lease.Renewal{Every: granted / 2, Timeout: granted / 12}
}

// Anxious renews every tenth of the TTL, with short attempts.
func Anxious(granted time.Duration) lease.Renewal {
	return lease.Renewal{Every: granted / 10, Timeout: granted / 30}
}

// Steady renews at the same interval for every TTL: as often as a short lease needs, even if the
// TTL is long in order to survive outages. If the default interval for the granted TTL is shorter,
// that is used.
func Steady(every time.Duration) func(granted time.Duration) lease.Renewal {
	return func(granted time.Duration) lease.Renewal {
		r := lease.DefaultRenewal(granted)
		r.Every = min(every, r.Every)
		return r
	}
}
