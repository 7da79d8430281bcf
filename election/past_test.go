package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Regression 24: Close ends a campaign that first resigns a retired tenure.
//
// Broken by resigning it before the campaign is the present call.
func TestCloseEndsACampaignThatResignsARetiredTenure(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v", soon)
	l := s.lead(c)
	l.Retire(nil)
	held := make(chan func(), 1)
	g.hold(held)
	campaign := s.campaigning(s.Ctx, c)
	get(s, held) // the removal is on its way, and is not answered
	closing, cancel := context.WithTimeout(s.Ctx, 2*time.Second)
	defer cancel()
	_ = c.Close(closing)
	select {
	case got := <-campaign:
		require.ErrorIs(t, got.err, eldest.ErrClosed)
	case <-time.After(3 * time.Second):
		t.Fatal("the campaign of a closed candidate goes on")
	}
}

// Regression 24: the same of Withdraw.
func TestWithdrawEndsACampaignThatResignsARetiredTenure(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c, g := s.gated("v")
	l := s.lead(c)
	l.Retire(nil)
	met, let := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(met); <-let; return nil }, nil)
	campaign := s.campaigning(s.Ctx, c)
	get(s, met)
	withdrawn := etcdtest.Go(func() error { return c.Withdraw(s.Ctx) })
	select { // it either ends the campaign or says that there is none
	case err := <-withdrawn:
		t.Log("withdraw:", err)
	case <-time.After(time.Second):
	}
	close(let)
	got := get(s, campaign)
	require.ErrorIs(t, got.err, eldest.ErrWithdrawn, "it goes on")
}

// Regression 45: a registration of unknown outcome is on its way, its session is abandoned
// and resumed, and the resumed session's candidate leaves. When it arrives it is removed.
//
// Broken by remembering for the session what may yet arrive.
func TestLateRegistrationAfterResume(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session))
	ctx, cancel := context.WithCancel(s.Ctx)
	g.on(func(context.Context) error { cancel(); return context.DeadlineExceeded }, nil)
	require.ErrorIs(t, etcdtest.Err(c.Campaign(ctx)), context.Canceled)
	session.Abandon()

	resumed := s.resume(session)
	again := s.candidate("v", on(resumed), func(cfg *election.Config) { cfg.KV = g })
	require.NoError(t, s.lead(again).Resign(s.Ctx))
	require.NoError(t, again.Close(s.Ctx))
	s.arrives(session)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && len(s.Queue()) > 0; {
		time.Sleep(10 * time.Millisecond)
	}
	require.Empty(t, s.Queue(), "a ghost, under a session that lives")
}

// G2 and G4: a retired tenure does not come back with its token, although its key is there
// when the session is abandoned and resumed.
//
// Broken by a Retire that dooms nothing.
func TestRetiredTokenDoesNotComeBack(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	l := s.lead(s.candidate("v", on(session)))
	l.Retire(nil)
	session.Abandon()
	require.Greater(t, s.lead(s.candidate("v", on(s.resume(session)))).Token(), l.Token(), "a retired token comes back")
}
