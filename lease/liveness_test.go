package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// TestRegression36StuckApplication: the network works and the process runs, but the application
// does not call Alive. The session ends at the deadline of the last renewal before that, with this
// cause, and no other session is opened or resumed until the application calls Alive.
func TestRegression36StuckApplication(t *testing.T) {
	const within, ttl = 300 * time.Millisecond, time.Second
	play(t, func(t *testing.T, s *server) {
		s.grant, s.renew = []reply{ok(1)}, []reply{ok(1)}
		var r record
		pulse := lease.NewLivenessOn(lease.Monotonic(), within)
		cfg := s.config(ttl)
		cfg.Liveness, cfg.Hooks, cfg.Backoff = pulse, r.hooks(), func(int) time.Duration { return 10 * time.Millisecond }
		session := open(t, cfg)

		for range 2 * ttl / (within / 10) {
			pulse.Alive()
			time.Sleep(within / 10)
		}
		beat := time.Now().Add(-within / 10)
		require.NoError(t, session.Err(), "lost although the application is alive")
		alive := len(s.requests("renew"))
		require.GreaterOrEqual(t, alive, 7)

		<-session.Done()
		require.Error(t, pulse.Err(), "INVALID: not stuck")
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.ErrorIs(t, session.Err(), eldest.ErrUnresponsive)
		require.LessOrEqual(t, time.Since(beat), within+ttl)
		require.LessOrEqual(t, len(s.requests("renew")), alive+2, "renewed for an application that is stuck")
		require.NoError(t, session.Close(t.Context()))
		require.Contains(t, r.names(), "at-risk")

		sent := len(s.requests("grant")) + len(s.requests("renew"))
		require.ErrorIs(t, etcdtest.Err(lease.Open(t.Context(), cfg)), eldest.ErrUnresponsive)
		require.ErrorIs(t, etcdtest.Err(lease.Resume(t.Context(), cfg, leaseID)), eldest.ErrUnresponsive)
		require.Equal(t, sent, len(s.requests("grant"))+len(s.requests("renew")))

		pulse.Alive()
		open(t, cfg).Abandon()
	})
}

// An application that calls Alive again before the deadline keeps its lease.
func TestLivenessRecovers(t *testing.T) {
	const within, ttl = 200 * time.Millisecond, 2 * time.Second
	play(t, func(t *testing.T, s *server) {
		s.grant, s.renew = []reply{ok(2)}, []reply{ok(2)}
		var r record
		pulse := lease.NewLivenessOn(lease.Monotonic(), within)
		cfg := s.config(ttl)
		cfg.Liveness, cfg.Hooks, cfg.Backoff = pulse, r.hooks(), func(int) time.Duration { return 5 * time.Millisecond }
		session := open(t, cfg)
		defer session.Abandon()
		time.Sleep(ttl * 3 / 4) // after the first renewal, and before the deadline
		synctest.Wait()
		require.Equal(t, lease.AtRisk, session.Status().State)
		pulse.Alive()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, lease.Alive, session.Status().State)
		require.Equal(t, []string{"at-risk", "renewed", "recovered"}, r.names())
	})
}

func TestLivenessThatNeverLives(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		cfg := s.config(time.Second)
		for _, within := range []time.Duration{0, -time.Second} {
			cfg.Liveness = lease.NewLiveness(within)
			require.ErrorIs(t, cfg.Check(), eldest.ErrInvalid)
		}
		cfg.Liveness = new(lease.Liveness)
		require.ErrorIs(t, cfg.Check(), eldest.ErrInvalid)
		require.ErrorIs(t, etcdtest.Err(lease.Open(t.Context(), cfg)), eldest.ErrInvalid)
		require.ErrorIs(t, etcdtest.Err(lease.Resume(t.Context(), cfg, leaseID)), eldest.ErrInvalid)
	})
}
