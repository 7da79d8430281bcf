package curator

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
)

// self is what a node says of itself beside its status. It does not change.
type self struct{ election, node, instance, address string }

// statuses is where a node's status is read: an elector, or a curator.
type statuses interface {
	Status() elector.Status
	Watch() *elector.Watch
}

// announce registers the Curator service, which tells callers who leads. It answers
// for this node and is never forwarded. Its streams end with ctx, so that a server can
// stop gracefully although nobody hangs up; they live on the server's goroutines.
func announce(ctx context.Context, r grpc.ServiceRegistrar, me self, s statuses) {
	curatorpb.RegisterCuratorServer(r, &announcer{life: life{ctx}, me: me, statuses: s})
}

type announcer struct {
	curatorpb.UnimplementedCuratorServer
	life     life
	me       self
	statuses statuses
}

// CurrentLeader tells the status at once and after each change. A caller who reads
// slowly is told the newest; flow control holds up nobody but this stream.
func (a *announcer) CurrentLeader(_ *curatorpb.CurrentLeaderRequest, stream grpc.ServerStreamingServer[curatorpb.CurrentLeaderResponse]) error {
	ctx, stop := a.life.bound(stream.Context())
	defer stop()
	watch := a.statuses.Watch()
	var told *curatorpb.CurrentLeaderResponse
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return a.life.end(stream.Context())
		}
		// The status at this moment, not as it was published: in a process that was
		// stopped, the tenure may be over.
		tell := a.me.response(s)
		if proto.Equal(tell, told) {
			continue
		}
		if err := stream.Send(tell); err != nil {
			return err
		}
		told = tell
	}
}

// response says what a status is, for a caller.
func (me self) response(s elector.Status) *curatorpb.CurrentLeaderResponse {
	r := &curatorpb.CurrentLeaderResponse{
		Election: text(me.election), ThisNodeId: text(me.node), ThisInstanceId: text(me.instance),
	}
	if _, token, ok := s.Own(); ok {
		r.Role, r.Token = curatorpb.CurrentLeaderResponse_ROLE_LEADING, int64(token)
		r.LeaderNodeId, r.LeaderInstanceId, r.LeaderAddress = text(me.node), text(me.instance), text(me.address)
	} else if leader, ok := s.Leader(); ok {
		r.Role, r.Token = curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING, int64(leader.Token)
		r.LeaderNodeId, r.LeaderInstanceId, r.LeaderAddress = text(leader.NodeID), text(leader.Instance), text(leader.Address)
	} else if reason := s.Reason(); reason != nil {
		r.Reason = text(reason.Error())
	}
	return r
}

// text makes a message's text of what a codec of the user's, or etcd, came up with: one
// byte that is not UTF-8 would make the whole message impossible to send.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// life is for how long a node answers. Streams that wait for news must not outlive it.
type life struct {
	ctx context.Context
}

func (l life) over() bool { return l.ctx.Err() != nil }

// bound returns a stream's context that ends with the node's life as well, and what
// releases it.
func (l life) bound(caller context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(caller)
	release := context.AfterFunc(l.ctx, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// end says with which status a stream ends: the caller's own end is the caller's.
func (l life) end(caller context.Context) error {
	if l.over() && caller.Err() == nil {
		return status.Error(codes.Unavailable, "this node is stopping; can be retried at another one")
	}
	return status.FromContextError(caller.Err()).Err()
}
