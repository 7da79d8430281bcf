package regressions

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

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

// Row 40, a user's back-off function that returns no pause. In other implementations an etcd that
// is down receives as many requests as the machine can send. In Eldest a pause has a minimum, in
// each package that has such a setting.
//
// Fails when the result of the function is used as it is.
func TestRegression40_NoPause(t *testing.T) {
	t.Parallel()
	away := dead{err: status.Error(codes.Unavailable, "connection refused")}
	cli := etcdtest.Shared(t).Client(t)
	for name, try := range map[string]func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error{
		"lease": func(_ *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			_, err := lease.Open(ctx, lease.Config{Lease: away, Majority: lease.Unconfirmed{}, Options: lease.Options{Backoff: backoff}})
			return err
		},
		"election": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			p := join(t, cli, etcdtest.Election(t))
			c, err := election.New(election.Config{
				Election: etcdtest.Election(t), Session: p.Session, KV: away, Watcher: away,
				Options: election.Options{Backoff: backoff},
			})
			require.NoError(t, err)
			_, err = c.Campaign(ctx)
			return err
		},
		"observe": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			o, err := observe.New(observe.Config{Election: "e", KV: away, Watcher: away, Options: observe.Options{Backoff: backoff}})
			require.NoError(t, err)
			defer o.Close()
			<-ctx.Done()
			return ctx.Err()
		},
		"elector": func(t *testing.T, ctx context.Context, backoff func(int) time.Duration) error {
			denies := dead{err: rpctypes.ErrPermissionDenied} // this error ends a round
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
				Candidate: p.Candidate, Session: p.Session, KV: away, Watcher: away,
				ServeOptions: transfer.ServeOptions{Backoff: backoff},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
			defer cancel()
			const least, enough = 5 * time.Millisecond, 100
			begun, pauses := time.Now(), new(atomic.Int64)
			err := try(t, ctx, func(attempt int) time.Duration {
				// A time instead of a number could be over, on a busy machine, before it has begun.
				if pauses.Add(1) == enough {
					cancel()
				}
				return -time.Duration(attempt % 2)
			})
			// Some packages wait in several places at the same time.
			most := 4 * (int64(time.Since(begun)/least) + 1)
			require.Error(t, err)
			require.GreaterOrEqual(t, pauses.Load(), int64(enough), "INVALID: it was not asked for pauses: %v", err)
			require.LessOrEqual(t, pauses.Load(), most, "more pauses than the time has room for")
		})
	}
}
