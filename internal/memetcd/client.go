package memetcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Link is the connection of one client. While it is interrupted, requests wait for their contexts'
// end or for the link, and watches receive nothing, as in a network that loses everything.
type Link struct {
	etcd *Etcd

	mu sync.Mutex
	up chan struct{} // closed unless the link is interrupted
}

// Client returns a client, which the caller closes, and its link.
func (e *Etcd) Client() (*clientv3.Client, *Link) {
	l := &Link{etcd: e, up: make(chan struct{})}
	close(l.up)
	c := clientv3.NewCtxClient(context.Background())
	s := server{link: l}
	c.KV = clientv3.NewKVFromKVClient(s, c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(s, c, 5*time.Second)
	c.Watcher = newWatcher(l)
	c.Cluster = clientv3.NewClusterFromClusterClient(s, c)
	return c, l
}

// Interrupt interrupts the link. What was carried out before stays.
func (l *Link) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.up:
		l.up = make(chan struct{})
	default:
	}
}

// Restore ends an interruption.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.up:
	default:
		close(l.up)
	}
}

// state returns a channel that is closed unless the link is interrupted.
func (l *Link) state() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// wait blocks while the link is interrupted, until ctx ends.
func (l *Link) wait(ctx context.Context) error {
	if ctx.Err() == nil {
		select {
		case <-l.state():
			return nil
		case <-ctx.Done():
		}
	}
	return status.FromContextError(ctx.Err()).Err()
}

// send carries out a request, with the mutex of etcd.
func send[Q, R any](ctx context.Context, l *Link, request Q, carryOut func(*Etcd, Q) (R, error)) (none R, err error) {
	if err := l.wait(ctx); err != nil {
		return none, err
	}
	e := l.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.end()
	return carryOut(e, request)
}

// server has the services for keys, leases and members. The embedded interfaces have the methods that
// newer clients add: they are not implemented.
type server struct {
	pb.KVClient
	pb.LeaseClient
	pb.ClusterClient
	link *Link
}

func (s server) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return send(ctx, s.link, r, (*Etcd).get)
}

func (s server) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return send(ctx, s.link, r, (*Etcd).put)
}

func (s server) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return send(ctx, s.link, r, (*Etcd).remove)
}

func (s server) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return send(ctx, s.link, r, (*Etcd).txn)
}

func (s server) Compact(context.Context, *pb.CompactionRequest, ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return nil, status.Error(codes.Unimplemented, "an etcd in memory is not compacted")
}

func (s server) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	return send(ctx, s.link, r, (*Etcd).grant)
}

func (s server) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	return send(ctx, s.link, r, (*Etcd).revoke)
}

func (s server) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption) (*pb.LeaseTimeToLiveResponse, error) {
	return send(ctx, s.link, r, (*Etcd).timeToLive)
}

func (s server) LeaseLeases(ctx context.Context, r *pb.LeaseLeasesRequest, _ ...grpc.CallOption) (*pb.LeaseLeasesResponse, error) {
	return send(ctx, s.link, r, (*Etcd).list)
}

func (s server) LeaseKeepAlive(ctx context.Context, _ ...grpc.CallOption) (pb.Lease_LeaseKeepAliveClient, error) {
	return &renewals{ctx: ctx, link: s.link, sent: make(chan *pb.LeaseKeepAliveRequest, 64)}, nil
}

// MemberList returns one member.
func (s server) MemberList(ctx context.Context, r *pb.MemberListRequest, _ ...grpc.CallOption) (*pb.MemberListResponse, error) {
	return send(ctx, s.link, r, func(e *Etcd, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
		h := e.header()
		return &pb.MemberListResponse{Header: h, Members: []*pb.Member{{ID: h.MemberId, Name: "memory"}}}, nil
	})
}

// renewals is a stream of renewals.
type renewals struct {
	grpc.ClientStream
	ctx  context.Context //nolint:containedctx // the stream's life
	link *Link
	sent chan *pb.LeaseKeepAliveRequest
}

func (s *renewals) Send(r *pb.LeaseKeepAliveRequest) error {
	select {
	case s.sent <- r:
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s *renewals) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case r := <-s.sent:
		return send(s.ctx, s.link, r, (*Etcd).renew)
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s *renewals) CloseSend() error         { return nil }
func (s *renewals) Context() context.Context { return s.ctx }
