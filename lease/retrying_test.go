package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/lease"
)

// TestRegression60FailedAttemptsAreReported: each with its number, its error and the pause after
// it, before the session exists and after it has ended.
func TestRegression60FailedAttemptsAreReported(t *testing.T) {
	eachRetry := []lease.RetryingEvent{{Attempt: 1, Err: errAway}, {Attempt: 2, Err: errAway}, {Attempt: 3, Err: errAway}}
	play(t, func(t *testing.T, s *server) {
		failing := []reply{fail(errAway), fail(errAway), fail(errAway), ok(10)}
		s.grant, s.renew, s.revoke = failing, failing, failing
		begun := time.Now()
		var told []string
		var failed []lease.RetryingEvent
		cfg := s.config(0)
		cfg.Hooks = lease.Hooks{
			Retrying: func(e lease.RetryingEvent) { told = append(told, e.Op); failed = append(failed, e) },
			Opened:   func(lease.OpenedEvent) { told = append(told, "opened") },
			Lost:     func(lease.LostEvent) { told = append(told, "lost") },
		}
		session := open(t, cfg)
		require.NoError(t, session.Close(t.Context()))
		resumed, err := lease.Resume(t.Context(), cfg, leaseID)
		require.NoError(t, err)
		defer resumed.Abandon()
		synctest.Wait()
		require.Equal(t, []string{
			"open session", "open session", "open session", "opened", "lost", "revoke", "revoke", "revoke",
			"resume session", "resume session", "resume session", "opened",
		}, told)
		for i, e := range failed {
			want := eachRetry[i%3]
			want.Op, want.Pause, want.At = e.Op, 100*time.Millisecond, begun.Add(time.Duration(i)*100*time.Millisecond)
			require.Equal(t, want, e)
		}
	})
}

// TestRegression60HookThatBlocksAttempts: opening continues while the hook blocks.
func TestRegression60HookThatBlocksAttempts(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.grant = []reply{fail(errAway), fail(errAway), ok(10)}
		release, told := make(chan struct{}), make(chan lease.RetryingEvent, 2)
		cfg := s.config(0)
		cfg.Hooks.Retrying = func(e lease.RetryingEvent) {
			select {
			case <-release:
			case <-time.After(time.Hour):
			}
			told <- e
		}
		begun := time.Now()
		session := open(t, cfg)
		require.Equal(t, 200*time.Millisecond, time.Since(begun), "the hook was waited for")
		close(release)
		require.NoError(t, session.Close(t.Context()))
		require.Len(t, told, 2)
	})
}
