package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// lagging is a queue as a member sees it that has not reached a past revision, or
// has compacted it away.
type lagging struct {
	txn.ByCreateRevision
	err error
}

func (q lagging) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Place, at int64) (txn.Place, error) {
	if at > 0 {
		return txn.Place{}, q.err
	}
	return q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
}

// Where the revision of the predecessor's end cannot be read, the newest state is
// asked for, at once.
func TestProofWhereThePastCannotBeRead(t *testing.T) {
	for name, err := range map[string]error{"future": rpctypes.ErrFutureRev, "compacted": rpctypes.ErrCompacted} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			paused := make(chan int, 10)
			elder, middle := s.lead(s.candidate("elder")), s.candidate("middle")
			_, merr := middle.Register(s.Ctx)
			require.NoError(t, merr)
			c := s.candidate("v", func(cfg *election.Config) {
				cfg.Queue = lagging{err: err}
				cfg.Backoff = func(attempt int) time.Duration { paused <- attempt; return 0 }
			})
			_, cerr := c.Register(s.Ctx)
			require.NoError(t, cerr)
			require.NoError(t, middle.Withdraw(s.Ctx))
			waiting := make(chan outcome, 1)
			go func() {
				l, err := c.Await(s.Ctx)
				waiting <- outcome{l, err}
			}()
			require.NoError(t, elder.Resign(s.Ctx))
			require.NoError(t, get(s, waiting).err)
			require.Empty(t, paused, "without a pause")
		})
	}
}

// A refusal that will not change ends whatever it meets, at once, and leaves
// nothing behind.
func TestRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	denied := rpctypes.ErrPermissionDenied
	refuse := func(context.Context) error { return denied }
	t.Run("registration", func(t *testing.T) {
		s := newStage(t)
		c, g := s.gated("v")
		g.on(func(context.Context) error { // with the pointer, and without
			g.on(refuse, nil)
			return denied
		}, nil)
		_, err := c.Campaign(s.Ctx)
		require.ErrorIs(t, err, denied)
		require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
		require.NoError(t, s.lead(c).Err(), "the next one is free")
	})
	t.Run("lease gone", func(t *testing.T) {
		s := newStage(t)
		c, g := s.gated("v")
		g.on(func(context.Context) error { return rpctypes.ErrLeaseNotFound }, nil)
		require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrSessionLost)
	})
	t.Run("question", func(t *testing.T) {
		s := newStage(t)
		elder, middle := s.candidate("elder"), s.candidate("middle")
		s.lead(elder)
		require.NoError(t, etcdtest.Err(middle.Register(s.Ctx)))
		c, g := s.gated("v")
		require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
		g.on(refuse, nil)
		require.NoError(t, middle.Withdraw(s.Ctx))
		require.ErrorIs(t, etcdtest.Err(c.Await(s.Ctx)), denied)
		s.queued(1)
	})
	t.Run("watch", func(t *testing.T) {
		s := newStage(t)
		c := s.candidate("v", func(cfg *election.Config) { cfg.Watcher = forbidden{cfg.Watcher} })
		l, err := c.Campaign(s.Ctx)
		if err == nil {
			err = s.over(l) // without its watch a removal would go unnoticed
		}
		require.ErrorIs(t, err, eldest.ErrDeposed)
		require.ErrorContains(t, err, denied.Error())
		s.queued(0)
	})
}

// forbidden is a watcher without permission.
type forbidden struct{ clientv3.Watcher }

func (forbidden) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	ch := make(chan clientv3.WatchResponse, 1)
	ch <- clientv3.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrPermissionDenied.Error()}
	close(ch)
	return ch
}

// The end of a session is seen at once, even before the watch of the own key has
// tidied up: no call mistakes an ended tenure for a present one.
func TestCallsJustAfterTheSession(t *testing.T) {
	for range 30 {
		s := newStage(t)
		session := s.session(s.Client)
		c := s.candidate("v", on(session))
		l := s.lead(c)
		session.Abandon()
		_, err := c.Campaign(s.Ctx)
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.NotErrorIs(t, err, eldest.ErrLeading)
		require.ErrorIs(t, c.Proclaim(s.Ctx, nil), eldest.ErrNotRegistered)
		require.ErrorIs(t, c.Withdraw(s.Ctx), eldest.ErrNotRegistered)
		require.ErrorIs(t, l.Err(), eldest.ErrClosed)
		require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
	}
}
