package echo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

var ways = []string{Direct, Forwarded, Plain}

// started returns a service and a caller on each way.
func started(t *testing.T, election string) (*Service, map[string]*Caller) {
	t.Helper()
	s, err := Start(etcdtest.Context(t), etcdtest.Shared(t).Client(t), election)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	callers := map[string]*Caller{}
	for _, way := range ways {
		callers[way], err = s.Caller(way)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, callers[way].Close()) })
	}
	return s, callers
}

// Each call of each kind is counted once, for the way that it took.
func TestWays(t *testing.T) {
	t.Parallel()
	s, callers := started(t, "ways")
	for _, way := range ways {
		for name, call := range map[string]func(*Caller, context.Context, []byte) error{
			"unary": (*Caller).Unary, "server stream": (*Caller).ServerStream, "bidi": (*Caller).Bidi,
		} {
			for _, size := range []int{1, 100, 1 << 20} {
				before := s.Calls()
				require.NoError(t, call(callers[way], etcdtest.Context(t), make([]byte, size)), "%s %s", way, name)
				require.NoError(t, before.Took(s.Calls(), way, 1), name)
				require.ErrorIs(t, before.Took(s.Calls(), way, 2), ErrOtherWay, "another number")
				for _, other := range ways {
					if other != way {
						require.ErrorIs(t, before.Took(s.Calls(), other, 1), ErrOtherWay)
					}
				}
			}
		}
	}
	require.Equal(t, []int{1000, 1000, 1000, 4, 1, 1}, []int{
		StreamLength(0), StreamLength(100), StreamLength(4096), StreamLength(1 << 20), StreamLength(4 << 20), StreamLength(5 << 20),
	})
}

// If leadership moves to the other node, no call is counted as the one that it was.
func TestWaysAfterLeadershipMoved(t *testing.T) {
	t.Parallel()
	s, callers := started(t, "moved")
	got, err := etcdtest.Shared(t).Client(t).Get(etcdtest.Context(t), "moved/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	require.NoError(t, err)
	require.Len(t, got.Kvs, 2)
	_, err = etcdtest.Shared(t).Client(t).Delete(etcdtest.Context(t), string(got.Kvs[0].Key))
	require.NoError(t, err)
	for _, way := range []string{Direct, Forwarded} {
		etcdtest.Eventually(t, func() bool {
			before := s.Calls()
			err := callers[way].Unary(etcdtest.Context(t), []byte("x"))
			return err == nil && errors.Is(before.Took(s.Calls(), way, 1), ErrOtherWay)
		}, "calls %s take another way", way)
	}
}

// A caller whose context ends returns, whatever it is doing, and so does Close.
func TestCallsThatAreCancelled(t *testing.T) {
	t.Parallel()
	_, callers := started(t, "cancelled")
	for _, way := range ways {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		stop := time.AfterFunc(5*time.Millisecond, cancel)
		for ctx.Err() == nil {
			_ = callers[way].Bidi(ctx, make([]byte, 4096))
		}
		stop.Stop()
		require.Error(t, callers[way].Unary(ctx, nil))
		cancel()
	}
}

// Without etcd there is no service, and nothing is left running.
func TestStartWithoutEtcd(t *testing.T) {
	t.Parallel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, client, "none")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = Start(etcdtest.Context(t), client, "not/a/name")
	require.ErrorContains(t, err, "not/a/name")
}
