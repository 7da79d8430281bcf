package rig

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// hostOf tells which host a request came from.
func (s *Server) hostOf(ctx context.Context) *Host {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[p.Addr.String()]
}

// unary runs inside etcd's own interceptors: the handler has committed when it
// returns, and only the reply is lost.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	s.requests.Add(1)
	if err != nil {
		s.refused(err)
	}
	if h := s.hostOf(ctx); h != nil && err == nil {
		if l := h.lossFor(info.FullMethod, req); l != nil {
			return nil, l.strike(ctx)
		}
	}
	return resp, err
}

// stream does the same for streams of replies, of which lease renewal is the
// one that matters.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if h := s.hostOf(ss.Context()); h != nil {
		ss = &lossyStream{ServerStream: ss, host: h, method: info.FullMethod}
	}
	err := handler(srv, ss)
	if err != nil {
		s.refused(err)
	}
	return err
}

type lossyStream struct {
	grpc.ServerStream
	host   *Host
	method string
}

// SendMsg drops the message of a matching loss and keeps the stream open.
func (s *lossyStream) SendMsg(m any) error {
	l := s.host.lossFor(s.method, m)
	if l == nil {
		s.host.world.Server.told(m)
		return s.ServerStream.SendMsg(m)
	}
	l.hit()
	return nil
}
