package lease_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/lease"
)

// Wrong: a session that is lost revokes its lease a moment later, on its own goroutine: when
// that has noticed, and after the renewal under way has returned. Revoked is noted only
// then, so a Resume before that (whoever waits for Done and resumes) succeeds, and the
// revocation follows and ends the resumed session, its leader included, with ErrSessionLost.
//
// Proposed: note Revoking where the loss is decided and it is decided that the lease will be
// revoked (loseLocked, cleanup true), before the context ends; Abandon takes it back with
// Refused if nothing was sent.
func TestBrokenResumeJustBeforeTheRevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		renewing, let := make(chan struct{}), make(chan struct{})
		s.grant, s.revoke = []reply{ok(10)}, []reply{ok(0)}
		s.renew = []reply{func(context.Context) (int64, error) {
			close(renewing)
			<-let // the goroutine was stopped here
			return 10, nil
		}, ok(10)}
		session := open(t, s.config(0))
		<-renewing
		session.Forfeit(nil)
		<-session.Done()
		resumed, err := lease.Resume(t.Context(), s.config(0), session.ID())
		close(let)
		defer session.Abandon()
		if err == nil {
			defer resumed.Abandon()
			synctest.Wait()
			require.Empty(t, s.requests("revoke"), "the resumed session's lease is revoked by the one before it")
		}
		require.ErrorIs(t, err, eldest.ErrSessionLost)
	})
}
