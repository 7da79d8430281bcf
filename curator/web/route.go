package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
)

// peer is the leader of another node, and what was forwarded to it.
type peer struct {
	*flight
	leader elector.Leader
	url    *url.URL
}

// route says where requests go. It is immutable.
//
// Invariant: exactly one of tenure, peer and reason is set.
type route struct {
	tenure *tenure // this node leads: here
	peer   *peer   // it follows: there
	reason error   // neither: nowhere yet
	// over says that no other route follows.
	over bool
	// known is the token of the last tenure that this node has seen.
	known eldest.Token
}

// Decide implements routing.Route.
func (r *route) Decide(token eldest.Token) routing.Decision {
	view := routing.View{Follows: r.peer != nil, Known: r.known, Over: r.over}
	if r.tenure != nil {
		view.Own, view.Alive = r.tenure.token, r.tenure.over() == nil
	}
	return view.Decide(token)
}

// why says why the route does not take a request.
func (r *route) why(h hop, node string) error {
	switch {
	case r.over || h.token == 0 && r.tenure == nil && r.peer == nil:
		return r.reason
	case h.token == 0 && r.tenure != nil:
		return r.tenure.over()
	case r.tenure != nil && r.tenure.token != h.token:
		return fmt.Errorf("node %+q forwarded to %+q, which leads with token %d instead of %d", h.from, node, r.tenure.token, h.token)
	case r.peer != nil:
		return fmt.Errorf("node %+q forwarded to %+q, which follows node %+q", h.from, node, r.peer.leader.NodeID)
	default:
		return fmt.Errorf("node %+q forwarded to %+q, which does not lead with token %d", h.from, node, h.token)
	}
}

// router keeps the route. A tenure of this node counts more than the status: it begins
// to serve a little after the win, and stops before the status changes.
type router struct {
	grace time.Duration
	routing.Board[*route]
	// endings are the goroutines that end what was forwarded to earlier leaders.
	endings sync.WaitGroup

	mu     sync.Mutex
	tenure *tenure
	peer   *peer // the last one, kept while neither
	known  eldest.Token
	over   bool
}

var errAnother = errors.New("another leader is known")

// lead routes requests to a tenure of this node until it is left.
func (r *router) lead(t *tenure) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenure != nil {
		return invalid("Lead is called while the tenure with token %d is served", r.tenure.token)
	}
	r.tenure, r.known = t, t.token
	if !r.over {
		r.publish(&route{tenure: t})
		r.hangUp()
	}
	return nil
}

// leave is the end of lead.
func (r *router) leave(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tenure = nil
	if !r.over {
		r.publish(&route{reason: reason})
	}
}

// follow routes requests to a leader.
func (r *router) follow(l elector.Leader, to *url.URL) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.tenure != nil {
		return
	}
	r.known = l.Token // also a lower one, of an etcd that was restored
	if r.peer == nil || r.peer.leader.Token != l.Token || r.peer.url.String() != to.String() {
		r.hangUp()
		r.peer = &peer{flight: newFlight(context.Background(), func() error { return nil }), leader: l, url: to}
	}
	r.publish(&route{peer: r.peer})
}

// neither routes requests nowhere. What was forwarded goes on: often the leader is the same
// when this node can see it again.
func (r *router) neither(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.tenure == nil {
		r.publish(&route{reason: reason})
	}
}

// stop routes requests nowhere, for good, and blocks until nothing that was forwarded
// runs.
func (r *router) stop(reason error) {
	func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.over = true
		r.publish(&route{reason: reason})
		r.hangUp()
	}()
	r.endings.Wait()
}

// hangUp ends what was forwarded to the last leader, after the grace. A request that finds
// its peer closed finds another route, too. It is called with mu held.
func (r *router) hangUp() {
	if p := r.peer; p != nil {
		r.peer = nil
		p.close(errAnother)
		r.endings.Go(func() {
			p.settle(r.grace)
			p.finish(errAnother, r.grace)
		})
	}
}

func (r *router) publish(to *route) {
	to.known, to.over = r.known, r.over
	r.Set(to)
}
