package routing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/latest"
)

// Router keeps the route of a node. Two sources change it: the tenure, which begins to serve a little after
// the win and stops before anybody else learns of its end, and the status, which may be late. While a tenure
// is set up, only the tenure counts. A status that is older than the tenure's end does no harm: no call
// is served in another tenure than the one that was meant. Made by New. Safe for concurrent use.
type Router[S any, P Peer] struct {
	connect func(elector.Leader) (P, error)
	cell    latest.Cell[*Route[S, P]]

	mu      sync.Mutex
	tenure  *Tenure[S]
	peer    P // the last one, kept while the leader is not known
	leaving bool
	known   eldest.Token
	// draining: this node serves no more tenures. over: calls go nowhere.
	draining, over bool
}

// New makes a router whose route leads nowhere yet. connect makes the connection to a leader; it
// must not block. Its error says why calls cannot be forwarded to that leader.
func New[S any, P Peer](connect func(elector.Leader) (P, error)) *Router[S, P] {
	r := &Router[S, P]{connect: connect}
	r.Unknown(fmt.Errorf("%w: no Run is going on", eldest.ErrClosed))
	return r
}

// Lead routes calls to a tenure of this node, until Leave. The error wraps eldest.ErrInvalid if
// another tenure is being served.
func (r *Router[S, P]) Lead(t *Tenure[S]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.tenure != nil:
		return fmt.Errorf("%w: the tenure with token %d is being served", eldest.ErrInvalid, r.tenure.Token)
	case r.over, r.draining:
		return nil
	}
	r.tenure, r.known = t, t.Token
	r.publish(&Route[S, P]{Tenure: t})
	r.disconnect(errAnother)
	return nil
}

// Leave routes calls nowhere if they were routed to t.
func (r *Router[S, P]) Leave(t *Tenure[S], reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenure == t {
		r.tenure = nil
		r.publish(&Route[S, P]{Reason: reason})
	}
}

// Follow routes calls to a leader. It is for one goroutine at a time.
func (r *Router[S, P]) Follow(l elector.Leader) {
	p, err := r.connection(l) // without the lock: it may call a function of the user
	r.mu.Lock()
	defer r.mu.Unlock()
	another := r.peer != p
	switch {
	case r.over || r.tenure != nil:
		if err == nil && another {
			p.Close(errAnother)
		}
		return
	case err != nil:
		r.known = l.Token
		r.publish(&Route[S, P]{Reason: fmt.Errorf("%w: leader %+q: %w", eldest.ErrNoLeader, l.NodeID, err)})
		return
	}
	r.known = l.Token // also a lower one, of another etcd or of one that was restored
	r.publish(&Route[S, P]{Peer: p, Leaving: r.leaving && !another})
	if another {
		r.disconnect(errAnother)
		r.peer, r.leaving = p, false
	}
}

// connection returns the present connection to the leader, or a new one.
func (r *Router[S, P]) connection(l elector.Leader) (P, error) {
	r.mu.Lock()
	p := r.peer
	r.mu.Unlock()
	var none P
	if p != none && p.Leader().Token == l.Token && p.Leader().Address == l.Address {
		return p, nil
	}
	return r.connect(l)
}

// Unknown routes calls nowhere. The connection to the last known leader is kept: often
// it is still the leader when this node learns of it again.
func (r *Router[S, P]) Unknown(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.tenure == nil {
		r.publish(&Route[S, P]{Reason: reason})
	}
}

// Serves notes what a leader has announced: whether it serves calls.
func (r *Router[S, P]) Serves(p P, serves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peer != p || r.leaving == !serves {
		return
	}
	r.leaving = !serves
	if r.Now().Peer == p {
		r.publish(&Route[S, P]{Peer: p, Leaving: r.leaving})
	}
}

// Drain takes no more calls into a tenure of this node, and returns the one that they
// were routed to, if any. New calls wait for another leader. Calls in flight go on.
func (r *Router[S, P]) Drain(reason error) *Tenure[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	return r.leave(reason)
}

// Stop routes calls nowhere, for good, and returns the tenure that they were routed to,
// if any. Calls in flight go on.
func (r *Router[S, P]) Stop(reason error) *Tenure[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	t := r.leave(reason)
	r.publish(&Route[S, P]{Reason: reason})
	return t
}

func (r *Router[S, P]) leave(reason error) *Tenure[S] {
	t := r.tenure
	if t != nil {
		r.tenure = nil
		r.publish(&Route[S, P]{Reason: reason})
	}
	return t
}

// Disconnect ends the connection to the leader, after Stop.
func (r *Router[S, P]) Disconnect(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disconnect(reason)
}

var errAnother = errors.New("another tenure is known")

// disconnect is called after the next route was published: a call that finds its peer closed
// finds another route, too. The caller holds mu.
func (r *Router[S, P]) disconnect(reason error) {
	var none P
	if r.peer != none {
		r.peer.Close(reason)
		r.peer = none
	}
}

func (r *Router[S, P]) publish(to *Route[S, P]) {
	to.known, to.Over = r.known, r.over
	r.cell.Set(to)
}

// Now returns the present route.
func (r *Router[S, P]) Now() *Route[S, P] {
	to, _ := r.cell.Get()
	return to
}

// Reader returns a reader of the present route and of all that follow.
func (r *Router[S, P]) Reader() *latest.Reader[*Route[S, P]] { return r.cell.Reader() }

// ErrWaitLimit is the end of a wait that its own bound ended.
var ErrWaitLimit = errors.New("waited long enough")

// briefly is how long this node may learn of a tenure after the node that forwarded.
const briefly = time.Second

// Next blocks until the route makes something else of a call than to wait: at most until
// the given time, and no longer than ctx lives. The error is ErrWaitLimit or ctx's cause; the
// route is then the last one that was seen.
func (r *Router[S, P]) Next(ctx context.Context, token eldest.Token, until time.Time) (*Route[S, P], Decision, error) {
	bounded, cancel := context.WithDeadlineCause(ctx, until, ErrWaitLimit)
	defer cancel()
	brief, stop := context.WithTimeoutCause(bounded, briefly, ErrWaitLimit)
	defer stop()
	to, what := r.Now(), Wait
	for reader := r.cell.Reader(); ; {
		bound := bounded
		if what == WaitBriefly {
			bound = brief
		}
		newer, err := reader.Next(bound)
		if err != nil {
			return to, what, err
		}
		to, what = newer, newer.Decide(token)
		if what > WaitBriefly {
			return to, what, nil
		}
	}
}

// Pause blocks until there is another route than the one that was seen, or for a while,
// or until ctx ends. It returns false if the given time has come instead.
func (r *Router[S, P]) Pause(ctx context.Context, seen *Route[S, P], while time.Duration, until time.Time) bool {
	if time.Until(until) <= 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, min(while, time.Until(until)))
	defer cancel()
	_, _ = r.cell.Reader().NextWhere(bounded, func(to *Route[S, P]) bool { return to != seen })
	return ctx.Err() != nil || time.Until(until) > 0
}

// FollowStatus turns statuses into routes until ctx ends, and returns ctx's cause. It does not route calls to
// this node: Lead does, when the tenure is set up.
func (r *Router[S, P]) FollowStatus(ctx context.Context, watch *elector.Watch) error {
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return err
		}
		switch leader, follows := s.Leader(); {
		case s.Role() == elector.Leading:
			r.Unknown(fmt.Errorf("%w: the tenure of this node begins or ends", eldest.ErrNoLeader))
		case follows:
			r.Follow(leader)
		case s.Reason() != nil:
			r.Unknown(s.Reason())
		default:
			r.Unknown(eldest.ErrNoLeader)
		}
	}
}

// Log logs where calls go until ctx ends; of changes that follow each other quickly, the last. It has
// a goroutine of its own: the logger is the user's and may be slow.
func (r *Router[S, P]) Log(ctx context.Context, log *slog.Logger) {
	for reader := r.Reader(); ; {
		to, err := reader.Next(ctx)
		switch {
		case err != nil:
			return
		case to.Tenure != nil:
			log.Info("calls are served here", "token", int64(to.Tenure.Token))
		case to.Follows():
			l := to.Peer.Leader()
			log.Info("calls are forwarded", "leader", l.NodeID, "address", l.Address, "token", int64(l.Token))
		default:
			log.Info("calls wait for a leader", "reason", to.Reason)
		}
	}
}
