package bench

import (
	"context"
	"path"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/stats"
)

// wire counts what clients sent and received, by kind. A request that the client repeats by itself
// counts again.
type wire [kinds]int64

const (
	// reads are ranges, and transactions that only read; writes are all other requests that change
	// keys; grants are grants and revocations of leases, renewals their renewals.
	reads = iota
	writes
	grants
	renewals
	// questions are requests to a majority for the member list; requests does not include them.
	questions
	// watches and unwatches are requests to open and to end a watch, streams are the streams that
	// were opened for them, events the watch events.
	watches
	unwatches
	streams
	events
	// called is how many calls have begun, answered is how many have ended, both without streams.
	answered
	called
	kinds
)

// requests is the number of all messages sent: single requests and messages on streams.
func (w wire) requests() int64 {
	return w[reads] + w[writes] + w[grants] + w[renewals] + w[watches] + w[unwatches]
}

// minus returns the counts since before.
func (w wire) minus(before wire) wire {
	for i := range w {
		w[i] -= before[i]
	}
	return w
}

// meter counts for the client whose stats.Handler it is. Its methods may be called from many goroutines.
type meter [kinds]atomic.Int64

// read returns the counts so far. The count of answers is read first, so that no answer is counted
// without its call.
func (m *meter) read() (w wire) {
	w[answered] = m[answered].Load()
	for i := range m {
		if i != answered {
			w[i] = m[i].Load()
		}
	}
	return w
}

// single marks the context of a call that is not a stream.
type single struct{}

// TagRPC counts calls.
func (m *meter) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	switch path.Base(info.FullMethodName) {
	case "Watch":
		m[streams].Add(1)
	case "LeaseKeepAlive":
	default:
		m[called].Add(1)
		ctx = context.WithValue(ctx, single{}, true)
	}
	return ctx
}

// HandleRPC counts messages.
func (m *meter) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.OutPayload:
		if kind := kindOf(s.Payload); kind < kinds {
			m[kind].Add(1)
		}
	case *stats.InPayload:
		if resp, ok := s.Payload.(*pb.WatchResponse); ok {
			m[events].Add(int64(len(resp.Events)))
		}
	case *stats.End:
		if ctx.Value(single{}) != nil {
			m[answered].Add(1)
		}
	}
}

// TagConn and HandleConn do nothing.
func (m *meter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (m *meter) HandleConn(context.Context, stats.ConnStats)                       {}

// kindOf returns the kind of a request, kinds if it is not counted.
func kindOf(request any) int {
	switch r := request.(type) {
	case *pb.RangeRequest:
		return reads
	case *pb.TxnRequest:
		for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
			for _, op := range ops {
				if op.GetRequestRange() == nil {
					return writes
				}
			}
		}
		return reads
	case *pb.PutRequest, *pb.DeleteRangeRequest:
		return writes
	case *pb.MemberListRequest:
		return questions
	case *pb.LeaseGrantRequest, *pb.LeaseRevokeRequest, *pb.LeaseTimeToLiveRequest:
		return grants
	case *pb.LeaseKeepAliveRequest:
		return renewals
	case *pb.WatchRequest:
		switch {
		case r.GetCreateRequest() != nil:
			return watches
		case r.GetCancelRequest() != nil:
			return unwatches
		}
	}
	return kinds
}
