package lease_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/lease"
)

// TestRegression40BadConfig: a typed error that names the operation, before
// anything is sent.
func TestRegression40BadConfig(t *testing.T) {
	renewal := func(every, timeout time.Duration) func(time.Duration) lease.Renewal {
		return func(time.Duration) lease.Renewal { return lease.Renewal{Every: every, Timeout: timeout} }
	}
	for name, tc := range map[string]struct {
		change func(*lease.Config)
		text   string
	}{
		"no lease":               {func(c *lease.Config) { c.Lease = nil }, "Config.Lease is nil"},
		"a nil client":           {func(c *lease.Config) { c.Lease = (*clientv3.Client)(nil) }, "Config.Lease is nil"},
		"negative TTL":           {func(c *lease.Config) { c.TTL = -time.Second }, "the TTL -1s is negative"},
		"a year":                 {func(c *lease.Config) { c.TTL = 365 * 24 * time.Hour }, "the TTL 8760h0m0s is over the longest one allowed, 24h0m0s"},
		"the longest duration":   {func(c *lease.Config) { c.TTL = math.MaxInt64 }, "over the longest one"},
		"negative margin":        {func(c *lease.Config) { c.Margin = -1 }, "the margin -1ns must be at least 0 and less than the TTL 10s"},
		"margin = TTL":           {func(c *lease.Config) { c.Margin = 10 * time.Second }, "the margin 10s must be"},
		"margin > TTL":           {func(c *lease.Config) { c.Margin = time.Minute }, "the margin 1m0s must be"},
		"never renewed":          {func(c *lease.Config) { c.Renewal = renewal(0, time.Second) }, "renewing every 0s with attempts of 1s does not fit a TTL of 10s with a margin of 1s"},
		"renewed too late":       {func(c *lease.Config) { c.Renewal = renewal(9*time.Second, time.Second) }, "renewing every 9s"},
		"renewed without a time": {func(c *lease.Config) { c.Renewal = renewal(time.Second, 0) }, "attempts of 0s"},
		"renewed backwards":      {func(c *lease.Config) { c.Renewal = renewal(-time.Second, time.Second) }, "renewing every -1s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			cfg := s.config(10 * time.Second)
			tc.change(&cfg)

			_, err := lease.Open(t.Context(), cfg)
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.ErrorContains(t, err, "eldest: open session: ")
			require.ErrorContains(t, err, tc.text)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, "open session", op.Op)
			require.Empty(t, s.sent)
		})
	}
}

func TestBadArguments(t *testing.T) {
	s := newServer()
	cfg := s.config(0)
	_, err := lease.Open(nil, cfg) //nolint:staticcheck // the nil context is what is tested
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, "the context is nil")
	_, err = lease.Resume(nil, cfg, leaseID) //nolint:staticcheck // the nil context is what is tested
	require.ErrorIs(t, err, eldest.ErrInvalid)
	for _, id := range []clientv3.LeaseID{clientv3.NoLease, -1, math.MinInt64} {
		_, err = lease.Resume(t.Context(), cfg, id)
		require.ErrorIs(t, err, eldest.ErrInvalid)
		require.ErrorContains(t, err, "eldest: resume session")
		require.ErrorContains(t, err, "is not positive")
	}
	require.Empty(t, s.sent)
}

// TestAskedTTL: what is asked for is what was wanted, rounded up; what counts is
// what was granted.
func TestAskedTTL(t *testing.T) {
	for wanted, asked := range map[time.Duration]int64{
		0: 10, 1: 1, 900 * time.Millisecond: 1, time.Second: 1, 1900 * time.Millisecond: 2, time.Minute: 60, lease.MaxTTL: 86400,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.grant = []reply{ok(asked + 3)}
			session := open(t, s.config(wanted))
			require.Equal(t, asked, s.requests("grant")[0].ttl, wanted)
			require.Equal(t, time.Duration(asked+3)*time.Second, session.TTL())
			session.Abandon()
		})
	}
}

// TestDefaults: a Config with nothing but the lease works, with a clock that is
// not virtual.
func TestDefaults(t *testing.T) {
	s := newServer()
	s.grant, s.renew, s.revoke = []reply{ok(10)}, []reply{ok(10)}, []reply{ok(0)}
	session := open(t, lease.Config{Lease: s})
	require.Equal(t, leaseID, session.ID())
	require.Equal(t, lease.DefaultTTL, session.TTL())
	st := session.Status()
	require.Equal(t, lease.Alive, st.State)
	require.LessOrEqual(t, st.Remaining, 9*time.Second)
	require.GreaterOrEqual(t, st.Remaining+time.Since(s.begun), 9*time.Second)
	require.NoError(t, st.Cause)
	require.NoError(t, session.Close(t.Context()))
}

func TestStateString(t *testing.T) {
	require.Equal(t, []string{"alive", "jeopardy", "lost"},
		[]string{lease.Alive.String(), lease.Jeopardy.String(), lease.Lost.String()})
}

func TestClocksGoOn(t *testing.T) {
	for _, c := range []lease.Clock{lease.Boot(), lease.Monotonic()} {
		before := c.Now()
		for c.Now() == before { // a clock that stands still hangs here
		}
		require.Greater(t, c.Now(), before)
	}
}

// Check says of a config without a client what Open would say of one with it.
func TestCheck(t *testing.T) {
	require.NoError(t, lease.Config{}.Check())
	require.NoError(t, lease.Config{TTL: 3 * time.Second, Margin: time.Second}.Check())
	require.ErrorIs(t, lease.Config{TTL: -1}.Check(), eldest.ErrInvalid)
	require.ErrorIs(t, lease.Config{TTL: time.Second, Margin: time.Second}.Check(), eldest.ErrInvalid)
	slow := func(time.Duration) lease.Renewal { return lease.Renewal{Every: time.Hour, Timeout: time.Second} }
	require.ErrorIs(t, lease.Config{Renewal: slow}.Check(), eldest.ErrInvalid)
}
