package curator

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/eldest-io/eldest/elector"
)

// peer is the leader of one tenure, as the others reach it. It has at most one
// connection, made when the first call wants it and again after one was given up.
//
// Invariant: once closed, it has none and makes none.
type peer struct {
	leader elector.Leader
	dial   func(elector.Leader) (*link, error)
	// beat watches a new connection until it is given up, on a goroutine of its own.
	beat func(*link)

	// dialling is held while a connection is made. That asks for credentials, and
	// whoever answers must not hold up the one who closes the peer.
	dialling sync.Mutex

	mu     sync.Mutex
	link   *link
	closed error // why

	unary unaries
	// warned says that it was logged that this leader cannot be reached.
	warned sync.Once
}

// unaries are the methods of which the leader has said that they are unary. It serves
// them, so their number is bounded.
type unaries struct{ names sync.Map }

func (u *unaries) knows(name string) bool {
	_, ok := u.names.Load(name)
	return ok
}

func (u *unaries) learn(name string) { u.names.Store(name, nil) }

// link is one connection of a peer's.
type link struct {
	*grpc.ClientConn
	// calls counts those in flight.
	calls atomic.Int64
	// retired says that no more of them begin.
	retired atomic.Bool
	// impostor says that who was reached last was not the leader.
	impostor atomic.Bool

	gone chan struct{} // closed when it was given up

	mu    sync.Mutex
	why   error // it was given up
	timer *time.Timer
}

// take returns the connection for one call, which ends with the link's done. It does
// not block: gRPC dials behind it. The error is errHungUp, with the reason, or that of
// an address which cannot be dialled at all. The connection may have been given up since.
func (p *peer) take() (*link, error) {
	if l, err := p.present(); l != nil || err != nil {
		return l, err
	}
	p.dialling.Lock()
	defer p.dialling.Unlock()
	if l, err := p.present(); l != nil || err != nil {
		return l, err // somebody else was quicker
	}
	l, err := p.dial(p.leader)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		l.giveUp(p.closed)
		return nil, fmt.Errorf("%w: %w", errHungUp, p.closed)
	}
	p.link = l
	l.calls.Add(1) // now: after a stall it may be given up before anybody can ask for it
	p.beat(l)
	return l, nil
}

// present returns the connection that there is, for one call; nil if there is none.
func (p *peer) present() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed != nil:
		return nil, fmt.Errorf("%w: %w", errHungUp, p.closed)
	case p.link == nil || p.link.given():
		return nil, nil //nolint:nilnil // there is none
	}
	p.link.calls.Add(1)
	return p.link, nil
}

var errHungUp = errors.New("the connection was closed")

// close gives the connection up, for good: when the last call there has ended, after
// linger at the latest. A leader that resigned has just answered its last calls, and the
// news of the next one may be quicker than the answers.
func (p *peer) close(reason error, linger time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = reason
	}
	if p.link != nil {
		p.link.retire(reason, linger)
	}
}

// done ends a call.
func (l *link) done() {
	if l.calls.Add(-1) == 0 && l.retired.Load() {
		l.giveUp(errIdle)
	}
}

// retire gives the connection up when no calls are in flight, after linger at the latest.
func (l *link) retire(reason error, linger time.Duration) {
	l.mu.Lock()
	if l.why == nil && l.timer == nil {
		l.timer = time.AfterFunc(linger, func() { l.giveUp(reason) })
	}
	l.mu.Unlock()
	l.retired.Store(true) // before the look at calls, as done looks at them before this
	if l.calls.Load() == 0 || linger <= 0 {
		l.giveUp(reason)
	}
}

// giveUp closes the connection, and calls in flight there end. Only the first reason
// counts.
func (l *link) giveUp(reason error) {
	l.mu.Lock()
	first := l.why == nil
	if first {
		l.why = reason
		if l.timer != nil {
			l.timer.Stop()
		}
		close(l.gone)
	}
	l.mu.Unlock()
	if first {
		_ = l.Close()
	}
}

// given reports whether the connection was given up.
func (l *link) given() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// reason returns why the connection was given up, or nil.
func (l *link) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

var errIdle = errors.New("nobody used it any more")

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

var errNoCredentials = errors.New("Config.PeerCredentials has none for it")

// How much may be under way to a reader who does not read, on a stream and on all of a
// connection. They are fixed because gRPC otherwise measures each connection with a ping
// for every message, which costs a short forwarded call a quarter of its time.
const (
	streamWindow = 512 << 10
	connWindow   = 4 << 20
)

// secured returns an error unless options say how a connection is secured, be it that it is
// not. It dials nobody.
func secured(options []grpc.DialOption) error {
	conn, err := grpc.NewClient("passthrough:///leader", options...)
	if err != nil {
		return err // gRPC wants to be told, too
	}
	return conn.Close()
}

// dialer returns the function that makes connections to leaders.
//
// The call's own limits are the caller's and the service's business, so none are set
// here; and nothing is sent twice on our account: what may have reached the leader may
// have been carried out.
//
// Where the listener has credentials there is no plain text by default: a connection for
// which nothing was said is not made.
func dialer(cfg Config) func(elector.Leader) (*link, error) {
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
		l := &link{gone: make(chan struct{})}
		own := options[:len(options):len(options)]
		if cfg.PeerCredentials != nil {
			transport := cfg.PeerCredentials(to)
			if transport == nil {
				return nil, errNoCredentials
			}
			own = append(own, grpc.WithTransportCredentials(vouching{transport, &l.impostor}))
		}
		var err error
		l.ClientConn, err = grpc.NewClient(to.Address, own...)
		return l, err
	}
}
