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

// peer is the leader of one tenure, as the others reach it: over a few connections that are
// made when calls need them, and one more, the control connection, for heartbeats.
//
// A caller's calls share a connection while any of them is in flight, so that one whose
// streams are not read holds up itself and not all others.
//
// Invariant: once closed, it has no connection and makes none. While it has one for calls it has a control connection, and
// that is watched.
type peer struct {
	leader elector.Leader
	linger time.Duration
	dial   func(elector.Leader) (*link, error)
	// watch watches the leader over the control connection, until that is given up. It does not block.
	watch func(p *peer, control *link)
	// goroutines are those that close connections.
	goroutines *sync.WaitGroup

	// dialling is held while a connection is made. That asks the user for credentials, which
	// must not hold up the end of the peer.
	dialling sync.Mutex

	mu      sync.Mutex
	links   []*link
	control *link
	shares  map[any]*share // by caller
	closed  error          // why

	// unary are the names of the methods that the leader has marked as unary. It serves
	// them, so their number is bounded.
	unary sync.Map
	// warned: it was logged that this leader cannot be reached.
	warned sync.Once
}

// link is one connection to a leader.
type link struct {
	*grpc.ClientConn
	// calls are those in flight. Their context ends when the connection is given up.
	calls *routing.Calls
	// sending counts the messages that are being sent. One that stays long is held up: by a
	// handler that does not read, or by what is under way before it.
	sending atomic.Int64
	// impostor: the server that was reached last was not the leader.
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

// maxLinks is how many connections a peer has for calls, at most.
const maxLinks = 4

// Leader returns who it is.
func (p *peer) Leader() elector.Leader { return p.leader }

// take returns a place for one call of a caller, which ends with done. It does
// not block: gRPC dials behind it. The error is errNotBegun, with the reason, if the connections were closed, or that of
// an address which cannot be dialled at all.
func (p *peer) take(caller any) (*share, error) {
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err
	}
	p.dialling.Lock()
	defer p.dialling.Unlock()
	if s, err := p.present(caller); s != nil || err != nil {
		return s, err // another call was quicker
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
	case p.closed != nil, p.control == nil && control == nil: // all were given up in this moment
		err := fmt.Errorf("%w: %w", errNotBegun, cmp.Or(p.closed, errAborted))
		l.abort(err)
		if control != nil {
			control.abort(err)
		}
		return nil, err
	case control != nil:
		p.control = control
		p.watch(p, control)
	}
	p.links = append(p.links, l)
	return p.begin(&share{peer: p, link: l, caller: caller}) // now: after a stall it may be given up before any call uses it
}

func (p *peer) hasControl() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.control != nil
}

// present finds a place on the connections that there are; nil if one is to be made.
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

// begin begins a call of a caller. The caller of this holds mu.
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

// send sends a message, and notes that it is being sent.
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

// Close gives the connections up, for good: each when the last call there has ended, after
// the linger at the latest. A leader that resigned has just answered its last calls, and the
// news of the next one may be quicker than the answers.
func (p *peer) Close(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = reason
	}
	for _, l := range p.links {
		p.goroutines.Go(func() {
			l.calls.Drain(p.linger)
			l.abort(reason)
		})
	}
	if p.control != nil {
		p.control.abort(reason)
	}
}

// abort has the connection closed, and calls in flight there end. Only the first reason
// counts. It does not block: where the other end does not read, closing takes gRPC seconds.
func (l *link) abort(reason error) { l.calls.Cancel(reason) }

// aborted reports whether the connection was given up.
func (l *link) aborted() bool { return l.calls.Cause() != nil }

// load compares connections: fewer calls are better, and any number of them is better than
// one message that is held up.
func (l *link) load() int {
	if l.sending.Load() > 0 {
		return l.calls.Running() + math.MaxInt32
	}
	return l.calls.Running()
}

// The pace of a connection between two nodes.
const (
	// pingEvery is the least that gRPC's client allows; hence the heartbeat beside it.
	pingEvery   = 10 * time.Second
	pingTimeout = 3 * time.Second
	// pingLimit is what the server allows; it ends connections that ping more often.
	pingLimit = 5 * time.Second
	// A leader that cannot be dialled is tried again this often: calls fail meanwhile.
	dialFirst, dialLimit, dialTimeout = 50 * time.Millisecond, time.Second, 5 * time.Second
)

// How much may be under way to a reader who does not read, on a stream and on all of a
// connection. They are fixed because gRPC otherwise measures each connection with a ping
// for every message, which costs a short forwarded call a quarter of its time.
const (
	streamWindow = 512 << 10
	connWindow   = 4 << 20
)

var errNoCredentials = errors.New("Config.PeerCredentials has none for it")

// secured returns an error unless options have credentials, be they insecure ones. It does not
// dial.
func secured(options []grpc.DialOption) error {
	conn, err := grpc.NewClient("passthrough:///leader", options...)
	if err != nil {
		return err // gRPC requires them, too
	}
	return conn.Close()
}

// dialer returns the function that makes connections to leaders.
//
// The limits of calls are the business of the caller and the service, so none are set
// here; and nothing is sent twice on our account: what may have reached the leader may
// have been carried out.
//
// Where the listener has credentials there is no plain text by default: a connection for
// which there are no credentials is not made. closers are the goroutines that close them.
func dialer(cfg Config, closers *sync.WaitGroup) func(elector.Leader) (*link, error) {
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
	if cfg.ServerCredentials == nil {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials())) // unless there are others
	}
	options = append(options, cfg.PeerOptions...)
	return func(to elector.Leader) (*link, error) {
		l := &link{calls: routing.NewCalls(context.Background(), routing.Never)}
		own := options[:len(options):len(options)]
		if cfg.PeerCredentials != nil {
			transport := cfg.PeerCredentials(to)
			if transport == nil {
				return nil, errNoCredentials
			}
			own = append(own, grpc.WithTransportCredentials(verifying{transport, &l.impostor}))
		}
		var err error
		if l.ClientConn, err = grpc.NewClient(to.Address, own...); err != nil {
			return nil, err
		}
		closers.Go(func() {
			<-l.calls.Context().Done()
			_ = l.Close()
		})
		return l, nil
	}
}

// verifying is credentials that remember that the server that was reached is not the leader.
// gRPC reports that the connection could not be made, and not why; but a call waits for a leader that
// does not respond, and not for another server.
type verifying struct {
	credentials.TransportCredentials
	impostor *atomic.Bool
}

// ClientHandshake is the credentials' own.
func (v verifying) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := v.TransportCredentials.ClientHandshake(ctx, authority, conn)
	var wrong *tls.CertificateVerificationError
	v.impostor.Store(errors.As(err, &wrong))
	return secured, info, err
}

// Clone remembers in the same place.
func (v verifying) Clone() credentials.TransportCredentials {
	return verifying{v.TransportCredentials.Clone(), v.impostor}
}
