package kv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// everything calls each method once and returns the errors.
func everything(s *env, server *kv.Server) map[string]error {
	_, put := server.Put(s.Ctx, put("late-1", "a", "x"))
	_, appended := server.Append(s.Ctx, &kvpb.AppendRequest{RequestId: "late-2", Key: "a", Value: []byte("x")})
	_, deleted := server.Delete(s.Ctx, &kvpb.DeleteRequest{RequestId: "late-3", Key: "a"})
	_, got := server.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	return map[string]error{"put": put, "append": appended, "delete": deleted, "get": got}
}

// The tenure has ended in etcd, and the leader is not notified of it: its watch receives nothing.
// Only the guard can refuse, and it refuses reads too.
func TestADeposedLeaderIsRefusedByEtcd(t *testing.T) {
	s := newEnv(t)
	l, server := s.leader(s.Admin, func(_ *lease.Config, cfg *election.Config) {
		cfg.Watcher, cfg.WatchCheck = etcdtest.Deaf(s.Admin), time.Hour
	})
	s.put(server, "r1", "a", "1")
	s.Remove(l.Key())
	require.NoError(t, l.Err(), "it believes that it leads")
	before := s.revision()
	for method, err := range everything(s, server) {
		var refused *txn.GuardError
		require.ErrorAs(t, err, &refused, method)
		require.Equal(t, l.Token(), refused.Wanted)
		require.Zero(t, refused.Found)
	}
	require.ErrorIs(t, second(kv.New(s.Ctx, l)), eldest.ErrDeposed)
	require.Equal(t, before, s.revision(), "nothing was applied")
	require.Equal(t, []string{"", "r1"}, s.ids())

	// With a successor too.
	_, next := s.leader(s.Admin)
	s.put(next, "r2", "a", "2")
	before = s.revision()
	for method, err := range everything(s, server) {
		require.ErrorIs(t, err, eldest.ErrDeposed, method)
	}
	require.Equal(t, before, s.revision(), "nothing was applied")
}

// If the tenure has ended at the leader, no request is sent.
func TestAfterTheTenureNothingIsSent(t *testing.T) {
	s := newEnv(t)
	rec := &etcdtest.Recorder{}
	l, server := s.leader(etcdtest.Shared(t).Client(t, rec.Attach))
	require.NoError(t, l.Resign(s.Ctx))
	sent := rec.Count("Txn", "Range", "Put", "DeleteRange")
	for method, err := range everything(s, server) {
		require.ErrorIs(t, err, eldest.ErrNotLeading, method)
		require.ErrorIs(t, err, eldest.ErrResigned, method)
	}
	require.ErrorIs(t, second(kv.New(s.Ctx, l)), eldest.ErrNotLeading)
	require.Equal(t, sent, rec.Count("Txn", "Range", "Put", "DeleteRange"))
}

// A reply is lost: the caller receives that the outcome is unknown, with a code that does not
// invite it to send the request again. The trail shows that the write was applied.
func TestALostReply(t *testing.T) {
	s := newEnv(t)
	host := etcdtest.Shared(t).Host(t)
	_, server := s.leader(host.Client(t))
	swallow := host.SwallowNextReply(etcdtest.Containing("the-value"))
	_, err := server.Put(s.Ctx, put("r1", "a", "the-value"))
	require.NoError(t, swallow.Wait(s.Ctx))
	require.Equal(t, codes.Unknown, status.Code(err))
	require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.Equal(t, []string{"", "r1"}, s.ids())
}

// While etcd does not respond, the caller's deadline and its cancellation keep their codes.
func TestTheCallersOwnEnd(t *testing.T) {
	s := newEnv(t)
	host := etcdtest.Shared(t).Host(t)
	_, server := s.leader(host.Client(t))
	host.Cut()
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	met := make(chan struct{})
	go func() {
		defer close(met)
		defer cancel()
		for host.Stats().Dropped.Inbound == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := server.Put(ctx, put("r1", "a", "1"))
	<-met
	require.Equal(t, codes.Canceled, status.Code(err), "%v", err)
	require.True(t, errors.Is(err, context.Canceled))
	require.Positive(t, host.Stats().Dropped.Inbound, "the fault was met")

	ctx, cancel = context.WithTimeout(s.Ctx, 50*time.Millisecond)
	defer cancel()
	_, err = server.Put(ctx, put("r2", "a", "1"))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	_, err = server.Get(ctx, &kvpb.GetRequest{Key: "a"})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	host.Mend()
	require.NotContains(t, s.ids(), "r1")
}

func second[T any](_ T, err error) error { return err }
