package curator

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// network is between the nodes: the test can drop everything that is sent over it, or break it.
type network struct {
	mu    sync.Mutex
	conns map[*wire]bool
	dead  atomic.Bool // existing connections drop everything from now on
	gone  atomic.Bool // new connections are broken at once from now on
	late  atomic.Bool // nothing arrives until it is false again
	stuck atomic.Bool // the other ends read nothing until it is false again
	sent  atomic.Int64
	dials atomic.Int64
}

// wire is a connection through the network.
type wire struct {
	net.Conn
	n *network
}

func (n *network) join(cfg *Config) {
	through(func(c net.Conn) net.Conn {
		n.dials.Add(1)
		w := &wire{Conn: c, n: n}
		if n.gone.Load() {
			_ = c.Close()
			return w
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.conns == nil {
			n.conns = make(map[*wire]bool)
		}
		n.conns[w] = true
		return w
	})(cfg)
}

// open is how many connections there are.
func (n *network) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// cut breaks all connections, as the crash of a process does.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.conns {
		_ = w.Conn.Close()
	}
}

// Read drops what arrives over a dead network.
func (w *wire) Read(b []byte) (int, error) {
	for {
		read, err := w.Conn.Read(b)
		for w.n.late.Load() {
			time.Sleep(time.Millisecond)
		}
		if err != nil || !w.n.dead.Load() {
			return read, err
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	for w.n.stuck.Load() {
		time.Sleep(time.Millisecond)
	}
	w.n.sent.Add(int64(len(b)))
	if w.n.dead.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.n.mu.Lock()
	delete(w.n.conns, w)
	w.n.mu.Unlock()
	return w.Conn.Close()
}
