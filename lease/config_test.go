package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/lease"
)

// TestAskedTTL: the requested TTL is the configured one, rounded up; the granted one counts.
func TestAskedTTL(t *testing.T) {
	for wanted, asked := range map[time.Duration]int64{
		0: 10, 1: 1, 900 * time.Millisecond: 1, time.Second: 1, 1900 * time.Millisecond: 2, time.Minute: 60, lease.MaxTTL: 86400,
	} {
		play(t, func(t *testing.T, s *server) {
			s.grant = []reply{ok(asked + 3)}
			session := open(t, s.config(wanted))
			require.Equal(t, asked, s.requests("grant")[0].ttl, wanted)
			require.Equal(t, time.Duration(asked+3)*time.Second, session.TTL())
			session.Abandon()
		})
	}
}

// TestDefaults: a Config with only the lease works, with a clock that is not virtual.
func TestDefaults(t *testing.T) {
	s := newServer()
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
	require.Equal(t, []string{"alive", "at-risk", "lost"},
		[]string{lease.Alive.String(), lease.AtRisk.String(), lease.Lost.String()})
}

func TestClocksGoOn(t *testing.T) {
	for _, c := range []lease.Clock{lease.Boot(), lease.Monotonic()} {
		before := c.Now()
		for c.Now() == before { // hangs if the clock does not advance
		}
		require.Greater(t, c.Now(), before)
	}
}

// Check returns for a config without a client what Open would return for it with one.
func TestCheck(t *testing.T) {
	require.NoError(t, lease.Config{}.Check())
	require.NoError(t, lease.Options{TTL: 3 * time.Second, Margin: time.Second}.Check())
	require.ErrorIs(t, lease.Options{TTL: -1}.Check(), eldest.ErrInvalid)
	require.ErrorIs(t, lease.Options{TTL: time.Second, Margin: time.Second}.Check(), eldest.ErrInvalid)
	slow := func(time.Duration) lease.Renewal { return lease.Renewal{Every: time.Hour, Timeout: time.Second} }
	require.ErrorIs(t, lease.Options{Renewal: slow}.Check(), eldest.ErrInvalid)
}
