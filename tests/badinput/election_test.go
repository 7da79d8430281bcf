package badinput

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// electionSection: configs, then calls at the wrong time.
func electionSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	session, elsewhere := st.session(), st.session()
	leading, waiting := st.candidate(session), st.candidate(elsewhere)
	l := st.leader(leading)
	watches := st.watches()
	require.NoError(t, etcdtest.Err(waiting.Register(st.Ctx)))
	campaign, withdraw := context.WithCancel(st.Ctx)
	result := etcdtest.Go(func() error { return second(waiting.Await(campaign)) })
	t.Cleanup(func() { // at the end of the test it still waits, after all rows
		withdraw()
		require.ErrorIs(t, <-result, context.Canceled)
	})
	st.watching(watches + 2) // of its own key, and of its predecessor's

	s := st.section("election", "`l` is a Leadership, `waiting` a candidate behind it, `idle` one that never campaigned.")
	s.left = "the tenure continues, the waiting candidate waits, both sessions are alive"
	s.lives = func(t *testing.T) {
		require.NoError(t, l.Err())
		require.NoError(t, session.Err())
		require.NoError(t, elsewhere.Err())
		require.Empty(t, result)
	}
	for _, bad := range badNames {
		s.rows = append(s.rows, st.refuses("`New`: "+bad.what, func(cfg *election.Config) { cfg.Election = bad.name }))
	}
	s.rows = append(s.rows,
		st.refuses("`New`: no session", func(cfg *election.Config) { cfg.Session = nil }),
		st.refuses("`New`: no KV", func(cfg *election.Config) { cfg.KV = nil }),
		st.refuses("`New`: a nil `*clientv3.Client` as KV", func(cfg *election.Config) { cfg.KV = none }),
		st.refuses("`New`: no watcher", func(cfg *election.Config) { cfg.Watcher = nil }),
		st.refuses("`New`: a nil `*clientv3.Client` as watcher", func(cfg *election.Config) { cfg.Watcher = none }),
		st.refuses("`New`: a value of 1 MiB and 1 byte", func(cfg *election.Config) { cfg.Value = make([]byte, election.MaxValue+1) }),
		st.refuses("`New`: a negative time-out", func(cfg *election.Config) { cfg.Timeout = -time.Second }),
		st.refuses("`New`: a negative drain time", func(cfg *election.Config) { cfg.Drain = -time.Second }),
		st.refuses("`New`: a `Mutex` that `NewMutex` has not made", func(cfg *election.Config) { cfg.Mutex = &election.Mutex{} }),
	)
	return st.calls(s, elsewhere, l, leading, waiting)
}

// refuses returns a row for a config that New must refuse.
func (s *stage) refuses(tried string, change func(*election.Config)) row {
	cfg := s.config(s.session())
	change(&cfg)
	return row{tried: tried, op: "new candidate", election: cfg.Election, want: errInvalid, try: func() error {
		c, err := election.New(cfg)
		if c != nil {
			return fmt.Errorf("a candidate beside the error %w", err)
		}
		return err
	}}
}

// calls adds calls without a context, and at the wrong time.
func (s *stage) calls(to section, elsewhere *lease.Session, l *election.Leadership, leading, waiting *election.Candidate) section {
	idle, gone := s.candidate(s.session(), s.variant("idle")), s.candidate(s.session(), s.variant("gone"))
	resigned := s.leader(gone)
	require.NoError(s.T, resigned.Resign(s.Ctx))
	require.NoError(s.T, gone.Close(s.Ctx))
	deposed := s.candidate(s.session(), s.variant("deposed"))
	lost := s.leader(deposed)
	require.NoError(s.T, etcdtest.Err(s.Admin.Delete(s.Ctx, lost.Key())))
	<-lost.Done()
	require.NoError(s.T, deposed.Close(s.Ctx))

	large := make([]byte, election.MaxValue+1)
	nothing := func(context.Context) error { return nil }
	call := func(of *election.Candidate, tried, op string, try func() error, want ...error) {
		to.rows = append(to.rows, row{tried: tried, op: op, election: of.Election(), key: of.Key(), try: try, want: want})
	}
	call(idle, "`idle.Campaign`: no context", "campaign", func() error { return second(idle.Campaign(absent)) }, eldest.ErrInvalid)
	call(idle, "`idle.Register`: no context", "register", func() error { return second(idle.Register(absent)) }, eldest.ErrInvalid)
	call(idle, "`idle.Try`: no context", "try", func() error { return second(idle.Try(absent)) }, eldest.ErrInvalid)
	call(idle, "`idle.Await`: no context", "await", func() error { return second(idle.Await(absent)) }, eldest.ErrInvalid)
	call(idle, "`idle.Withdraw`: no context", "withdraw", func() error { return idle.Withdraw(absent) }, eldest.ErrInvalid)
	call(idle, "`idle.Close`: no context", "close candidate", func() error { return idle.Close(absent) }, eldest.ErrInvalid)
	call(leading, "`l.Resign`: no context", "resign", func() error { return l.Resign(absent) }, eldest.ErrInvalid)
	call(leading, "`l.Proclaim`: no context", "proclaim", func() error { return l.Proclaim(absent, nil) }, eldest.ErrInvalid)
	call(leading, "`l.Lead`: no context", "lead", func() error { return l.Lead(absent, nothing) }, eldest.ErrInvalid)
	call(leading, "`l.Lead`: no function", "lead", func() error { return l.Lead(s.Ctx, nil) }, eldest.ErrInvalid)
	call(leading, "`l.Proclaim`: 1 MiB and 1 byte", "proclaim", func() error { return l.Proclaim(s.Ctx, large) }, eldest.ErrInvalid)
	call(waiting, "`waiting.Proclaim`: 1 MiB and 1 byte", "proclaim", func() error { return waiting.Proclaim(s.Ctx, large) }, eldest.ErrInvalid)
	call(idle, "`idle.Await` without `Register`", "await", func() error { return second(idle.Await(s.Ctx)) }, eldest.ErrNotRegistered)
	call(idle, "`idle.Withdraw`", "withdraw", func() error { return idle.Withdraw(s.Ctx) }, eldest.ErrNotRegistered)
	call(idle, "`idle.Proclaim`", "proclaim", func() error { return idle.Proclaim(s.Ctx, nil) }, eldest.ErrNotRegistered)
	call(leading, "`Campaign` of the candidate that leads", "campaign", func() error { return second(leading.Campaign(s.Ctx)) }, eldest.ErrLeading)
	call(leading, "`Register` of the candidate that leads", "register", func() error { return second(leading.Register(s.Ctx)) }, eldest.ErrLeading)
	call(leading, "`Try` of the candidate that leads", "try", func() error { return second(leading.Try(s.Ctx)) }, eldest.ErrLeading)
	call(leading, "`Withdraw` of the candidate that leads", "withdraw", func() error { return leading.Withdraw(s.Ctx) }, eldest.ErrLeading)
	call(waiting, "a second `Campaign` of the one that waits", "campaign", func() error { return second(waiting.Campaign(s.Ctx)) }, eldest.ErrCampaigning)
	call(waiting, "a second `Await` of the one that waits", "await", func() error { return second(waiting.Await(s.Ctx)) }, eldest.ErrCampaigning)
	call(waiting, "a second `Try` of the one that waits", "try", func() error { return second(waiting.Try(s.Ctx)) }, eldest.ErrCampaigning)
	call(waiting, "a second `Register` of the one that waits", "register", func() error { return second(waiting.Register(s.Ctx)) }, eldest.ErrCampaigning)
	twin := s.candidate(elsewhere)
	call(twin, "a second candidate with the same session and election", "campaign", func() error { return second(twin.Campaign(s.Ctx)) }, eldest.ErrCampaigning)
	call(twin, "the same, `Try`", "try", func() error { return second(twin.Try(s.Ctx)) }, eldest.ErrCampaigning)
	call(twin, "the same, `Withdraw`", "withdraw", func() error { return twin.Withdraw(s.Ctx) }, eldest.ErrNotRegistered)
	call(gone, "`Campaign` after `Close`", "campaign", func() error { return second(gone.Campaign(s.Ctx)) }, eldest.ErrClosed)
	call(gone, "`Proclaim` after `Close`", "proclaim", func() error { return gone.Proclaim(s.Ctx, nil) }, eldest.ErrClosed)
	call(gone, "`Close` twice", "", func() error { return gone.Close(s.Ctx) })
	call(gone, "`Leadership.Resign` twice, and after `Close`", "", func() error { return resigned.Resign(s.Ctx) })
	call(gone, "`Leadership.Proclaim` after `Resign`", "proclaim", func() error { return resigned.Proclaim(s.Ctx, nil) }, eldest.ErrNotLeading, eldest.ErrResigned)
	call(gone, "`Leadership.Lead` after `Resign`", "lead", func() error { return resigned.Lead(s.Ctx, nothing) }, eldest.ErrResigned)
	call(deposed, "`Leadership.Resign` of one that was deposed", "resign", func() error { return lost.Resign(s.Ctx) }, eldest.ErrNotLeading, eldest.ErrDeposed)

	place, err := observe.LeaderOf(s.Ctx, s.Admin, s.Election)
	require.NoError(s.T, err)
	evict := func(tried string, ctx context.Context, c eldest.Candidate, want ...error) {
		to.rows = append(to.rows, row{tried: tried, op: "evict", election: s.Election, key: c.Key, want: want, try: func() error {
			return election.Evict(ctx, s.Client, s.Election, c)
		}})
	}
	evict("`Evict`: no context", absent, place, eldest.ErrInvalid)
	evict("`Evict`: token 0", s.Ctx, eldest.Candidate{Key: place.Key}, eldest.ErrInvalid)
	evict("`Evict`: a foreign key in the range", s.Ctx, eldest.Candidate{Key: s.Election + "/notes", Token: 1}, eldest.ErrInvalid, eldest.ErrForeignKey)
	evict("`Evict`: another election's key", s.Ctx, eldest.Candidate{Key: "invoices/2a", Token: 1}, eldest.ErrInvalid, eldest.ErrForeignKey)
	over, cancel := context.WithCancel(s.Ctx)
	cancel()
	evict("`Evict`: a context that has ended", over, place, context.Canceled)
	to.rows = append(to.rows,
		row{tried: "`Evict`: a nested name", op: "evict", election: "orders/eu", key: place.Key, want: errInvalid, try: func() error {
			return election.Evict(s.Ctx, s.Client, "orders/eu", place)
		}},
		row{tried: "`Evict`: no client", op: "evict", election: s.Election, key: place.Key, want: errInvalid, try: func() error {
			return election.Evict(s.Ctx, nil, s.Election, place)
		}},
		row{tried: "`Evict`: a nil `*clientv3.Client`", op: "evict", election: s.Election, key: place.Key, want: errInvalid, try: func() error {
			return election.Evict(s.Ctx, none, s.Election, place)
		}},
		row{tried: "`Evict`: a tenure that was over long ago", sent: 1, try: func() error {
			past := place
			past.Token--
			return election.Evict(s.Ctx, s.Client, s.Election, past)
		}},
		row{tried: "`Try` while another candidate leads", op: "try", election: s.Election, sent: 1, want: []error{eldest.ErrNotElected}},
	)
	third := s.candidate(s.session())
	last := &to.rows[len(to.rows)-1]
	last.key, last.try = third.Key(), func() error { return second(third.Try(s.Ctx)) }
	return to
}
