package curator

import (
	"context"
	"crypto/x509"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/eldest-io/eldest"
)

// Forwarded returns, for the context of an incoming call in an interceptor or a handler,
// which node has forwarded the call and for which tenure. ok is false where no node has,
// and where nobody has verified that it was this node: Config.VerifyHop has not been asked
// and the connection has no verified certificate. Forwarded does not block.
func Forwarded(ctx context.Context) (node string, token eldest.Token, ok bool) {
	a := arrived(ctx)
	if !a.verified {
		return "", 0, false
	}
	return a.hop.from, a.hop.token, true
}

// arrival is what is known of an incoming call before any interceptor is called. The zero
// arrival is that of a call that comes from a caller.
type arrival struct {
	hop      hop
	verified bool  // by Config.VerifyHop, or by a certificate
	refused  error // the call goes no further
	// caller is what a node that was verified says of the caller; nil: nothing.
	caller func() *x509.Certificate
}

type arrivalKey struct{}

func arrived(ctx context.Context) arrival {
	a, _ := ctx.Value(arrivalKey{}).(arrival)
	return a
}

// entrance reads the hop of each call that comes to the node, to whichever service, and
// removes it from the metadata. gRPC asks its stats handlers before any interceptor, also
// before one that the user has put first, and they may change the context.
type entrance struct {
	verify func(ctx context.Context, node string) error
}

// options installs the entrance on a server. They come before the user's.
func (e entrance) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StatsHandler(e),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := arrived(ctx).refused; err != nil {
				return nil, err
			}
			return handle(ctx, in)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := arrived(stream.Context()).refused; err != nil {
				return err
			}
			return handle(srv, stream)
		}),
	}
}

// TagRPC is called once for each call; see stats.Handler. It blocks as long as
// Config.VerifyHop does.
func (e entrance) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	var a arrival
	if a.hop, a.refused = hopOf(ctx); a.hop.token > 0 {
		a.verified, a.refused = vouched(ctx, a.hop, e.verify)
	}
	if a.verified {
		a.caller = introduction(ctx)
	}
	ctx = fromCaller(ctx, a.hop)
	if a.hop.token == 0 && a.refused == nil {
		return ctx
	}
	return context.WithValue(ctx, arrivalKey{}, a)
}

// HandleRPC does nothing; see stats.Handler.
func (entrance) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn changes nothing; see stats.Handler.
func (entrance) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing; see stats.Handler.
func (entrance) HandleConn(context.Context, stats.ConnStats) {}
