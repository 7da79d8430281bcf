package lease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/lease"
)

// TestRegression12DeadlineCountsFromSending: however long the reply to the grant or to the last
// renewal was on its way, and whatever the margin, the session ends exactly at sending + TTL -
// margin.
func TestRegression12DeadlineCountsFromSending(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		ttl           int64
		margin        time.Duration // as configured
		subtracted    time.Duration
		grant, renews time.Duration // how long the replies are on their way; -1: no renewal can be in time
	}{
		{10, 0, 1000 * ms, 0, 0},
		{10, 0, 1000 * ms, 200 * ms, 200 * ms},
		{10, 0, 1000 * ms, 1000 * ms, 1000 * ms},
		{10, 0, 1000 * ms, 1999 * ms, 3000 * ms},
		{2, 0, 200 * ms, 1000 * ms, 250 * ms},
		{2, 0, 200 * ms, 200 * ms, 600 * ms},
		{2, 0, 200 * ms, 1799 * ms, -1},
		{1, 0, 200 * ms, 200 * ms, 200 * ms},
		{10, 1, 1, 200 * ms, 0},
		{10, 6 * time.Second, 6 * time.Second, 1000 * ms, 500 * ms},
		{600, 0, 60 * time.Second, 1000 * ms, 3000 * ms},
	} {
		for _, renewals := range []int{0, 1, 3} {
			if renewals > 0 && tc.renews < 0 {
				continue
			}
			t.Run(fmt.Sprintf("TTL %d s, margin %v, delays %v and %v, renewed %d times", tc.ttl, tc.margin, tc.grant, tc.renews, renewals), func(t *testing.T) {
				play(t, func(t *testing.T, s *server) {
					s.grant = []reply{late(tc.grant, ok(tc.ttl))}
					s.renew = append(slices.Repeat([]reply{late(tc.renews, ok(tc.ttl))}, renewals), hole)
					cfg := s.config(time.Duration(tc.ttl) * time.Second)
					cfg.Margin = tc.margin
					cfg.Renewal = func(granted time.Duration) lease.Renewal {
						return lease.Renewal{Every: granted / 4, Timeout: 3*time.Second + ms}
					}
					session := open(t, cfg)

					var sent time.Duration
					if renewals > 0 {
						for len(s.requests("renew")) < renewals+1 && session.Err() == nil {
							time.Sleep(time.Duration(tc.ttl) * ms)
						}
						require.NoError(t, session.Err())
						sent = s.requests("renew")[renewals-1].at
					}
					deadline := sent + time.Duration(tc.ttl)*time.Second - tc.subtracted
					time.Sleep(deadline - time.Since(s.begun) - 1)
					synctest.Wait()
					require.NoError(t, session.Err(), "lost too early")
					require.True(t, session.Holds(0))
					time.Sleep(time.Nanosecond)
					synctest.Wait()
					require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
					require.NoError(t, session.Close(t.Context()))
				})
			})
		}
	}
}

// TestRegression10StaleReply: the process was stopped while the reply to a renewal waited to be
// read. Whichever call is first, the session is lost, and the reply changes nothing.
func TestRegression10StaleReply(t *testing.T) {
	for name, look := range map[string]bool{"Holds is asked first": true, "the reply is read first": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				clock := etcdtest.NewClock()
				waiting, arrived := make(chan struct{}), make(chan struct{})
				s.renew = []reply{func(context.Context) (int64, error) {
					close(waiting)
					<-arrived
					return 10, nil
				}}
				var r record
				cfg := s.config(10 * time.Second)
				cfg.Clock, cfg.Hooks = clock, r.hooks()
				session := open(t, cfg)
				<-waiting
				require.True(t, session.Holds(time.Second))
				// Stopped until half a second after the deadline: the reply, sent
				// at 2.5 s, would be good until 11.5 s.
				clock.Jump(9*time.Second + 500*time.Millisecond - clock.Now())
				if look {
					require.False(t, session.Holds(0))
					require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
				}
				close(arrived)
				synctest.Wait()
				require.False(t, session.Holds(0), "revived by a stale reply")
				require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
				require.NoError(t, session.Close(t.Context()))
				require.Equal(t, []string{"lost"}, r.names())
				require.Len(t, s.requests("renew"), 1)
			})
		})
	}
}

// TestSuspendWithoutUse: without any call the session detects the loss by itself, at the next
// renewal at the latest, and the reply to that renewal does not revive it.
func TestSuspendWithoutUse(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		clock := etcdtest.NewClock()
		cfg := s.config(10 * time.Second)
		cfg.Clock = clock
		session := open(t, cfg)
		time.Sleep(time.Second)
		clock.Jump(time.Hour)
		begun := time.Now()
		<-session.Done()
		require.LessOrEqual(t, time.Since(begun), 2500*time.Millisecond)
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.NoError(t, session.Close(t.Context()))
	})
}

// TestShortSuspend: a suspend that ends before the deadline has no effect but the passed time.
func TestShortSuspend(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		clock := etcdtest.NewClock()
		cfg := s.config(10 * time.Second)
		cfg.Clock = clock
		session := open(t, cfg)
		for range 20 {
			time.Sleep(3 * time.Second)
			clock.Jump(4 * time.Second)
			require.True(t, session.Holds(time.Second))
		}
		session.Abandon()
	})
}

// TestClockSlowerThanTimers: a deadline timer that fires early, by the session's clock, ends
// nothing and is set again.
func TestClockSlowerThanTimers(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		clock := etcdtest.NewClock()
		s.renew = []reply{hole}
		cfg := s.config(10 * time.Second)
		cfg.Clock = clock
		session := open(t, cfg)
		clock.Jump(-2 * time.Second)
		time.Sleep(10 * time.Second)
		require.NoError(t, session.Err())
		<-session.Done()
		require.Equal(t, 11*time.Second, time.Since(s.begun))
		require.NoError(t, session.Close(t.Context()))
	})
}

// TestLookSetsTheTimerRight: the timer was set before the machine was suspended for less than the
// TTL. One call on the session after that is enough: its context ends at the deadline, and not
// later by the length of the suspend.
func TestLookSetsTheTimerRight(t *testing.T) {
	for name, look := range map[string]func(*lease.Session){
		"status": func(s *lease.Session) { _ = s.Status() },
		"err":    func(s *lease.Session) { _ = s.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				s.renew = []reply{hole}
				cfg := s.config(0)
				clock := etcdtest.NewClock()
				cfg.Clock = clock
				session := open(t, cfg)
				clock.Jump(8 * time.Second)
				look(session)
				woke := time.Now()
				<-session.Done()
				require.Less(t, time.Since(woke), 1100*time.Millisecond, "of 9 s there was 1 s left")
			})
		})
	}
}

// TestRegression11BlackHole: if nothing is answered any more the session is lost at the deadline.
// The revocation, which is tried for the successor, ends when the lease has expired by itself.
func TestRegression11BlackHole(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew, s.revoke = []reply{hole}, []reply{hole}
		session := open(t, s.config(10*time.Second))
		<-session.Done()
		require.Equal(t, 9*time.Second, time.Since(s.begun))
		err := session.Close(t.Context())
		require.ErrorContains(t, err, "no answer within the TTL of 10s")
		require.LessOrEqual(t, time.Since(s.begun), 19*time.Second+200*time.Millisecond)
		for _, r := range s.requests("revoke") {
			require.GreaterOrEqual(t, r.at, 9*time.Second, "revoked before the session had ended")
		}
	})
}

// TestRegression14Suspend: the session's clock continues while the machine is suspended, timers do
// not. At the first use the session is lost.
func TestRegression14Suspend(t *testing.T) {
	for name, use := range map[string]func(*lease.Session) bool{
		"Holds":  func(s *lease.Session) bool { return !s.Holds(0) },
		"Status": func(s *lease.Session) bool { return s.Status().State == lease.Lost },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				clock := etcdtest.NewClock()
				cfg := s.config(10 * time.Second)
				cfg.Clock = clock
				session := open(t, cfg)
				time.Sleep(12 * time.Second)
				require.NoError(t, session.Err())
				clock.Jump(time.Hour)
				require.True(t, use(session))
				require.Error(t, session.Context().Err(), "the context lives on")
				require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
				require.NoError(t, session.Close(t.Context()))
			})
		})
	}
}

// One member answers that the lease does not exist. It may be an earlier leader of etcd that does not
// know the lease yet: what the process has sent about the keys is remembered, for a session that resumes
// the lease.
//
// Fails if that answer counts as the proof that the lease does not exist.
func TestOneMemberDoesNotKnowTheLease(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{ok(0), ok(10)}
		session := open(t, s.config(0))
		past.Of(int64(session.ID())).Doom(7)
		<-session.Done()
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		session.Abandon()
		resumed, err := lease.Resume(t.Context(), s.config(0), session.ID())
		require.NoError(t, err)
		defer resumed.Abandon()
		require.True(t, past.Of(int64(session.ID())).Doomed(7))
		past.Forget(int64(session.ID()))
	})
}
