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

// gated makes a candidate whose transactions pass a gate.
func (s *stage) gated(value string, change ...func(*election.Config)) (*election.Candidate, *gate) {
	s.T.Helper()
	g := newGate(s.Client)
	change = append(change, func(cfg *election.Config) { cfg.KV = g })
	return s.candidate(value, change...), g
}

// Close, Withdraw or the end of the context while the winning reply is on its way:
// whoever was told "closed" or "withdrawn" must not lead, and nobody blocks.
func TestEndWhileTheReplyOfTheRegistrationIsOnItsWay(t *testing.T) {
	type call = func(*election.Candidate, context.Context) (*election.Leadership, error)
	calls := map[string]call{
		"campaign": (*election.Candidate).Campaign,
		"try":      (*election.Candidate).Try,
		"register": func(c *election.Candidate, ctx context.Context) (*election.Leadership, error) {
			_, err := c.Register(ctx)
			return nil, err
		},
	}
	for name, call := range calls {
		for how, want := range map[string]error{"close": eldest.ErrClosed, "withdraw": eldest.ErrWithdrawn} {
			t.Run(name+" "+how, func(t *testing.T) {
				s := newStage(t)
				c, g := s.gated("v")
				ended, told := make(chan error, 1), make(chan struct{})
				g.on(nil, func(_ context.Context, err error) error {
					go func() {
						if how == "close" {
							ended <- c.Close(s.Ctx)
						} else {
							ended <- c.Withdraw(s.Ctx)
						}
					}()
					// The caller has been told to stop; the reply is read all
					// the same.
					<-told
					return err
				})
				l, err := call(c, s.Ctx)
				close(told)
				require.ErrorIs(t, err, want)
				require.Nil(t, l)
				require.NoError(t, get(s, ended))
				require.Empty(t, s.Queue())
			})
		}
	}
}

// An election loop campaigns again the moment its tenure ends: the end must not be
// visible before the candidate is free.
func TestCampaignAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.candidate("v")
	for i := range 100 {
		l := s.lead(c)
		if i%2 == 0 {
			s.Remove(c.Key())
		} else {
			go func() { _ = l.Resign(s.Ctx) }()
		}
		get(s, l.Done())
		again, err := c.Campaign(s.Ctx)
		require.NoError(t, err, "round %d", i)
		require.Greater(t, again.Token(), l.Token())
		require.NoError(t, again.Resign(s.Ctx))
	}
}

// A campaign while the key of the last tenure is still being removed waits for that
// and stands anew: it does not inherit the old token, and is not turned away.
func TestCampaignWhileTheLastKeyIsBeingRemoved(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v")
	l := s.lead(c)
	sending, release := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return nil }, nil)
	resigned := etcdtest.Go(func() error { return l.Resign(s.Ctx) })
	get(s, sending)
	next := s.campaigning(s.Ctx, c)
	close(release)
	require.NoError(t, get(s, resigned))
	won := get(s, next)
	require.NoError(t, won.err)
	require.Greater(t, won.l.Token(), l.Token())
}

// Close during a Resign that goes on elsewhere waits for it.
func TestCloseWaitsForAResignation(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v")
	l := s.lead(c)
	sending, release := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sending); <-release; return nil }, nil)
	resigned := etcdtest.Go(func() error { return l.Resign(s.Ctx) })
	get(s, sending)

	early, cancel := context.WithTimeout(s.Ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Close(early), context.DeadlineExceeded)
	require.Len(t, s.Queue(), 1)
	close(release)
	require.NoError(t, c.Close(s.Ctx))
	require.Empty(t, s.Queue())
	require.NoError(t, get(s, resigned))
}

// The own key is deleted by hand between the registration and the answer to the
// question who is older: no win may come of it.
func TestKeyDeletedByHandBeforeTheProof(t *testing.T) {
	s := newStage(t)
	elder := s.lead(s.candidate("elder"))
	middle := s.candidate("middle")
	require.NoError(t, etcdtest.Err(middle.Register(s.Ctx)))
	c, g := s.gated("v", func(cfg *election.Config) {
		cfg.Watcher = etcdtest.Deaf(cfg.Watcher)
		cfg.Recheck = 20 * time.Millisecond
	})
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	// The question after middle's end is a transaction; before it is sent, the
	// own key goes and so do all elders.
	g.on(func(context.Context) error {
		s.Remove(c.Key())
		return elder.Resign(s.Ctx)
	}, nil)
	require.NoError(t, middle.Withdraw(s.Ctx))
	l, err := c.Await(s.Ctx)
	if err == nil {
		// The proof was pinned before the deletion: a tenure then, but one that
		// ends as soon as the news comes.
		require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
		return
	}
	require.ErrorIs(t, err, eldest.ErrDeposed)
}

// A session lost while the winning reply is on its way: no win.
func TestSessionLostWhileTheReplyIsOnItsWay(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Client)
	c, g := s.gated("v", on(session))
	g.on(nil, func(_ context.Context, err error) error {
		go session.Abandon() // which waits for this request
		get(s, session.Done())
		return err
	})
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrClosed, "a win after the end of the session")
	_, err := c.Campaign(s.Ctx)
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.NotErrorIs(t, err, eldest.ErrLeading)
	require.NoError(t, c.Close(s.Ctx))
	require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
}
