package curator

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
)

// route says where calls go. It is immutable.
//
// Invariant: exactly one of tenure, peer and reason is set.
type route struct {
	tenure *tenure // this node leads: here
	peer   *peer   // it follows: there
	reason error   // neither: nowhere yet
	// leaving says that the peer has told that it serves no more: there will be another one.
	leaving bool
	// over says that no other route follows.
	over bool
	// known is the token of the last tenure that this node has heard of.
	known eldest.Token
}

// Decide implements routing.Route.
func (r *route) Decide(token eldest.Token) routing.Decision {
	view := routing.View{Follows: r.peer != nil, Leaving: r.leaving, Known: r.known, Over: r.over}
	if r.tenure != nil {
		view.Own, view.Alive = r.tenure.token, r.tenure.alive()
	}
	return view.Decide(token)
}

// why says why nobody can be routed to, for a route that lets calls wait.
func (r *route) why() error {
	switch {
	case r.tenure != nil:
		return r.tenure.over()
	case r.leaving:
		return fmt.Errorf("%w: leader %q is stopping, or not ready yet", eldest.ErrNoLeader, r.peer.leader.NodeID)
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

	routing.Board[*route]

	mu     sync.Mutex
	tenure *tenure
	peer   *peer // the last one, kept while neither
	known  eldest.Token
	// retired says that this node serves no more tenures, over that calls go nowhere.
	retired, over bool
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
	if r.over || r.retired {
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
		r.publish(&route{peer: before, leaving: before.leaving})
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

// serves notes what a leader has told of itself.
func (r *router) serves(p *peer, serves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.leaving == !serves {
		return
	}
	p.leaving = !serves
	if r.Now().peer == p {
		r.publish(&route{peer: p, leaving: p.leaving})
	}
}

// retire takes no more calls into a tenure of this node's, and returns the one that they
// were routed to, if any. New calls wait for another leader. Those in flight go on.
func (r *router) retire(reason error) *tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenure
	r.retired = true
	if t != nil {
		r.tenure = nil
		r.publish(&route{reason: reason})
	}
	return t
}

// stop routes calls nowhere, for good, and returns the tenure that they were routed to,
// if any. Calls in flight go on.
func (r *router) stop(reason error) *tenure {
	t := r.retire(reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
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
	r.Set(to)
}
