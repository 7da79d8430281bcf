package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 25: every end of a tenure has a cause.
func TestTenureEndsWithACause(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(s *stage, c *election.Candidate, session *lease.Session, l *election.Leadership)
		want error
	}{
		{"resigned", func(s *stage, _ *election.Candidate, _ *lease.Session, l *election.Leadership) {
			require.NoError(s.T, l.Resign(s.Ctx))
		}, eldest.ErrResigned},
		{"key removed", func(s *stage, c *election.Candidate, _ *lease.Session, _ *election.Leadership) {
			s.Remove(c.Key())
		}, eldest.ErrDeposed},
		{"key removed and written again in its place", func(s *stage, c *election.Candidate, session *lease.Session, _ *election.Leadership) {
			s.Remove(c.Key())
			require.NoError(s.T, etcdtest.Err(s.Admin.Put(s.Ctx, c.Key(), "v", clientv3.WithLease(session.ID()))))
		}, eldest.ErrDeposed},
		{"key overwritten without the lease", func(s *stage, c *election.Candidate, _ *lease.Session, _ *election.Leadership) {
			require.NoError(s.T, etcdtest.Err(s.Admin.Put(s.Ctx, c.Key(), "by hand")))
		}, eldest.ErrDeposed},
		{"session closed", func(s *stage, _ *election.Candidate, session *lease.Session, _ *election.Leadership) {
			require.NoError(s.T, session.Close(s.Ctx))
		}, eldest.ErrClosed},
		{"session abandoned", func(s *stage, _ *election.Candidate, session *lease.Session, _ *election.Leadership) {
			session.Abandon() // and the lease lives on
			require.NoError(s.T, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
		}, eldest.ErrClosed},
		{"candidate closed", func(s *stage, c *election.Candidate, _ *lease.Session, _ *election.Leadership) {
			require.NoError(s.T, c.Close(s.Ctx))
		}, eldest.ErrClosed},
		{"lease revoked", func(s *stage, _ *election.Candidate, session *lease.Session, _ *election.Leadership) {
			require.NoError(s.T, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
		}, eldest.ErrDeposed}, // the key is noticed before the next renewal
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.Client)
			c := s.candidate("v", on(session))
			l := s.lead(c)
			tc.end(s, c, session, l)
			cause := s.over(l)
			require.ErrorIs(t, cause, tc.want)
			if session.Err() == nil {
				require.ErrorContains(t, cause, s.Election)
			}
			require.Same(t, cause, l.Err(), "always the same")

			// Whatever is tried afterwards fails with the same type, each time.
			for range 2 {
				err := l.Proclaim(s.Ctx, []byte("late"))
				require.ErrorIs(t, err, eldest.ErrNotLeading)
				require.ErrorIs(t, err, tc.want)
				require.ErrorIs(t, etcdtest.Err(l.Txn(s.Ctx).Then(clientv3.OpPut("data-"+s.Election, "late")).Commit()), tc.want)
				require.ErrorIs(t, etcdtest.Err(l.KV().Put(s.Ctx, "data-"+s.Election, "late")), tc.want)
			}
		})
	}
}

// A key that was overwritten outlives its lease; it is removed by its candidate.
func TestOverwrittenKeyIsRemoved(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	next := s.campaigning(s.Ctx, s.candidate("next"))
	s.queued(2)
	_, err := s.Admin.Put(s.Ctx, c.Key(), "by hand")
	require.NoError(t, err)
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	require.NoError(t, get(s, next).err, "nobody waits behind a phantom")
	require.NotContains(t, s.Queue(), c.Key())
}

// A put by hand that keeps lease and life is a proclaim by somebody else: the
// tenure goes on.
func TestKeyRewrittenWithItsLeaseIsNoEnd(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Client)
	c := s.candidate("v", on(session))
	l := s.lead(c)
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, c.Key(), "by hand", clientv3.WithLease(session.ID()))))
	require.NoError(t, l.Proclaim(s.Ctx, []byte("mine")), "after the event")
	s.Remove(c.Key())
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
}

// Regression 46: the etcd client is closed while the candidate leads. The session has
// another one and lives, and so does the key: nobody was deposed.
//
// Broken by taking each end of the watch for the key's.
func TestClientClosedWhileLeading(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	cli := etcdtest.Shared(t).Client(t)
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV, cfg.Watcher = cli, cli })
	l := s.lead(c)
	require.NoError(t, cli.Close())
	err := s.over(l)
	require.NotErrorIs(t, err, eldest.ErrDeposed, "nobody was deposed")
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.ErrorContains(t, err, "the etcd client")
	require.ErrorIs(t, l.Proclaim(s.Ctx, nil), eldest.ErrNotLeading)
	require.Equal(t, []string{c.Key()}, s.Queue())
	require.NoError(t, session.Err())
	require.NoError(t, session.Close(s.Ctx))
	require.Empty(t, s.Queue())
}
