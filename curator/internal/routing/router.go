package routing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/latest"
)

// Router keeps the route of a node. Two sources change it: the tenure, which begins to serve a
// little after the win and stops before other nodes are notified of its end, and the status, which
// may be late. While a tenure is set up, only the tenure counts. A status that is older than the
// tenure's end does no harm: a call is served only in the tenure that was meant. Made by New. Safe
// for concurrent use.
type Router[S any, P Peer] struct {
	connect func(elector.Leader) (P, error)
	cell    latest.Cell[*Route[S, P]]

	mu     sync.Mutex
	tenure *Tenure[S]
	peer   P // the last one, kept while the leader is not known
	// moved are the peers of the same tenure at its earlier addresses, of which the last maxMoved are
	// kept.
	moved   []P
	leaving bool
	known   eldest.Token
	// draining: this node serves no more tenures. over: calls go nowhere.
	draining, over bool
}

// New makes a router that routes calls nowhere yet. connect makes the connection to a leader; it
// must not block. Its error is why calls cannot be forwarded to that leader.
func New[S any, P Peer](connect func(elector.Leader) (P, error)) *Router[S, P] {
	r := &Router[S, P]{connect: connect}
	r.Unknown(fmt.Errorf("%w: Run is not running", eldest.ErrClosed))
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

// Follow routes calls to a leader. Only one goroutine at a time may call it.
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
		if reason := replaced(r.peer, l.Token); !errors.Is(reason, ErrMoved) {
			r.disconnect(reason)
		}
		return
	}
	r.known = l.Token // it may be lower, from another etcd or from one that was restored
	r.publish(&Route[S, P]{Peer: p, Leaving: r.leaving && !another})
	if another {
		r.disconnect(replaced(r.peer, l.Token))
		r.peer, r.leaving = p, false
	}
}

// connection returns the current connection to the leader, or a new one.
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

// Unknown routes calls nowhere. The connection to the last known leader is kept: often that node is
// still the leader when the leader is known again.
func (r *Router[S, P]) Unknown(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.tenure == nil {
		r.publish(&Route[S, P]{Reason: reason})
	}
}

// Beginning is Unknown while a tenure of this node is set up: the last leader leads no more, so the
// connection to it ends.
func (r *Router[S, P]) Beginning(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.tenure == nil {
		r.publish(&Route[S, P]{Reason: reason})
		r.disconnect(errAnother)
	}
}

// Serves records whether a leader has announced that it serves calls.
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

// Drain routes no more calls to a tenure of this node, and returns the tenure that they were routed
// to, if any. New calls wait for another leader. Calls in flight continue.
func (r *Router[S, P]) Drain(reason error) *Tenure[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	return r.leave(reason)
}

// Stop routes calls nowhere, permanently, and returns the tenure that they were routed to, if any.
// Calls in flight continue.
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

// ErrMoved is why the connection to a leader ends that is reached at another address now. Its
// tenure continues.
var ErrMoved = errors.New("another address of the leader is known")

// maxMoved bounds the earlier addresses of a tenure at which calls continue.
const maxMoved = 16

var errMovedOften = fmt.Errorf("%d later addresses of the leader are known", maxMoved)

// replaced returns why the connection to the last leader ends when a tenure is known.
func replaced[P Peer](last P, token eldest.Token) error {
	var none P
	if last != none && last.Leader().Token == token {
		return ErrMoved
	}
	return errAnother
}

// disconnect is called after the next route was published, so a call that finds its peer closed
// finds another route. The caller holds mu.
func (r *Router[S, P]) disconnect(reason error) {
	var none P
	last, moved := r.peer, r.moved
	r.peer, r.moved = none, nil
	if last != none {
		last.Close(reason)
	}
	if last != none && errors.Is(reason, ErrMoved) {
		moved = append(moved, last)
		r.moved = slices.Clone(moved[max(0, len(moved)-maxMoved):])
		moved, reason = moved[:len(moved)-len(r.moved)], errMovedOften
	}
	for _, p := range moved {
		p.Close(reason)
	}
}

func (r *Router[S, P]) publish(to *Route[S, P]) {
	to.known, to.Over = r.known, r.over
	r.cell.Set(to)
}

// Now returns the current route.
func (r *Router[S, P]) Now() *Route[S, P] {
	to, _ := r.cell.Get()
	return to
}

// Reader returns a reader of the current route and of all that follow.
func (r *Router[S, P]) Reader() *latest.Reader[*Route[S, P]] { return r.cell.Reader() }

// ErrWaitLimit is the end of a wait that has reached its own limit.
var ErrWaitLimit = errors.New("the wait limit has been reached")

// Moment is how long it may take to hand a call to a connection that is ready. Otherwise a call that need
// not wait would be cancelled while it is sent, if no time to wait is left: if the limit is tiny, or this
// process was stopped.
const Moment = 100 * time.Millisecond

// Patience is how long a call that may wait until a given time waits for a connection: at least a Moment.
func Patience(until time.Time) time.Duration { return max(time.Until(until), Moment) }

// briefly is how much later this node may receive a tenure than the node that forwarded the call.
const briefly = time.Second

// Next blocks until the route decides something other than to let the call wait: at most until the
// given time, and until ctx ends. The error is ErrWaitLimit or ctx's cause; the route is then the
// last one that was seen.
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

// Pause blocks until there is another route than seen, or while has passed, or ctx ends. It returns
// false if the time until has come instead.
func (r *Router[S, P]) Pause(ctx context.Context, seen *Route[S, P], while time.Duration, until time.Time) bool {
	if time.Until(until) <= 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, min(while, time.Until(until)))
	defer cancel()
	_, _ = r.cell.Reader().NextWhere(bounded, func(to *Route[S, P]) bool { return to != seen })
	return ctx.Err() != nil || time.Until(until) > 0
}

// FollowStatus turns statuses into routes until ctx ends, and returns ctx's cause. It does not
// route calls to this node: Lead does so when the tenure is set up.
func (r *Router[S, P]) FollowStatus(ctx context.Context, watch *elector.Watch) error {
	for {
		s, err := watch.Next(ctx)
		if err != nil {
			return err
		}
		switch leader, follows := s.Leader(); {
		case s.Role() == elector.Leading:
			r.Beginning(fmt.Errorf("%w: the tenure of this node is beginning or ending", eldest.ErrNoLeader))
		case follows:
			r.Follow(leader)
		case s.Reason() != nil:
			r.Unknown(s.Reason())
		default:
			r.Unknown(eldest.ErrNoLeader)
		}
	}
}

// Log logs where calls go until ctx ends; of changes that follow each other quickly, it logs only
// the last. It needs its own goroutine, because the user's logger may be slow.
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
