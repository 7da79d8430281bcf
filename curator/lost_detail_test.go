package curator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestLostLeadershipOfAnError(t *testing.T) {
	err := refusal{election: "e", token: 7, node: "n", untouched: true, why: "because"}.err()
	for _, err := range []error{err, fmt.Errorf("put: %w", err)} {
		lost, ok := LostLeadership(err, "e")
		require.True(t, ok)
		require.EqualValues(t, 7, lost.GetToken())
		require.True(t, lost.GetNothingApplied())
	}
	for _, err := range []error{nil, errors.New("another"), status.Error(codes.Unavailable, "without details")} {
		_, ok := LostLeadership(err, "e")
		require.False(t, ok)
	}
}

// What another election's curator says is not found under this one's name, also where both
// have said something.
func TestLostLeadershipOfAnElection(t *testing.T) {
	first, ok := status.FromError(refusal{election: "another", token: 9, untouched: true, why: "because"}.err())
	require.True(t, ok)
	_, ok = LostLeadership(first.Err(), "e")
	require.False(t, ok, "of another election")
	both, err := first.WithDetails(&curatorpb.LostLeadership{Election: "e", Token: 7})
	require.NoError(t, err)
	lost, ok := LostLeadership(both.Err(), "e")
	require.True(t, ok)
	require.EqualValues(t, 7, lost.GetToken())
}

// Only these details go: the code, the text and all other details stay.
func TestWithoutLost(t *testing.T) {
	require.NoError(t, withoutLost(nil, anyLost))
	plain := errors.New("plain")
	require.Equal(t, plain, withoutLost(plain, anyLost))
	st, err := status.New(codes.Unavailable, "said").WithDetails(
		wrapperspb.String("kept"), &curatorpb.LostLeadership{Election: "e"}, &curatorpb.LostLeadership{Election: "another"})
	require.NoError(t, err)
	require.Equal(t, st.Err(), withoutLost(st.Err(), func(*curatorpb.LostLeadership) bool { return false }))
	some := status.Convert(withoutLost(st.Err(), func(lost *curatorpb.LostLeadership) bool { return lost.GetElection() != "e" }))
	require.Len(t, some.Details(), 2)
	none := status.Convert(withoutLost(fmt.Errorf("wrapped: %w", st.Err()), anyLost))
	require.Equal(t, codes.Unavailable, none.Code())
	require.Contains(t, none.Message(), "wrapped: ")
	require.Len(t, none.Details(), 1)
	require.Equal(t, "kept", none.Details()[0].(*wrapperspb.StringValue).GetValue())
}

// Row 51: a handler writes, calls a service of another election, which has no leader, and
// returns that error as it is. The client does not send again: something was applied.
func TestRow51AnotherElectionsLossIsNotThisOnes(t *testing.T) {
	another := newNode(t, "another", func(cfg *Config) {
		cfg.Elector.Election = "another"
		cfg.Wait = time.Millisecond
	})
	var written int
	s := &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		written++
		_, err := another.unary(ctx, "")
		return nil, err
	}, stream: func(stream grpc.ServerStream) error {
		written++
		_, err := another.unary(stream.Context(), "")
		return err
	}}
	local := func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), s) }
	}
	everywhere(t, s, func(t *testing.T, n *node) {
		for name, send := range map[string]func() error{
			"unary":         func() error { _, err := n.unary(etcdtest.Context(t), ""); return err },
			"stream":        func() error { return n.open(etcdtest.Context(t), bidiMethod).end() },
			"local, unary":  func() error { return n.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &message{}) },
			"local, stream": func() error { return n.open(etcdtest.Context(t), "/test.Local/Bidi").end() },
		} {
			written = 0
			for range 3 { // a client's loop
				err := send()
				require.Equal(t, codes.Unavailable, status.Code(err), "%s: %v", name, err)
				require.ErrorContains(t, err, `election "another"`, name)
				require.Empty(t, status.Convert(err).Details(), "%s: another request's loss", name)
				if lost, ok := LostLeadership(err, "test"); !ok || !lost.GetNothingApplied() {
					break
				}
			}
			require.Equal(t, 1, written, "%s was applied more than once", name)
		}
	}, local)
}

// Row 51: a call to a service of the same election is another request: its refusal says
// nothing of the one whose handler made it.
func TestRow51LossOfAnotherRequestOfTheSameElection(t *testing.T) {
	idle := newNode(t, "idle", func(cfg *Config) { cfg.Wait = time.Millisecond })
	everywhere(t, &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		_, err := idle.unary(ctx, "")
		return nil, err
	}}, func(t *testing.T, n *node) {
		_, err := n.unary(etcdtest.Context(t), "")
		require.Equal(t, codes.Unavailable, status.Code(err))
		_, ok := LostLeadership(err, "test")
		require.False(t, ok)
	})
}

// Row 51: a leader may still pass on what another election's curator has said, such as one
// of an earlier version; the node that forwarded does not.
func TestRow51AnotherElectionsLossAtTheHop(t *testing.T) {
	var said atomic.Value
	said.Store(refusal{election: "another", token: 9, node: "n", untouched: true, why: "because"}.err())
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
			return said.Load().(error)
		}))
	})
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower")
	follower.front.router.follow(leader.as(7))
	_, err := leader.unary(etcdtest.Context(t), "")
	_, ok := LostLeadership(err, "another")
	require.True(t, ok, "INVALID: the leader has said nothing: %v", err)
	_, err = follower.unary(etcdtest.Context(t), "")
	require.ErrorContains(t, err, "because")
	require.Empty(t, status.Convert(err).Details(), "it passed the hop")
	said.Store(refusal{election: "test", token: 7, node: "n", untouched: true, why: "because"}.err())
	_, err = follower.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied(), "the leader's own")
}
