package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// givenUp starts a campaign whose registration is under way when its context ends. The request is
// sent when release is closed.
func (s *env) givenUp(g *gate, campaign func(ctx context.Context) (*election.Leadership, error)) (release chan<- struct{}) {
	s.T.Helper()
	sending, release := g.stop()
	ctx, cancel := context.WithCancel(s.Ctx)
	given := electiontest.After(func() (*election.Leadership, error) { return campaign(ctx) })
	get(s, sending)
	cancel()
	electiontest.Fails(s.T, given, context.Canceled)
	return release
}

// begun waits until a candidate has begun a campaign.
func (s *env) begun(c *election.Candidate) {
	s.T.Helper()
	s.Until("it campaigns", func() bool { return errors.Is(etcdtest.Err(c.Await(s.Ctx)), eldest.ErrCampaigning) })
}

// A campaign that begins while the request of an earlier Try is under way waits for its turn.
//
// Fails if the refusal of the Try ends it.
func TestCampaignAfterATryThatWasGivenUp(t *testing.T) {
	s := newEnv(t)
	elder := s.lead(s.candidate("elder"))
	c, g := s.gated("v")
	release := s.givenUp(g, c.Try)
	waiting := s.campaigning(s.Ctx, c)
	s.begun(c)
	close(release)
	s.queued(2)
	require.NoError(t, elder.Resign(s.Ctx))
	electiontest.Wins(t, waiting)
}

// The other way round: the answer to the registration of an earlier campaign has a hint only, which
// is no reason for a Try not to lead.
func TestTryAfterACampaignThatWasGivenUp(t *testing.T) {
	s := newEnv(t)
	other := s.candidate("other")
	for range 20 { // so often that registrations do not read the queue any more
		require.NoError(t, s.lead(other).Resign(s.Ctx))
	}
	c, g := s.gated("v")
	release := s.givenUp(g, c.Campaign)
	tried := electiontest.After(func() (*election.Leadership, error) { return c.Try(s.Ctx) })
	s.begun(c)
	close(release)
	electiontest.Wins(t, tried)
}

// Another candidate of the session campaigns while the registration of the first one is under way:
// it leads with its own value.
//
// Fails if it takes the key as its own, which has the value of the first one.
func TestRegistrationOfAnotherCandidateThatGaveUp(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client)
	first, g := s.gated("first", on(session))
	second := s.candidate("second", on(session), func(cfg *election.Config) { cfg.KV = g })
	release := s.givenUp(g, first.Campaign)
	waiting := s.campaigning(s.Ctx, second)
	s.begun(second)
	close(release)
	l := electiontest.Wins(t, waiting)
	require.Equal(t, "second", s.value(second.Key()))
	require.NoError(t, l.Resign(s.Ctx))
	require.Empty(t, s.Queue())
}

// The registration of another candidate of the session is refused after that one gave up. The refusal is
// not the answer to the present campaign, and no hook is told that this registration is repeated.
//
// Fails if it ends the campaign.
func TestRefusedRegistrationOfAnotherCandidateThatGaveUp(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client)
	g := newGate(s.Client)
	var retried atomic.Int32
	through := func(cfg *election.Config) {
		cfg.KV = g
		cfg.Hooks.Retrying = func(election.RetryingEvent) { retried.Add(1) }
	}
	first, second := s.candidate("first", on(session), through), s.candidate("second", on(session), through)
	sending, release := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return rpctypes.ErrRequestTooLarge }, nil)
	ctx, cancel := context.WithCancel(s.Ctx)
	given := s.campaigning(ctx, first)
	get(s, sending)
	cancel()
	electiontest.Fails(t, given, context.Canceled)
	waiting := s.campaigning(s.Ctx, second)
	s.begun(second)
	close(release)
	require.NoError(t, electiontest.Wins(t, waiting).Resign(s.Ctx))
	require.NoError(t, first.Close(s.Ctx))
	require.Zero(t, retried.Load())
}

// The client is closed while a registration is under way, which may still arrive: while the session
// lives, with a client of its own, the next candidate watches for it.
//
// Fails if the end of the client counts as the proof that no key is created.
func TestClientClosedDuringARegistration(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	cli := etcdtest.Shared(t).Client(t)
	g := newGate(cli)
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV, cfg.Watcher = closing{g, cli}, cli })
	g.on(func(context.Context) error { _ = cli.Close(); return context.Canceled }, nil)
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrClosed)
	next := s.candidate("next", on(session))
	require.NoError(t, s.lead(next).Resign(s.Ctx))
	s.arrives(session)
	s.clean(session)
}

// closing is a gate that belongs to a client, which may be closed.
type closing struct {
	*gate
	client *clientv3.Client
}

func (c closing) Ctx() context.Context { return c.client.Ctx() }
