package curator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// peer is the leader of one tenure, as followers reach it: over a few connections that are made
// when calls need them, and one more, the control connection, for heartbeats.
//
// The calls of a caller share a connection while any of them is in flight, so a caller that does
// not read its streams delays only itself.
//
// Invariant: once closed, it has no connection and makes none. While it has a connection for calls,
// it has a control connection, and that is watched.
type peer struct {
	*Curator
	leader elector.Leader

	// dialling is held while a connection is made. That calls Config.PeerCredentials, a function of
	// the user, which must not delay Close.
	dialling sync.Mutex

	mu      sync.Mutex
	links   []*link
	control *link
	shares  map[any]*share // by caller
	closed  error          // the reason, once closed

	// unary has the names of the methods that the leader has marked as unary. It serves them, so
	// their number is bounded.
	unary sync.Map
	// warned: it was logged that this leader cannot be reached.
	warned sync.Once
}

// link is one connection to a leader.
type link struct {
	*grpc.ClientConn
	// calls are those in flight. Their context ends when the connection is aborted.
	calls *routing.Calls
	// sending counts the messages that are being sent. It stays above 0 if a message is delayed: by
	// a handler that does not read, or by what is under way before it.
	sending atomic.Int64
	// impostor is set if the server that was reached last was not the leader.
	impostor atomic.Bool
}

// share is what one caller has in flight on one connection.
type share struct {
	*peer
	link    *link
	caller  any
	calls   int // guarded by the peer's mutex
	sending atomic.Int64
}

// connect makes the peer of a leader. It fails for this node, and for a leader without an address.
func (c *Curator) connect(l elector.Leader) (*peer, error) {
	switch {
	case l.Instance == c.elector.Instance():
		return nil, errors.New("the leader is this node")
	case l.Address == "":
		return nil, errors.New("it has no address")
	}
	return &peer{Curator: c, leader: l}, nil
}

// maxLinks is how many connections a peer has for calls, at most.
const maxLinks = 4

// Leader returns the leader; see routing.Peer.
func (p *peer) Leader() elector.Leader { return p.leader }

// take returns the share for one call of a caller; the call ends with done. It does not block: gRPC
// dials in the background. The error is errNotBegun, with the reason, if the connections were
// closed, or that of an address which cannot be dialled at all.
func (p *peer) take(caller any) (*share, error) {
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err
	}
	p.dialling.Lock()
	defer p.dialling.Unlock()
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err // another call has made the connection
	}
	l, err := p.dial(p.leader)
	if err != nil {
		return nil, err
	}
	var control *link
	if !p.hasControl() {
		if control, err = p.dial(p.leader); err != nil {
			l.abort(err)
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed != nil, p.control == nil && control == nil: // all connections were closed meanwhile
		err := fmt.Errorf("%w: %w", errNotBegun, cmp.Or(p.closed, errAborted))
		l.abort(err)
		if control != nil {
			control.abort(err)
		}
		return nil, err
	case control != nil:
		p.control = control
		p.goroutines.Go(func() { p.beat.watch(p, control) })
		p.goroutines.Go(func() { p.beat.listen(control, func(serves bool) { p.router.Serves(p, serves) }) })
	}
	p.links = append(p.links, l)
	return p.begin(&share{peer: p, link: l, caller: caller}) // now: after a stall it may be closed before any call uses it
}

func (p *peer) hasControl() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.control != nil
}

// present returns a share of an existing connection; nil if a connection must be made.
func (p *peer) present(caller any) (*share, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, p.closed)
	}
	p.links = slices.DeleteFunc(p.links, (*link).aborted)
	mine := p.shares[caller]
	if mine != nil && !mine.link.aborted() && mine.link.sending.Load() <= mine.sending.Load() {
		return p.begin(mine)
	}
	var best *link
	for _, l := range p.links {
		if best == nil || l.load() < best.load() {
			best = l
		}
	}
	if best == nil || best.load() > 0 && len(p.links) < maxLinks {
		return nil, nil //nolint:nilnil // there is none
	}
	return p.begin(&share{peer: p, link: best, caller: caller})
}

var errAborted = errors.New("the connection was closed")

// begin begins a call of a caller. mu must be held.
func (p *peer) begin(s *share) (*share, error) {
	if err := s.link.calls.Begin(true); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, err)
	}
	if p.shares == nil {
		p.shares = make(map[any]*share)
	}
	p.shares[s.caller] = s
	s.calls++
	return s, nil
}

// done ends a call.
func (s *share) done() {
	s.mu.Lock()
	if s.calls--; s.calls == 0 && s.shares[s.caller] == s {
		delete(s.shares, s.caller)
	}
	s.mu.Unlock()
	s.link.calls.End(true)
}

// send sends a message, and counts it while it is being sent.
func (s *share) send(there interface{ SendMsg(m any) error }, f *rawframe.Frame) error {
	s.link.sending.Add(1)
	s.sending.Add(1)
	defer s.link.sending.Add(-1)
	defer s.sending.Add(-1)
	return there.SendMsg(f)
}

// busy reports whether any call is in flight.
func (p *peer) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.links, func(l *link) bool { return l.calls.Running() > 0 })
}

// abort closes all connections, and calls in flight there end. The next call makes new ones.
func (p *peer) abort(reason error) {
	p.mu.Lock()
	links := p.links
	if p.control != nil {
		links = append(links, p.control)
	}
	p.links, p.control = nil, nil
	p.mu.Unlock()
	for _, l := range links {
		l.abort(reason)
	}
}

// Close closes the connections for good: each when its last call has ended, after the linger at the
// latest. A leader that resigned has just answered its last calls, and the next leader may become
// known before these answers arrive. If only the leader's address has changed, it still serves these
// calls, and they continue until Close is called again, with another reason.
func (p *peer) Close(reason error) {
	linger := p.cfg.Grace
	if errors.Is(reason, routing.ErrMoved) {
		linger = math.MaxInt64
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = reason
	}
	for _, l := range p.links {
		p.goroutines.Go(func() {
			l.calls.Drain(context.Background(), linger)
			l.abort(reason)
		})
	}
	if p.control != nil {
		p.control.abort(reason)
	}
}

// abort closes the connection in the background, and calls in flight there end. Only the first
// reason counts. It does not block: if the other end does not read, closing takes gRPC seconds.
func (l *link) abort(reason error) { l.calls.Cancel(reason) }

// aborted reports whether abort was called.
func (l *link) aborted() bool { return l.calls.Cause() != nil }

// load compares connections: fewer calls are better, and any number of calls is better than one
// message that is delayed.
func (l *link) load() int {
	if l.sending.Load() > 0 {
		return l.calls.Running() + math.MaxInt32
	}
	return l.calls.Running()
}

// The timing of a connection between two nodes.
const (
	// pingEvery is the shortest interval that gRPC's client allows; hence the additional heartbeat.
	pingEvery   = 10 * time.Second
	pingTimeout = 3 * time.Second
	// pingLimit is the shortest interval that the server allows; it ends connections that ping more
	// often.
	pingLimit = 5 * time.Second
	// The backoff and the timeout for dialling a leader; calls fail meanwhile.
	dialFirst, dialLimit, dialTimeout = 50 * time.Millisecond, time.Second, 5 * time.Second
)

// How many bytes may be under way to a receiver that does not read, on a stream and on all of a
// connection. They are fixed because gRPC otherwise measures each connection with a ping for every
// message, which costs a short forwarded call a quarter of its time.
const (
	streamWindow = 512 << 10
	connWindow   = 4 << 20
)

var errNoCredentials = errors.New("Config.PeerCredentials returned no credentials for the leader")

// secured returns an error unless options include credentials, which may be insecure ones. It does
// not dial.
func secured(options []grpc.DialOption) error {
	conn, err := grpc.NewClient("passthrough:///leader", options...)
	if err != nil {
		return err // gRPC requires credentials, too
	}
	return conn.Close()
}

// dial makes a connection to a leader; gRPC dials in the background.
//
// No limits of calls are set here, because the caller and the service set them. Retries of gRPC are
// disabled: a call that may have reached the leader may have been carried out.
//
// If a listener has credentials, there is no plain text by default: without credentials a
// connection is not made.
func (c *Curator) dial(to elector.Leader) (*link, error) {
	options := []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: dialFirst, Multiplier: 1.6, Jitter: 0.2, MaxDelay: dialLimit},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt), grpc.MaxCallSendMsgSize(math.MaxInt)),
	}
	if !c.cfg.secure() {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials())) // unless others are set
	}
	options = append(options, c.cfg.PeerOptions...)
	l := &link{calls: routing.NewCalls(context.Background(), routing.Never)}
	if c.cfg.PeerCredentials != nil {
		transport := c.cfg.PeerCredentials(to)
		if transport == nil {
			return nil, errNoCredentials
		}
		options = append(options, grpc.WithTransportCredentials(verifying{transport, &l.impostor}))
	}
	var err error
	if l.ClientConn, err = grpc.NewClient(to.Address, options...); err != nil {
		return nil, err
	}
	c.goroutines.Go(func() {
		<-l.calls.Context().Done()
		_ = l.Close()
	})
	return l, nil
}

// verifying is credentials that record whether the server that was reached is not the leader. gRPC
// reports that the connection could not be made, but not why; a call waits for a leader that does
// not respond, but not for another server.
type verifying struct {
	credentials.TransportCredentials
	impostor *atomic.Bool
}

// ClientHandshake does the handshake of the wrapped credentials.
func (v verifying) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := v.TransportCredentials.ClientHandshake(ctx, authority, conn)
	var wrong *tls.CertificateVerificationError
	v.impostor.Store(errors.As(err, &wrong))
	return secured, info, err
}

// Clone returns a copy that records to the same place.
func (v verifying) Clone() credentials.TransportCredentials {
	return verifying{v.TransportCredentials.Clone(), v.impostor}
}
