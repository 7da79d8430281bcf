package regressions

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

// Row 37. 1,000 candidates at once, then 1,000 departures one after another. Elsewhere
// every waiter was woken by every departure, and callers saw "too many requests". Here
// each waits once, is woken once, and no caller sees anything of the crowd.
//
// Fails when waiters watch the leader or the range.
func TestRegression37_Crowd(t *testing.T) {
	t.Parallel()
	const crowd, clients = 1000, 20
	c := etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	people := make([]*participant, crowd)
	var joining sync.WaitGroup
	for i := range clients {
		cli := c.Client(t, rec.Attach)
		joining.Go(func() {
			for j := i; j < crowd; j += clients {
				people[j] = join(t, cli, name, func(l *lease.Config, e *election.Config) {
					// Without rechecks, and without a second watch where a busy etcd
					// confirms the first one late: what is counted is what one costs.
					e.Recheck, e.Timeout = -1, etcdtest.Patience
					// Nobody renews meanwhile, or loses its lease on a busy machine.
					l.TTL = time.Hour
				})
			}
		})
	}
	joining.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 8*etcdtest.Patience)
	defer cancel()
	queued := make(chan struct{})
	tokens := make(chan eldest.Token, crowd)
	var campaigns, registering sync.WaitGroup
	for _, p := range people {
		registering.Add(1)
		campaigns.Go(func() {
			_, err := p.Candidate.Register(ctx)
			registering.Done()
			if !assert.NoError(t, err) {
				return
			}
			l, err := p.Candidate.Await(ctx)
			if !assert.NoError(t, err) {
				return
			}
			<-queued
			tokens <- l.Token()
			assert.NoError(t, l.Resign(ctx))
		})
	}
	registering.Wait()
	require.Len(t, queueOf(t, c, name), crowd)
	waits := 0
	etcdtest.Eventually(t, func() bool { // everybody but the first waits
		waits = 0
		for _, p := range people {
			waits += len(p.Waiting)
		}
		return waits == crowd-1
	}, "the crowd waits")
	begin := time.Now()
	close(queued)
	campaigns.Wait()
	t.Logf("%d departures in %v", crowd, time.Since(begin))
	close(tokens)
	var last eldest.Token
	for token := range tokens {
		require.Greater(t, token, last, "out of order")
		last = token
	}
	events := map[string]int{}
	for _, ev := range rec.Events() {
		if ev.Type == clientv3.EventTypeDelete {
			events[string(ev.Kv.Key)]++
		}
	}
	for _, p := range people {
		require.LessOrEqual(t, len(p.Waiting), 1, "it waited for more than one key")
		// The successor's, and perhaps its own.
		require.LessOrEqual(t, events[p.Candidate.Key()], 2, "one departure woke many")
	}
	var leaving sync.WaitGroup
	for _, p := range people {
		leaving.Go(p.Leave)
	}
	leaving.Wait()
}

// busyKV refuses every request but each third, as an etcd does that has too many under
// way. (That takes 5,000, more than a test should send.)
type busyKV struct {
	clientv3.KV
	asked, refused atomic.Int64
}

func (kv *busyKV) refuse() bool {
	if kv.asked.Add(1)%3 == 0 {
		return false
	}
	kv.refused.Add(1)
	return true
}

func (kv *busyKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if kv.refuse() {
		return clientv3.OpResponse{}, rpctypes.ErrTooManyRequests
	}
	return kv.KV.Do(ctx, op)
}

func (kv *busyKV) commit(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
	if kv.refuse() {
		return nil, rpctypes.ErrTooManyRequests
	}
	return t.Commit(t.Context)
}

// Row 37, the overload itself: registration, proof and resignation are each refused for
// it, and the caller sees nothing of that but the time.
//
// Fails when internal/rpcerr.Permanent takes such a refusal for one that lasts.
func TestRegression37_TooManyRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	cli := c.Client(t)
	kv := &busyKV{}
	kv.KV = etcdtest.WithTxns(cli, kv.commit)
	leader := join(t, c.Client(t), name).Lead(t)
	p := join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.KV = kv })
	result := p.Queue(t)
	etcdtest.Take(t, p.Waiting, "its wait")
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	require.NoError(t, next.Resign(etcdtest.Context(t)))
	require.Greater(t, kv.refused.Load(), int64(5))
	require.Empty(t, queueOf(t, c, name))
}

// dead is an etcd that refuses every request at once.
type dead struct {
	clientv3.KV
	clientv3.Watcher
	clientv3.Lease
	err error
}

func (d dead) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) { return nil, d.err }

func (d dead) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return nil, d.err
}

func (d dead) Do(context.Context, clientv3.Op) (clientv3.OpResponse, error) {
	return clientv3.OpResponse{}, d.err
}

func (d dead) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return nil, d.err
}

func (d dead) Txn(ctx context.Context) clientv3.Txn {
	return etcdtest.WithTxns(nil, func(*etcdtest.Txn) (*clientv3.TxnResponse, error) { return nil, d.err }).Txn(ctx)
}

func (d dead) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	ch := make(chan clientv3.WatchResponse)
	close(ch)
	return ch
}

func (dead) Close() error { return nil }

// Row 40, a back-off of the user's that gives no pause. Elsewhere a dead etcd is sent as
// many requests as the machine can make. Here a pause has a least length, in each package
// that has such a setting.
//
// Fails when the function is taken as it is.
func TestRegression40_NoPause(t *testing.T) {
	t.Parallel()
	away := dead{err: status.Error(codes.Unavailable, "connection refused")}
	cli := etcdtest.Shared(t).Client(t)
	for name, try := range map[string]func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error{
		"lease": func(_ *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			_, err := lease.Open(ctx, lease.Config{Lease: away, Majority: lease.Unconfirmed{}, Backoff: backoff})
			return err
		},
		"election": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			p := join(t, cli, etcdtest.Election(t))
			c, err := election.New(election.Config{
				Election: etcdtest.Election(t), Session: p.Session, KV: away, Watcher: away, Backoff: backoff,
			})
			require.NoError(t, err)
			_, err = c.Campaign(ctx)
			return err
		},
		"observe": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			o, err := observe.New(observe.Config{Election: "e", KV: away, Watcher: away, Backoff: backoff})
			require.NoError(t, err)
			defer o.Close()
			<-ctx.Done()
			return ctx.Err()
		},
		"elector": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			denies := dead{err: rpctypes.ErrPermissionDenied} // the end of a round
			e, err := elector.New(elector.Config{
				Election: "e", NodeID: "n", Backoff: backoff,
				Source: elector.Always(elector.Clients{KV: denies, Watcher: denies, Lease: denies, Majority: lease.Unconfirmed{}}),
			})
			require.NoError(t, err)
			return e.Run(ctx, func(context.Context, *elector.Leadership) error { return nil })
		},
		"transfer": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			p := join(t, cli, etcdtest.Election(t))
			require.NoError(t, etcdtest.Err(p.Candidate.Register(etcdtest.Context(t))))
			return transfer.Serve(ctx, transfer.Config{
				Candidate: p.Candidate, Session: p.Session, KV: away, Watcher: away, Backoff: backoff,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			const least = 5 * time.Millisecond
			begun, pauses := time.Now(), new(atomic.Int64)
			err := try(t, ctx, func(attempt int) time.Duration {
				pauses.Add(1)
				return -time.Duration(attempt % 2)
			})
			// Some wait in several places at a time.
			most := 4 * (int64(time.Since(begun)/least) + 1)
			require.Error(t, err)
			require.Greater(t, pauses.Load(), int64(1), "INVALID: it was not asked for a pause: %v", err)
			require.LessOrEqual(t, pauses.Load(), most, "more pauses than the time has room for")
		})
	}
}
