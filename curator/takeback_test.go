package curator

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// atPayload calls a function when a message that is not small has been sent, before the
// sender goes on.
type atPayload struct {
	trailers
	do func()
}

func (a atPayload) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok && out.Length > 1000 {
		a.do()
	}
}

// Row 62: a message that is still being sent when the leader refuses the call goes to the
// next leader with all those before it.
//
// Broken by taking such a message for proof that the call had begun, when it already waited for
// the next leader: what had been said by then was gone, and the rest went there without it.
func TestRow62RefusedWhileItSends(t *testing.T) {
	said := []string{strings.Repeat("1", replayed/2), strings.Repeat("2", replayed/2+1), strings.Repeat("3", replayed/2)}
	left, waits := make(chan struct{}), make(chan struct{})
	last, next := newNode(t, "last", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StaticStreamWindowSize(4*streamWindow), grpc.StaticConnWindowSize(8*streamWindow))
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if info.FullMethod == bidiMethod {
				<-left
			}
			return handler(srv, stream)
		}))
	}), newNode(t, "next")
	s := &script{stream: echoes}
	last.lame(t, s)
	var messages atomic.Int64
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = etcdtest.Patience
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(atPayload{do: func() {
			if messages.Add(1) == int64(len(said)) {
				close(left)
				<-waits
			}
		}}))
	})
	// The second attempt comes when the first one has gone on.
	follower.front.lookAgain = func(int) time.Duration { return time.Hour }
	follower.front.router.follow(last.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	for _, message := range said {
		stream.send(message)
	}
	etcdtest.Eventually(t, func() bool { calls, _ := follower.front.lobby.load(); return calls == 1 }, "it waits")
	close(waits)
	time.Sleep(50 * time.Millisecond) // the first attempt goes on
	next.leads(8, s)
	follower.front.router.follow(next.as(8))
	require.NoError(t, stream.CloseSend())
	for i, message := range said {
		got, err := stream.receive()
		require.NoError(t, err)
		require.True(t, got == message, "message %d is lost", i)
	}
	require.NoError(t, stream.end())
}

// Row 62: a tenure that ends as a unary call comes to it takes nothing from the next one: what
// waits for the message there does not begin behind the call's back.
func TestRow62WaitForAMessageIsOver(t *testing.T) {
	var n *node
	kept := make(chan bool, 1)
	n = newNode(t, "n", func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(_ any, stream grpc.ServerStream, info *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			ended := newTenure(stream.Context(), "test", 7, func() bool { return true })
			ended.cancel(errDeposed)
			v := visit{front: n.front, caller: &replay{ServerStream: stream, lobby: n.front.lobby}, progress: n.front.traffic.begin(info.FullMethod, hop{}, Hooks{})}
			defer v.caller.drop()
			if err := v.arrive(ended); err == nil {
				return err
			}
			said := v.caller.again()
			time.Sleep(time.Millisecond)
			v.caller.mu.Lock()
			defer v.caller.mu.Unlock()
			kept <- v.caller.reader == said
			return nil
		}))
	})
	for range 100 {
		call := n.open(etcdtest.Context(t), unaryMethod)
		require.True(t, etcdtest.Take(t, kept, "the next attempt"), "the reading of the next attempt was ended by the last one")
		_ = call.end()
	}
}
