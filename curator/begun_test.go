package curator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 62: what has come to a handler goes nowhere else, however it ends, and however much of
// it the handler has read: it may have been carried out.
//
// Broken by taking whatever a leader refuses for something that has not begun.
func TestRow62BegunCallsStay(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, refuse, late <-chan struct{}) error{
		"with a refusal of its own": func(_ context.Context, refuse, _ <-chan struct{}) error {
			<-refuse
			return status.Error(codes.Unavailable, "the service's own")
		},
		"with its tenure": func(ctx context.Context, _, _ <-chan struct{}) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"when it has been answered": func(_ context.Context, _, late <-chan struct{}) error {
			<-late
			return nil
		},
	} {
		for _, at := range []string{"follower", "follower that knows", "leader"} {
			for _, method := range []string{unaryMethod, serverMethod, bidiMethod} { // serverMethod's reads nothing
				t.Run(fmt.Sprintf("%s ends %s, at the %s", method, name, at), func(t *testing.T) {
					t.Parallel()
					began, refuse, late := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
					begins := func(ctx context.Context) error {
						began <- struct{}{}
						return end(ctx, refuse, late)
					}
					last := newNode(t, "last", func(cfg *Config) { cfg.Grace, cfg.Wait = time.Millisecond, etcdtest.Patience })
					next := newNode(t, "next")
					follower := newNode(t, "follower", func(cfg *Config) { cfg.Grace, cfg.Wait = etcdtest.Patience, etcdtest.Patience })
					tenure := last.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
						return in, begins(ctx)
					}, stream: func(stream grpc.ServerStream) error {
						if called, _ := grpc.MethodFromServerStream(stream); called == bidiMethod {
							if _, err := received(stream); err != nil {
								return err
							}
						}
						return begins(stream.Context())
					}})
					next.leads(8, &script{unary: echo, stream: echoes})
					follower.front.router.follow(last.as(7))
					if at == "follower that knows" {
						p := follower.front.router.Now().peer
						p.unary.learn(unaryMethod)
						seat, err := p.take("the test")
						require.NoError(t, err)
						defer seat.done()
						seat.Connect()
						etcdtest.Eventually(t, func() bool { return seat.GetState().String() == "READY" }, "there is a connection")
					}
					n := follower
					if at == "leader" {
						n = last
					}
					call := n.open(etcdtest.Context(t), method)
					call.send("hello")
					require.NoError(t, call.CloseSend())
					etcdtest.Take(t, began, "the handler")

					follower.front.router.follow(next.as(8))
					close(refuse)
					if name != "with a refusal of its own" {
						last.front.router.leave(tenure, errDeposed)
						last.front.router.follow(next.as(8))
						over := asking(func() error { tenure.finish(errDeposed); return nil })
						defer func() { require.NoError(t, etcdtest.Take(t, over, "the end of the tenure")) }()
					}
					defer close(late)
					err := call.end()
					require.Zero(t, next.calls.Load(), "it was carried out twice")
					require.EqualValues(t, 1, last.calls.Load(), "it was carried out twice")
					require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
				})
			}
		}
	}
}
