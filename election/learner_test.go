package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// learnerIn makes a learner of member i, the last one. A member that is replaced starts like one
// that is new to its cluster, so member i is replaced, removed, and added again.
func learnerIn(ctx context.Context, t *testing.T, c *etcdtest.Cluster, i int) {
	t.Helper()
	m, admin := c.Member(i), c.ClientTo(t, 0)
	require.NoError(t, c.Replace(ctx, i))
	require.NoError(t, m.Restore(ctx, func(_, peer string) error {
		require.NoError(t, etcdtest.Err(admin.MemberRemove(ctx, m.ID())))
		for {
			// The ID is made of the URL and the time in seconds: not twice in one second.
			_, err := admin.MemberAddAsLearner(ctx, []string{peer})
			if !errors.Is(err, rpctypes.ErrMemberNotFound) {
				require.NoError(t, err)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		// Every voter that the member may ask has to know of the addition. A reply that needs a
		// majority is newer than the addition.
		for voter := range c.Size() - 1 {
			require.NoError(t, etcdtest.Err(c.ClientTo(t, voter).MemberList(ctx)))
		}
		return nil
	}))
}

// throughLearner is a watcher whose first streams go to a learner, as those of a client of all
// members do when the client has chosen the learner.
type throughLearner struct {
	clientv3.Watcher
	learner clientv3.Watcher
	first   atomic.Int64 // how many are left
}

func (w *throughLearner) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if w.first.Add(-1) >= 0 {
		return w.learner.Watch(ctx, key, opts...)
	}
	return w.Watcher.Watch(ctx, key, opts...)
}

// A learner serves no watch, and its endpoint may be listed among those of voters until it is a
// voter itself. A refusal of one member ends nothing: the leader is not deposed, the waiter
// continues to wait and the observer continues, through the next member.
//
// Fails if rpcerr.Refused takes the learner's refusal for a refusal of etcd, or if the end of a
// watch counts as final.
func TestLearnerAmongTheEndpoints(t *testing.T) {
	s := newEnv(t)
	// A long timeout: etcd also refuses watches during an election, which a busy machine may cause.
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond, Replaceable: true})
	learnerIn(s.Ctx, t, c, 2)
	s.Client, s.Admin = c.ClientTo(t, 0), c.ClientTo(t, 0)
	learner := c.ClientTo(t, 2)
	answer := <-learner.Watch(s.Ctx, "k")
	denied := answer.Err()
	require.ErrorContains(t, denied, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner).Error())

	interrupted := make(chan election.InterruptedEvent, 10)
	watcher := func() *throughLearner {
		w := &throughLearner{Watcher: s.Client, learner: learner}
		w.first.Store(2)
		return w
	}
	through := func(cfg *election.Config) {
		cfg.Watcher = watcher()
		cfg.Hooks.Interrupted = func(e election.InterruptedEvent) { interrupted <- e }
	}
	leader, waiter := s.candidate("leader", through), s.candidate("waiter", through)
	var won <-chan electiontest.Outcome
	l := s.lead(leader)
	refused := func(keys ...string) {
		t.Helper()
		for {
			select {
			case e := <-interrupted:
				if e.Reason.Error() == denied.Error() {
					require.Equal(t, s.Election, e.Election)
					require.Contains(t, keys, e.Key)
					require.False(t, e.At.IsZero())
					return
				}
				t.Logf("not by the learner: %v", e.Reason)
			case <-l.Done():
				require.NoError(t, l.Err())
			case early := <-won:
				require.FailNow(t, "the waiter waits no more", early.Reason)
			case <-s.Ctx.Done():
				require.FailNow(t, "the learner was not asked")
			}
		}
	}
	refused(leader.Key())
	refused(leader.Key())
	won = s.campaigning(s.Ctx, waiter) // it watches its own key, and the leader's
	refused(waiter.Key(), leader.Key())
	refused(waiter.Key(), leader.Key())
	o, err := observe.New(observe.Config{Election: s.Election, KV: s.Client, Watcher: watcher()})
	require.NoError(t, err)
	defer o.Close()
	s.Until("the observer sees the leader", func() bool { return o.State().Leader.Token == l.Token() })
	require.NoError(t, l.Err())

	// The watches are created now: all three notice a removal by another client.
	s.Remove(leader.Key())
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	next := electiontest.Wins(t, won)
	s.Until("the observer sees the next one", func() bool { return o.State().Leader.Token == next.Token() })
}

// errReset is the error by which gRPC reports that a proxy between client and etcd has closed a
// stream. The error of a closed client has the same code.
var errReset = status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")

// reporting is a KV that reports, as a *clientv3.Client does, whether it was closed.
type reporting struct {
	*gate
	cli *clientv3.Client
}

func (r reporting) Ctx() context.Context { return r.cli.Ctx() }

// A request that a proxy cancels does not mean a closed client: it is sent again.
//
// Fails if the code counts as the end of the client (rpcerr.ClientClosed).
func TestRequestCanceledByAProxy(t *testing.T) {
	s := newEnv(t)
	g := newGate(s.Client)
	c := s.candidate("v", func(cfg *election.Config) { cfg.KV = reporting{g, s.Client} })
	canceled := make(chan struct{})
	g.on(func(context.Context) error { close(canceled); return errReset }, nil)
	l := s.lead(c)
	get(s, canceled)
	g.on(func(context.Context) error { return errReset }, nil)
	require.NoError(t, l.Resign(s.Ctx))
	require.Empty(t, s.Queue())
}

// A watch stream that a proxy cancels ends no tenure and no campaign: the watch is opened again.
//
// Fails if the same code counts as permanent in internal/watch.
func TestWatchCanceledByAProxy(t *testing.T) {
	s := newEnv(t)
	var kill, killed atomic.Bool
	cli := etcdtest.Shared(t).Client(t, s.Rec.Attach, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				stream, err := open(ctx, desc, cc, method, opts...)
				return &killable{ClientStream: stream, kill: &kill, killed: &killed}, err
			}))
	})
	through := func(cfg *election.Config) { cfg.KV, cfg.Watcher = cli, cli }
	leader, waiter := s.candidate("leader", on(s.session(s.Admin)), through), s.candidate("waiter", on(s.session(s.Admin)), through)
	l := s.lead(leader)
	waiting := s.campaigning(s.Ctx, waiter)
	s.watched(3) // each candidate's own key, and the predecessor's

	kill.Store(true)
	require.NoError(t, l.Proclaim(s.Ctx, []byte("the stream has something to say")))
	s.Until("the stream was cancelled", killed.Load)
	s.watched(6)
	require.NoError(t, l.Err())
	require.Empty(t, waiting)

	// The watches that were opened again receive events.
	require.NoError(t, l.Resign(s.Ctx))
	won := electiontest.Wins(t, waiting)
	s.Remove(waiter.Key())
	require.Error(t, s.over(won.Leadership))
}

// killable is a stream whose next message is lost with the stream.
type killable struct {
	grpc.ClientStream
	kill, killed *atomic.Bool
}

func (k *killable) RecvMsg(m any) error {
	err := k.ClientStream.RecvMsg(m)
	if k.kill.CompareAndSwap(true, false) {
		k.killed.Store(true)
		return errReset
	}
	return err
}
