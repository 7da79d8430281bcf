package web

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/retry"
)

// Front is the http.Handler that every node of a service serves. Made by New. All methods
// are safe for concurrent use.
type Front struct {
	cfg       Config
	transport http.RoundTripper
	own       *http.Transport // transport, if it is the Front's own
	proxyLog  *log.Logger
	router    *router
	waiting   atomic.Int64
	started   atomic.Bool
	// endings are the goroutines that end the requests that were forwarded to earlier leaders.
	endings sync.WaitGroup
}

type (
	tenure = routing.Tenure[http.Handler]
	route  = routing.Route[http.Handler, *peer]
	router = routing.Router[http.Handler, *peer]
)

// peer is the leader, if it is another node, with the requests that were forwarded to it.
type peer struct {
	*routing.Calls
	front  *Front
	leader elector.Leader
	url    *url.URL
}

// Leader returns the leader.
func (p *peer) Leader() elector.Leader { return p.leader }

// Close ends the forwarded requests, after the grace. If only the leader's address has changed, it
// still serves them, and they continue until Close is called again, with another reason.
func (p *peer) Close(reason error) {
	p.Calls.Close(reason)
	if errors.Is(reason, routing.ErrMoved) {
		return
	}
	p.front.endings.Go(func() {
		p.Drain(context.Background(), p.front.cfg.Grace)
		p.Finish(reason)
	})
}

// New makes a Front. It starts nothing. The error wraps eldest.ErrInvalid.
func New(cfg Config) (*Front, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &eldest.OpError{Op: "new web front", Election: cfg.Election, Err: err}
	}
	f := &Front{cfg: cfg, transport: cfg.Transport, proxyLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug)}
	if f.transport == nil || f.transport == http.RoundTripper((*http.Transport)(nil)) {
		f.own = newTransport()
		f.transport = f.own
	}
	f.router = routing.New[http.Handler](f.connect)
	return f, nil
}

// connect makes the peer of a leader.
func (f *Front) connect(l elector.Leader) (*peer, error) {
	if l.NodeID == f.cfg.NodeID {
		return nil, errors.New("it has the node ID of this node")
	}
	to, err := f.cfg.URL(l)
	if err == nil && (to == nil || to.Host == "") {
		err = fmt.Errorf("%q has no host", to)
	}
	if err != nil {
		return nil, fmt.Errorf("it has no usable URL: %w", err)
	}
	return &peer{Calls: routing.NewCalls(context.Background(), routing.Never), front: f, leader: l, url: to}, nil
}

// Run follows which node leads until ctx ends, and returns an error that wraps ctx's cause. Without
// it nothing is forwarded. At the end, requests that wait and later ones are answered with 503.
// Forwarded ones have Config.Grace to end and are then aborted; those in a tenure are ended by
// Lead. When Run has returned, nothing of it is left running. A Front runs once; a second call
// returns eldest.ErrClosed.
func (f *Front) Run(ctx context.Context) error {
	if ctx == nil {
		return f.failed("run", invalid("the context is nil"))
	}
	if !f.started.CompareAndSwap(false, true) {
		return f.failed("run", fmt.Errorf("%w: Run was called before", eldest.ErrClosed))
	}
	var logging sync.WaitGroup
	logging.Go(func() { f.router.Log(ctx, f.cfg.Logger.With("election", f.cfg.Election, "node", f.cfg.NodeID)) })
	err := f.router.FollowStatus(ctx, f.cfg.Node.Watch())
	f.router.Stop(fmt.Errorf("%w: node %+q is stopping", eldest.ErrClosed, f.cfg.NodeID))
	f.router.Disconnect(errStopped)
	f.endings.Wait()
	logging.Wait()
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
	return f.failed("run", err)
}

var errStopped = errors.New("this node stopped")

// ServeHTTP serves the request in the tenure of this node, or forwards it to the leader, or
// waits until it can do either. It blocks until the request is answered; the waits end with
// Config.Wait, the request's context, or Run.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, bare, err := hopOf(r, f.cfg.VerifyHop)
	if err == nil {
		if err = f.route(w, bare, h); err == nil {
			return
		}
	}
	code := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errForged):
		code = http.StatusForbidden
	case errors.Is(err, errMalformed):
		code = http.StatusBadRequest
	}
	early(w, r)
	f.refuse(w, code, true, err)
}

// route returns nil when the request is answered. Otherwise it returns the reason: then the request
// has not been sent anywhere, and w is unchanged.
func (f *Front) route(w http.ResponseWriter, r *http.Request, h hop) error {
	turn := &waiter{in: &f.waiting, limit: int64(f.cfg.MaxWaiting)}
	defer turn.leave()
	until := time.Now().Add(f.cfg.Wait)
	for attempt := 0; ; attempt++ {
		to := f.router.Now()
		what := to.Decide(h.token)
		if what != routing.Serve && what != routing.Refuse && !turn.take() {
			return fmt.Errorf("more than %d requests are waiting for a leader", f.cfg.MaxWaiting)
		}
		if what <= routing.WaitBriefly {
			to, what, _ = f.router.Next(r.Context(), h.token, until)
		}
		var err error
		switch {
		case what == routing.Serve:
			turn.leave()
			err = f.serve(w, r, to.Tenure)
		case what == routing.Forward:
			err = f.forward(w, r, to.Peer, until, turn.leave)
		case h.token > 0:
			return to.WrongNode(h.from, f.cfg.NodeID, h.token)
		default:
			return fmt.Errorf("no leader in time: %w", to.Why())
		}
		if err == nil {
			return nil
		}
		// The request has not been sent anywhere yet: there is another route now, or there will be
		// one.
		if !f.router.Pause(r.Context(), to, lookAgain(attempt), until) || r.Context().Err() != nil {
			return err
		}
	}
}

// lookAgain is how long a request waits for another route, or for the same leader to be reachable
// again, before the next attempt.
var lookAgain = retry.Jittered(50*time.Millisecond, 500*time.Millisecond)

// waiter counts one request among those that wait.
type waiter struct {
	in    *atomic.Int64
	limit int64
	taken atomic.Bool
}

// take counts the request as waiting. It returns false if too many wait.
func (p *waiter) take() bool {
	if p.taken.Load() {
		return true
	}
	if p.in.Add(1) > p.limit {
		p.in.Add(-1)
		return false
	}
	p.taken.Store(true)
	return true
}

func (p *waiter) leave() {
	if p.taken.CompareAndSwap(true, false) {
		p.in.Add(-1)
	}
}

func (f *Front) failed(op string, err error) error {
	return &eldest.OpError{Op: op + " web front", Election: f.cfg.Election, Err: err}
}
