package curator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/latest"
)

// route says where calls go. It is immutable.
//
// Invariant: exactly one of tenure, peer and reason is set.
type route struct {
	tenure *tenure // this node leads: here
	peer   *peer   // it follows: there
	reason error   // neither: nowhere yet
	// over says that no other route follows.
	over bool
	// known is the token of the last tenure that this node has heard of.
	known eldest.Token
}

// decision is what a route makes of a call.
type decision uint8

const (
	wait    decision = iota // for another route
	doubt                   // the same, but not for long
	serve                   // in route.tenure
	forward                 // to route.peer
	refuse                  // a forwarded call that came to the wrong node, or too late
)

// doubtful is how long this node's news may be behind that of the one who forwarded.
const doubtful = time.Second

// decide says what to do with a call. It is a function of its arguments and the clock.
//
// A call that was forwarded here is never forwarded again, so two nodes that each take
// the other for the leader end it after one hop. It is served in the very tenure that
// it was meant for; where that tenure is newer than anything this node has heard of, it
// is this node's own, won and not yet set up. While the last leader is still taken for one
// here that is no more than likely: the others may also be wrong, and so it does not wait
// for long.
func (r *route) decide(h hop) decision {
	forwarded := h.token > 0
	switch {
	case r.over:
		return refuse
	case r.tenure != nil && forwarded && h.token != r.tenure.token:
		return refuse
	case r.tenure != nil && r.tenure.alive():
		return serve
	case r.tenure != nil && forwarded:
		return refuse
	case forwarded && h.token <= r.known:
		return refuse
	case forwarded && r.peer != nil:
		return doubt
	case r.peer != nil:
		return forward
	default:
		return wait
	}
}

// why says why nobody can be routed to, for a route that lets calls wait.
func (r *route) why() error {
	switch {
	case r.tenure != nil:
		return r.tenure.over()
	default:
		return r.reason
	}
}

// refusal says why the route refuses a call at the given node.
func (r *route) refusal(h hop, node string) error {
	switch {
	case r.over:
		return r.reason
	case r.tenure != nil && r.tenure.token != h.token:
		return fmt.Errorf("node %q forwarded to %q, which leads, but with token %d instead of %d", h.from, node, r.tenure.token, h.token)
	case r.peer != nil:
		return fmt.Errorf("node %q forwarded to %q, which follows node %q", h.from, node, r.peer.leader.NodeID)
	default:
		return fmt.Errorf("node %q forwarded to %q, which leads no more: %w", h.from, node, r.why())
	}
}

// router keeps the route. There are two who know of changes: the tenure, which begins to
// serve a little after the win and stops before anybody else hears of its end, and the
// status, whose news may be late. While a tenure is set up it alone counts. After it, a
// status that is older comes a moment before the next one, if at all, and does no harm:
// nobody serves in another tenure than the one that was meant.
type router struct {
	connect func(elector.Leader) *peer
	// linger is how long calls to the leader of the last tenure may take to end.
	linger time.Duration

	cell latest.Cell[*route]

	mu     sync.Mutex
	tenure *tenure
	peer   *peer // the last one, kept while neither
	known  eldest.Token
	over   bool
}

func newRouter(connect func(elector.Leader) *peer, linger time.Duration) *router {
	r := &router{connect: connect, linger: linger}
	r.neither(fmt.Errorf("%w: no Run is going on", eldest.ErrClosed))
	return r
}

// lead routes calls to a tenure of this node's, until it is left or another one begins.
func (r *router) lead(t *tenure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.tenure, r.known = t, t.token
	r.publish(&route{tenure: t})
	r.hangUp(r.peer, errAnother, r.linger)
	r.peer = nil
}

// leave routes calls nowhere if they were routed to t.
func (r *router) leave(t *tenure, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenure == t {
		r.tenure = nil
		r.publish(&route{reason: reason})
	}
}

// follow routes calls to a leader.
func (r *router) follow(l elector.Leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.tenure != nil {
		return
	}
	r.known = l.Token // also a lower one, of another etcd or of one that was restored
	before := r.peer
	if before != nil && before.leader.Token == l.Token && before.leader.Address == l.Address {
		r.publish(&route{peer: before})
		return
	}
	r.peer = r.connect(l)
	r.publish(&route{peer: r.peer})
	r.hangUp(before, errAnother, r.linger)
}

// neither routes calls nowhere. The connection to the last known leader is kept: often
// it is still the leader when this node can see it again.
func (r *router) neither(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.tenure == nil {
		r.publish(&route{reason: reason})
	}
}

// stop routes calls nowhere, for good, and returns the tenure that they were routed to,
// if any. Calls in flight go on.
func (r *router) stop(reason error) *tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenure
	r.over, r.tenure = true, nil
	r.publish(&route{reason: reason})
	return t
}

// close ends the connection to the leader, after stop.
func (r *router) close(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangUp(r.peer, reason, 0)
	r.peer = nil
}

var errAnother = errors.New("another tenure is known")

// hangUp is called after the next route was published: a call that finds its peer closed
// finds another route, too.
func (r *router) hangUp(p *peer, reason error, linger time.Duration) {
	if p != nil {
		p.close(reason, linger)
	}
}

func (r *router) publish(to *route) {
	to.known, to.over = r.known, r.over
	r.cell.Set(to)
}

// now returns the present route.
func (r *router) now() *route {
	to, _ := r.cell.Get() // there is one from newRouter on
	return to
}

// errPatience is the end of a wait for a route that its own bound ended.
var errPatience = errors.New("waited long enough")

// next blocks until the route makes something else of a call than to wait: at most until
// the given time, and no longer than ctx lives. The error is errPatience or ctx's cause; the
// route is then the last one that was seen.
func (r *router) next(ctx context.Context, h hop, until time.Time) (*route, decision, error) {
	to := r.now()
	what := to.decide(h)
	if what > doubt {
		return to, what, nil
	}
	bounded, cancel := context.WithDeadlineCause(ctx, until, errPatience)
	defer cancel()
	doubting, stop := context.WithTimeoutCause(bounded, doubtful, errPatience)
	defer stop()
	for reader := r.cell.Reader(); ; {
		bound := bounded
		if what == doubt {
			bound = doubting
		}
		newer, err := reader.Next(bound)
		if err != nil {
			return to, what, err
		}
		to, what = newer, newer.decide(h)
		if what > doubt {
			return to, what, nil
		}
	}
}

// pause blocks until there is another route than the one that was seen, or for a while,
// or until ctx ends. It is false if the given time has come instead.
func (r *router) pause(ctx context.Context, seen *route, while time.Duration, until time.Time) bool {
	if time.Until(until) <= 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, min(while, time.Until(until)))
	defer cancel()
	_, _ = r.cell.Reader().NextWhere(bounded, func(to *route) bool { return to != seen })
	return ctx.Err() != nil || time.Until(until) > 0
}
