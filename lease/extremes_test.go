package lease_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// TestHeartbeatOfAResumedSession: Resume refuses the heartbeats that Open refuses. With a negative
// margin a leader would lead for longer than a successor waits.
//
// Fails if only Open checks the heartbeats.
func TestHeartbeatOfAResumedSession(t *testing.T) {
	for name, h := range map[string]lease.Heartbeat{
		"negative margin":          {Timeout: time.Second, Margin: -time.Minute},
		"too short":                {Timeout: lease.MinHeartbeat - 1},
		"longer than the lease":    {Timeout: 10 * time.Second},
		"interval without timeout": {Interval: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				cfg := s.config(0)
				cfg.Heartbeat = h
				require.ErrorIs(t, etcdtest.Err(lease.Open(t.Context(), cfg)), eldest.ErrInvalid)
				session, err := lease.Resume(t.Context(), cfg, leaseID)
				if err == nil {
					session.Abandon()
				}
				require.ErrorIs(t, err, eldest.ErrInvalid)
			})
		})
	}
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{ok(5)}
		cfg := s.config(0)
		cfg.Heartbeat.Timeout = time.Second
		session, err := lease.Resume(t.Context(), cfg, leaseID)
		require.NoError(t, err)
		session.Abandon()
	})
}

// TestHeartbeatThatNeverBeats: an interval that does not fit is refused, however long it is.
//
// Fails if twice the interval is calculated: that is negative.
func TestHeartbeatThatNeverBeats(t *testing.T) {
	for _, every := range []time.Duration{math.MaxInt64, math.MaxInt64/2 + 1, 1, -1} {
		err := lease.Options{Heartbeat: lease.Heartbeat{Timeout: time.Second, Interval: every}}.Check()
		if every == 1 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, eldest.ErrInvalid, "%v", every)
	}
}

// TestEndlessTimeout: an attempt without a limit of its own is one that may take as long as the
// lease.
//
// Fails if the end of an attempt is calculated with such a time-out: the sum overflows, and no timer
// ends the session at its deadline.
func TestEndlessTimeout(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{late(100*time.Millisecond, ok(10))}
		cfg := s.config(0)
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 4, Timeout: math.MaxInt64}
		}
		session := open(t, cfg)
		time.Sleep(time.Minute)
		require.NoError(t, session.Err())
		session.Abandon()

		s = newServer()
		s.renew = []reply{hole}
		cfg.Lease = way(s)
		session = open(t, cfg)
		<-session.Done() // the timer, not a caller, reads the clock
		require.Equal(t, 9*time.Second, time.Since(s.begun))
		session.Abandon()
	})
}

// TestEndlessPause: a back-off that gives the longest duration means no other attempt.
//
// Fails if the time of the next attempt is calculated from it: the sum overflows, and no timer ends
// the session at its deadline.
func TestEndlessPause(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{fail(errAway)}
		cfg := s.config(0)
		cfg.Backoff = func(int) time.Duration { return math.MaxInt64 }
		session := open(t, cfg)
		<-session.Done()
		synctest.Wait()
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.ErrorIs(t, session.Err(), errAway)
		require.Equal(t, 9*time.Second, time.Since(s.begun))
		require.Len(t, s.requests("renew"), 1)
		session.Abandon()
	})
}

// TestClientWithoutALease: a client that was made from parts may have no Lease.
func TestClientWithoutALease(t *testing.T) {
	cfg := lease.Config{Lease: clientv3.NewCtxClient(t.Context()), Majority: lease.Unconfirmed{}}
	require.ErrorIs(t, etcdtest.Err(lease.Open(t.Context(), cfg)), eldest.ErrInvalid)
	require.ErrorIs(t, etcdtest.Err(lease.Resume(t.Context(), cfg, leaseID)), eldest.ErrInvalid)
}
