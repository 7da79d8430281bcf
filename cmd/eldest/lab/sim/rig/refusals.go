package rig

import (
	"context"
	"errors"
	"maps"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// Refusal is a reason for which the server turned a host down: the proof that a fault
// of the server reached somebody.
type Refusal string

// What is counted.
const (
	NoSpace      Refusal = "no space"      // the NOSPACE alarm is up
	InvalidToken Refusal = "invalid token" // of authentication: expired, or unknown since a restart
	Compacted    Refusal = "watch overrun" // a watch asked for what a compaction had taken
	Denied       Refusal = "not permitted" // authentication: of a role that may not
	NoLease      Refusal = "lease is gone" // renewals and registrations of leases that have expired or were revoked
)

var reasons = map[error]Refusal{
	rpctypes.ErrNoSpace:          NoSpace,
	rpctypes.ErrInvalidAuthToken: InvalidToken,
	rpctypes.ErrPermissionDenied: Denied,
	rpctypes.ErrLeaseNotFound:    NoLease,
}

// Refusals returns how often the server refused something, by reason.
func (s *Server) Refusals() map[Refusal]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.refusals)
}

// unary and stream are interceptors inside etcd's own.
func (s *Server) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	s.refused(err)
	return resp, err
}

func (s *Server) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, &countedStream{ss, s})
	s.refused(err)
	return err
}

type countedStream struct {
	grpc.ServerStream
	server *Server
}

// SendMsg counts a refusal that goes out as a message of a watch.
func (s *countedStream) SendMsg(m any) error {
	if resp, ok := m.(*pb.WatchResponse); ok && resp.CompactRevision != 0 {
		s.server.count(Compacted)
	}
	return s.ServerStream.SendMsg(m)
}

// refused counts an error that goes out to a host, if it is one.
func (s *Server) refused(err error) {
	var known rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &known) {
		return
	}
	for reason, why := range reasons {
		if errors.Is(known, reason) {
			s.count(why)
		}
	}
}

func (s *Server) count(why Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[why]++
}
