package peers

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Network makes the connections of a participant, counts what they write, and can be cut. It is a
// peer.Network. NewNetwork makes one; it must be closed.
//
// While it is cut, its sockets receive nothing and acknowledge nothing, and what is written is kept, as
// a kernel keeps what cannot be delivered. No read or write fails, except by its own deadline. A
// connection that is closed while the network is cut is closed for its user at once, and for the other side
// when the network is healed: no FIN can leave.
type Network struct {
	writes, bytes atomic.Int64
	flushes       sync.WaitGroup

	mu sync.Mutex
	// up is closed while the network is not cut.
	up chan struct{}
	// down means that the network is cut; closed that it was closed.
	down, closed bool
	sockets      map[socket]struct{}
}

// socket is an open connection or listener.
type socket interface {
	// control gives access to the system's socket.
	control() syscall.Conn
	// healed is called, with the network's lock, when the network has been healed. It does not block.
	healed()
	// abandon closes the socket.
	abandon()
}

// NewNetwork returns a network that is not cut.
func NewNetwork() *Network {
	up := make(chan struct{})
	close(up)
	return &Network{up: up, sockets: map[socket]struct{}{}}
}

// Counts returns how many writes to sockets, and how many bytes, there were until now.
func (n *Network) Counts() (writes, bytes int64) { return n.writes.Load(), n.bytes.Load() }

// Cut cuts the network. It returns an error that wraps errors.ErrUnsupported on systems where the kernel
// cannot be prevented from acknowledging.
func (n *Network) Cut() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil
	}
	n.down, n.up = true, make(chan struct{})
	var failed []error
	for s := range n.sockets {
		failed = append(failed, mute(s, true))
	}
	return errors.Join(failed...)
}

// Heal restores the network. What was written meanwhile is sent.
func (n *Network) Heal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down {
		return nil
	}
	n.down = false
	close(n.up)
	var failed []error
	for s := range n.sockets {
		failed = append(failed, mute(s, false))
		s.healed()
	}
	return errors.Join(failed...)
}

// Close closes all connections and listeners, and waits for what the network does.
func (n *Network) Close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		for s := range n.sockets {
			s.abandon()
			delete(n.sockets, s)
		}
		if n.down {
			close(n.up) // nothing waits any more
		}
		n.down = false
	}
	n.mu.Unlock()
	n.flushes.Wait()
}

// Dial opens a connection. While the network is cut it blocks, until ctx ends.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: context.Cause(ctx)}
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return n.track(c)
}

// Listen listens on an address of this machine.
func (n *Network) Listen(address string) (net.Listener, error) {
	// Go's listeners are multipath TCP by default, whose sockets take no filter.
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	tracked := &listener{TCPListener: l.(*net.TCPListener), network: n}
	if err := n.add(tracked); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tracked, nil
}

// track makes a connection part of the network.
func (n *Network) track(c net.Conn) (net.Conn, error) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.Join(errors.New("not a connection of the operating system"), c.Close())
	}
	tracked := &conn{Conn: c, socket: tcp, network: n}
	if err := n.add(tracked); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return tracked, nil
}

// add adds a socket, in the state in which the network is.
func (n *Network) add(s socket) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	if n.down {
		if err := mute(s, true); err != nil {
			return err
		}
	}
	n.sockets[s] = struct{}{}
	return nil
}

// forget takes a socket out of the network, unless that is cut: then it reports false.
func (n *Network) forget(s socket) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down {
		delete(n.sockets, s)
	}
	return !n.down
}

// isDown reports whether the network is cut.
func (n *Network) isDown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

// mute installs or removes the filter of a socket that drops everything.
func mute(s socket, silent bool) error {
	raw, err := s.control().SyscallConn()
	if err != nil {
		return err
	}
	var result error
	_ = raw.Control(func(fd uintptr) { result = filter(int(fd), silent) }) // it fails if the socket is closed
	return result
}

// listener is a listener of a network.
type listener struct {
	*net.TCPListener
	network *Network
}

// Accept accepts a connection. None is opened while the network is cut: the request is dropped.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err != nil {
		return nil, err
	}
	return l.network.track(c)
}

func (l *listener) Close() error {
	l.network.forget(l)
	return l.TCPListener.Close()
}

func (l *listener) control() syscall.Conn { return l.TCPListener }

func (l *listener) healed() {}

func (l *listener) abandon() { _ = l.TCPListener.Close() }
