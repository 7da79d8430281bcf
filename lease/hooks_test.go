package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/lease"
)

// TestRegression33HookThatBlocks: a hook that does not return prevents no renewal and no report of
// a loss.
func TestRegression33HookThatBlocks(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		release := make(chan struct{})
		calls := 0
		cfg := s.config(0)
		cfg.Hooks.Renewed = func(lease.RenewedEvent) { calls++; <-release }
		session := open(t, cfg)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.NoError(t, session.Err())
		renewed := len(s.requests("renew"))
		require.Greater(t, renewed, 200)
		require.Equal(t, 1, calls, "a second call before the first returned")

		require.NoError(t, session.Close(etcdtest.ContextFor(t, time.Second)), "a hook that blocks is not waited for longer than ctx")
		close(release)
		synctest.Wait()
		require.Equal(t, renewed, calls, "calls were lost")
	})
}

// TestHookUsesTheSession: a hook may call the session, because no lock is held.
func TestHookUsesTheSession(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{ok(10), fail(errAway), ok(10), ok(0)}
		var session *lease.Session
		var seen []lease.State
		use := func() {
			session.Holds(time.Second)
			session.TTL()
			loop.Of(session).Lock()
			loop.Of(session).Unlock() //nolint:staticcheck // it can be had
			seen = append(seen, session.Status().State)
		}
		cfg := s.config(0)
		cfg.Hooks = lease.Hooks{
			Opened:    func(e lease.OpenedEvent) { session = e.Session },
			Renewed:   func(lease.RenewedEvent) { use() },
			AtRisk:    func(lease.AtRiskEvent) { use() },
			Recovered: func(lease.RenewedEvent) { use() },
			Lost:      func(lease.LostEvent) { use() },
		}
		opened := open(t, cfg)
		<-opened.Done()
		require.NoError(t, opened.Close(t.Context()))
		require.Equal(t, []lease.State{lease.Alive, lease.AtRisk, lease.Alive, lease.Alive, lease.Lost}, seen, "what the hooks saw")
	})
}

// TestDroppedCallsAreCounted: behind a hook that blocks a thousand calls wait; Dropped returns the
// number of further ones, also while the hook blocks.
func TestDroppedCallsAreCounted(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		release := make(chan struct{})
		cfg := s.config(0)
		cfg.Hooks.Opened = func(lease.OpenedEvent) { <-release }
		cfg.Hooks.Renewed = func(lease.RenewedEvent) {}
		session := open(t, cfg)
		time.Sleep(10 * time.Minute)
		require.Zero(t, session.Dropped())
		time.Sleep(50 * time.Minute)
		require.Positive(t, session.Dropped())
		renewed := len(s.requests("renew"))
		require.Equal(t, renewed-session.Dropped(), 1024, "what waits and what was dropped is all there was")
		close(release)
		require.NoError(t, session.Close(t.Context()))
	})
}
