package raftpeer

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// stream is a raft.StreamLayer over a participant's network. Unlike the transport that uses it, it closes all
// connections when it is closed.
type stream struct {
	net.Listener
	network peer.Network
	open    context.Context
	close   context.CancelFunc

	mu    sync.Mutex
	conns map[*streamConn]struct{} // nil when it is closed
}

func newStream(network peer.Network) (*stream, error) {
	l, err := network.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &stream{Listener: l, network: network, conns: map[*streamConn]struct{}{}}
	s.open, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Dial opens a connection to another voter.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.open, timeout)
	defer cancel()
	c, err := s.network.Dial(ctx, "tcp", string(address))
	if err != nil {
		return nil, err
	}
	return s.add(c)
}

// Accept accepts a connection of another voter.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.add(c)
}

func (s *stream) add(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = c.Close() // nothing was sent
		return nil, net.ErrClosed
	}
	added := &streamConn{c, s}
	s.conns[added] = struct{}{}
	return added, nil
}

// Close closes the listener and all connections.
func (s *stream) Close() error {
	s.close()
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close() // their users notice
	}
	return s.Listener.Close()
}

type streamConn struct {
	net.Conn
	stream *stream
}

func (c *streamConn) Close() error {
	c.stream.mu.Lock()
	delete(c.stream.conns, c)
	c.stream.mu.Unlock()
	return c.Conn.Close()
}

// direct is the network of the extra voter: no faults, nothing is counted.
type direct struct{}

func (direct) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (direct) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }
