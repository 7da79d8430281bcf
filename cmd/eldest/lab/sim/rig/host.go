package rig

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Host is one machine: a name, a network towards the server and a client. All
// methods are safe for concurrent use.
type Host struct {
	Name   string
	Client *clientv3.Client

	world *World

	held, late, starved, resent atomic.Int64 // see Effects

	mu      sync.Mutex
	out, in weather
	trip    time.Duration   // normal delay of each direction
	conns   map[*conn]*conn // client's end to server's end, while the client's is open
	ends    map[*conn]bool  // server's ends that are open
	changed chan struct{}   // closed and renewed at each change of the conditions
	hurried chan struct{}   // the same, at each Hurry
	torn    chan struct{}   // the same, when connections break
	traps   []*Trap
	hunger  time.Duration // longest wait for a processor; 0: no wait
	dice    *rand.Rand    // for hunger
	fed     chan struct{} // closed when it no longer starves
	luck    *rand.Rand    // for losses of packets
	frozen  bool
	killed  bool
}

// Host adds a host with a connected client. Dialling is lazy, as always in clientv3: a host can be
// made while the server is down, unless authentication is on: then a client first requests a token.
func (w *World) Host(name string) *Host {
	h := &Host{
		Name: name, world: w, conns: map[*conn]*conn{}, ends: map[*conn]bool{},
		changed: make(chan struct{}), hurried: make(chan struct{}), torn: make(chan struct{}),
	}
	w.Server.admit(h)
	cfg := clientv3.Config{
		Endpoints:   []string{"etcd:2379"},
		Logger:      zap.NewNop(),
		DialOptions: append(h.steps(), grpc.WithContextDialer(h.dial)),
	}
	if w.with.Tokens > 0 {
		if cfg.Username, cfg.Password = participant, password; name == Admin {
			cfg.Username = root
		}
	}
	var err error
	h.Client, err = clientv3.New(cfg)
	require.NoError(w.T, err)
	return h
}

// weather is the condition of one direction of a host's network.
type weather struct {
	delay time.Duration // added to each write, order kept
	trip  time.Duration // the part of the delay that is always there
	held  bool          // nothing arrives until it is released; nothing is lost
	loss  float64       // probability that a packet must be retransmitted
	dead  bool          // the host is dead: nothing arrives, ever
}

// Way is a direction of a host's network, seen from the host.
type Way uint8

// The directions a condition can apply to.
const (
	Out  Way = 1 << iota // host to server: requests
	In                   // server to host: replies and events
	Both = Out | In
)

func (w Way) String() string { return [...]string{"", "out", "in", "both"}[w] }

// dial connects to the server through the host's network; a handshake needs both directions, so a
// cut of either blocks it until the cut heals or ctx ends.
func (h *Host) dial(ctx context.Context, _ string) (net.Conn, error) {
	for {
		h.mu.Lock()
		blocked := h.out.held || h.in.held || h.frozen || h.killed
		trip, changed, hurried := h.out.delay+h.in.delay, h.changed, h.hurried
		h.mu.Unlock()
		var there <-chan time.Time
		if !blocked {
			timer := time.NewTimer(trip)
			defer timer.Stop()
			there, changed = timer.C, nil // a handshake in flight keeps the delay that it began with
		}
		select {
		case <-there:
			return h.connect(ctx)
		case <-changed:
		case <-hurried:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// connect makes the two ends and hands one to the server.
func (h *Host) connect(ctx context.Context) (net.Conn, error) {
	l := h.world.Server.front()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	up, down := newLink(h, Out), newLink(h, In)
	client := &conn{in: down, out: up, local: addr(h.Name), remote: "etcd"}
	server := &conn{in: up, out: down, local: "etcd", remote: addr(h.Name)}
	client.closed = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.conns, client)
	}
	server.closed = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.ends, server)
	}
	h.mu.Lock()
	h.conns[client], h.ends[server] = server, true
	h.mu.Unlock()
	select {
	case l.conn <- server:
		return client, nil
	case <-l.done:
		_, _ = client.Close(), server.Close()
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		_, _ = client.Close(), server.Close()
		return nil, ctx.Err()
	}
}

// hangUp closes the server's end of the host's connections.
func (h *Host) hangUp() {
	h.mu.Lock()
	h.tearLocked()
	ends := slices.Collect(maps.Keys(h.ends))
	h.mu.Unlock()
	for _, server := range ends {
		_ = server.Close() // reads the host's conditions
	}
}

// untilTorn returns a channel that is closed when the host's connections break.
func (h *Host) untilTorn() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.torn
}

func (h *Host) tearLocked() {
	close(h.torn)
	h.torn = make(chan struct{})
}

func (h *Host) weather(way Way) weather {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.in
	if way == Out {
		w = h.out
	}
	w.trip = h.trip
	w.held = w.held || h.frozen
	return w
}
