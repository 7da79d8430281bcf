package curator

import (
	"context"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// trailers counts the answers to a node's calls that say that nothing has begun.
type trailers struct{ refused *atomic.Int64 }

func (t trailers) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InTrailer); ok {
		if served := in.Trailer[servedKey]; len(served) > 0 && !slices.Contains(served, begun) {
			t.refused.Add(1)
		}
	}
}

func (trailers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (trailers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (trailers) HandleConn(context.Context, stats.ConnStats)                       {}

// outgoing counts the messages of a node's calls that are not small.
type outgoing struct {
	trailers
	messages *atomic.Int64
}

func (o outgoing) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok && out.Length > 1000 {
		o.messages.Add(1)
	}
}
