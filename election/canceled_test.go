package election_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// errReset is how gRPC shows that a proxy between client and etcd has given up a
// stream. A client that was closed has the same code.
var errReset = status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")

// telling is a KV that tells, as a *clientv3.Client does, whether it was closed.
type telling struct {
	*gate
	cli *clientv3.Client
}

func (t telling) Ctx() context.Context { return t.cli.Ctx() }

// A request that a proxy cancels is no closed client: the campaign goes on.
//
// Broken by taking the code for the end of the client (rpcerr.ClientClosed).
func TestRequestCanceledByAProxy(t *testing.T) {
	s := newStage(t)
	g := newGate(s.Client)
	c := s.candidate("v", func(cfg *election.Config) { cfg.KV = telling{g, s.Client} })
	met := make(chan struct{})
	g.on(func(context.Context) error { close(met); return errReset }, nil)
	l := s.lead(c)
	get(s, met)

	g.on(func(context.Context) error { return errReset }, nil)
	require.NoError(t, l.Resign(s.Ctx))
	require.Empty(t, s.Queue())
}

// A watch stream that a proxy cancels deposes nobody and ends nobody's waiting: the
// watch is opened anew.
//
// Broken by the same code counting as permanent in internal/watch.
func TestWatchCanceledByAProxy(t *testing.T) {
	s := newStage(t)
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
	s.watched(3) // the own key of each, and the predecessor's

	kill.Store(true)
	require.NoError(t, l.Proclaim(s.Ctx, []byte("the stream has something to say")))
	s.Until("the stream was cancelled", killed.Load)
	s.watched(6)
	require.NoError(t, l.Err())
	require.Empty(t, waiting)

	// And what was opened anew does its work.
	require.NoError(t, l.Resign(s.Ctx))
	won := get(s, waiting)
	require.NoError(t, won.err)
	s.Remove(waiter.Key())
	require.Error(t, s.over(won.l))
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
