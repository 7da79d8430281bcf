package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// nearsighted is a queue that knows of its predecessor only, and asks for the rest.
type nearsighted struct {
	txn.ByCreateRevision
	asked atomic.Int64
}

func (q *nearsighted) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error) {
	p, err := q.ByCreateRevision.Enter(ctx, kv, e)
	if len(p.Ahead) > 1 {
		p.Ahead, p.Complete = p.Ahead[:1], false
	}
	return p, err
}

func (q *nearsighted) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Place, at int64) (txn.Place, error) {
	q.asked.Add(1)
	p.Ahead, p.Complete = nil, false
	p, err := q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
	if len(p.Ahead) > 1 {
		p.Ahead, p.Complete = p.Ahead[:1], false
	}
	return p, err
}

// Row 33's door: another way to find the predecessor, in the same queue as others.
func TestCustomQueue(t *testing.T) {
	s := newStage(t)
	q := &nearsighted{}
	leader := s.lead(s.candidate("leader"))
	var waiting []<-chan outcome
	for i := range 4 {
		c := s.candidate("v", func(cfg *election.Config) {
			if i%2 == 0 {
				cfg.Queue = q
			}
		})
		waiting = append(waiting, s.campaigning(s.Ctx, c))
		s.queued(i + 2)
	}
	for _, next := range waiting {
		require.NoError(t, leader.Resign(s.Ctx))
		won := get(s, next)
		require.NoError(t, won.err)
		require.Greater(t, won.l.Token(), leader.Token())
		leader = won.l
	}
	require.Positive(t, q.asked.Load())
}

// refusing is a queue that refuses for good.
type refusing struct{ txn.ByCreateRevision }

func (refusing) Enter(context.Context, clientv3.KV, txn.Entry) (txn.Place, error) {
	return txn.Place{}, eldest.ErrInvalid
}

func TestCustomQueueThatRefuses(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v", func(cfg *election.Config) { cfg.Queue = refusing{} })
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrInvalid)
	l, err := c.Try(s.Ctx)
	require.NoError(t, err, "nothing is left of the first try")
	require.NoError(t, l.Resign(s.Ctx))
}

// undecided is a queue that cannot say at first who is older.
type undecided struct {
	txn.ByCreateRevision
	left atomic.Int64
}

func (q *undecided) EnterAlone(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error) {
	return q.unsaid(q.Enter(ctx, kv, e))
}

func (q *undecided) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Place, at int64) (txn.Place, error) {
	next, err := q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
	if q.left.Add(-1) >= 0 {
		return q.unsaid(next, err)
	}
	return next, err
}

func (*undecided) unsaid(p txn.Place, err error) (txn.Place, error) {
	p.Ahead, p.Complete = nil, false
	return p, err
}

// A place of which nothing is known is no win, however often it is answered.
func TestTryOfAQueueThatIsUndecided(t *testing.T) {
	s := newStage(t)
	elder := s.lead(s.candidate("elder"))
	q := &undecided{}
	c := s.candidate("v", func(cfg *election.Config) { cfg.Queue = q })
	q.left.Store(3)
	require.ErrorIs(t, etcdtest.Err(c.Try(s.Ctx)), eldest.ErrNotElected)
	require.Equal(t, []string{elder.Key()}, s.Queue())
	require.NoError(t, elder.Resign(s.Ctx))
	q.left.Store(3)
	l, err := c.Try(s.Ctx)
	require.NoError(t, err)
	require.Negative(t, q.left.Load())
	require.NoError(t, l.Resign(s.Ctx))
}

// Back-off and time-out are the caller's: how long a request may take, and how long
// the pause after it is.
func TestCustomBackoffAndTimeout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	attempts := make(chan int, 4)
	c, host := s.behind("v", func(cfg *election.Config) {
		cfg.Timeout = 50 * time.Millisecond
		cfg.Backoff = func(attempt int) time.Duration {
			select {
			case attempts <- attempt:
			default: // nobody counts those that come later
			}
			return time.Millisecond
		}
	})
	host.Cut()
	begin := time.Now()
	waiting := s.campaigning(s.Ctx, c)
	for want := range 4 {
		require.Equal(t, want, get(s, attempts), "failures in a row are counted")
	}
	require.GreaterOrEqual(t, time.Since(begin), 4*50*time.Millisecond)
	host.Mend()
	require.NoError(t, get(s, waiting).err)
	require.Equal(t, []string{c.Key()}, s.Queue())
}

// A watch that tells nothing is found by asking now and then.
func TestRecheckFindsADeafWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	elder := s.lead(s.candidate("elder"))
	deaf := etcdtest.Deaf(s.Client)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.Watcher, cfg.Recheck, cfg.Timeout = deaf, 50*time.Millisecond, 50*time.Millisecond
	})
	waiting := s.campaigning(s.Ctx, c)
	s.queued(2)
	require.NoError(t, elder.Resign(s.Ctx))
	won := get(s, waiting)
	require.NoError(t, won.err, "found by asking")
	s.Remove(c.Key())
	require.ErrorIs(t, s.over(won.l), eldest.ErrDeposed)
}
