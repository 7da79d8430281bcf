package renewal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/electortest"
	"github.com/eldest-io/eldest/examples/customise/renewal"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestRhythms(t *testing.T) {
	const ttl = 60 * time.Second
	for name, tc := range map[string]struct {
		renewal func(time.Duration) lease.Renewal
		every   time.Duration
	}{
		"default":                          {lease.DefaultRenewal, 15 * time.Second},
		"sparing":                          {renewal.Sparing, 30 * time.Second},
		"anxious":                          {renewal.Anxious, 6 * time.Second},
		"steady":                           {renewal.Steady(time.Second), time.Second},
		"slower than the default would be": {renewal.Steady(time.Hour), 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.every, tc.renewal(ttl).Every)
			for _, granted := range []time.Duration{time.Second, 2 * time.Second, ttl, lease.MaxTTL} {
				require.NoError(t, lease.Options{TTL: granted, Renewal: tc.renewal}.Check())
			}
		})
	}
}

// A session with Sparing outlives its TTL; between two renewals there is never less than the interval,
// except for a tenth of jitter.
func TestSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewed []time.Time
		session, err := lease.Open(t.Context(), lease.Config{
			Lease: electortest.New(t).Client(),
			Options: lease.Options{
				TTL: time.Minute, Renewal: renewal.Sparing, Clock: lease.Monotonic(),
				Hooks: lease.Hooks{Renewed: func(lease.RenewedEvent) { renewed = append(renewed, time.Now()) }},
			},
		})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, session.Err())
		require.NoError(t, session.Close(t.Context()))
		require.GreaterOrEqual(t, len(renewed), 119)
		for i := range renewed[1:] {
			require.GreaterOrEqual(t, renewed[i+1].Sub(renewed[i]), 27*time.Second)
		}
	})
}
