package renewal_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/renewal"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

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

// Between two successful renewals there is never less than the interval, except for a tenth of
// jitter; and a session with Sparing outlives its TTL.
func TestSparing(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	rec := &etcdtest.Recorder{}
	client := etcdtest.Shared(t).Client(t, rec.Attach)
	var renewed, overdue atomic.Int64
	session, err := lease.Open(ctx, lease.Config{
		Lease: client,
		Options: lease.Options{
			TTL: 4 * time.Second, Renewal: renewal.Sparing,
			Hooks: lease.Hooks{
				Renewed: func(lease.RenewedEvent) { renewed.Add(1) },
				AtRisk:  func(lease.AtRiskEvent) { overdue.Add(1) },
			},
		},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return renewed.Load() >= 3 || session.Err() != nil }, time.Minute, time.Millisecond)
	if n, sent := renewed.Load(), rec.Calls("LeaseKeepAlive"); overdue.Load() > 0 || session.Err() != nil {
		t.Log("this machine is too busy to count: after a renewal that failed the next one comes sooner")
	} else {
		attempts := int64(1)
		for i := 1; i < len(sent); i++ {
			// A request without a quick reply is repeated in the same attempt, which may take half
			// of the time that is left.
			if pause := sent[i].At.Sub(sent[i-1].At); pause > time.Second {
				require.GreaterOrEqual(t, pause, 1700*time.Millisecond)
				attempts++
			}
		}
		require.GreaterOrEqual(t, attempts, n)
	}
	require.NoError(t, session.Close(ctx))
}
