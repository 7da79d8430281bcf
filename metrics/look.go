package metrics

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// view is the state of a participant at one moment.
type view struct {
	role           elector.Role
	token, leader  eldest.Token
	remaining, ttl time.Duration
	certain        time.Duration // the leadership
	queue          int
	queued         bool // queue is known
	observers      int
	subscriptions  int64
	dropped        int
}

// look reads the clock, and the states of everything of this participant in this process.
func (e *Election) look() view {
	session, candidate, node, observers, dropped, subscribed := e.standing()
	v := view{observers: len(observers), dropped: dropped, subscriptions: subscribed}
	if session != nil {
		v.dropped += session.Dropped()
		if now := session.Status(); now.Remaining > 0 {
			v.remaining, v.ttl = now.Remaining, session.TTL()
		}
	}
	if candidate != nil {
		v.dropped += candidate.Dropped()
		now := candidate.Status()
		v.token = now.Token
		switch {
		case now.Leading:
			v.role, v.leader, v.certain = elector.Leading, now.Token, candidate.Remaining()
		case now.Suspended:
		case now.Token > 0:
			v.role = elector.Following
		}
	}
	for o := range observers {
		v.dropped += o.Dropped()
		v.subscriptions += o.Subscriptions()
		if n, ok := o.Queue(); ok {
			v.queue, v.queued = n, true
		}
		if state := o.State(); state.Kind == eldest.Led {
			v.leader = max(v.leader, state.Leader.Token)
		}
	}
	if node != nil {
		v.ask(node.Status())
	}
	return v
}

// ask sets the role and the leader's token from a node's status.
func (v *view) ask(s elector.Status) {
	v.role = s.Role()
	if _, token, ok := s.Own(); ok {
		v.leader = max(v.leader, token)
	}
	if l, ok := s.Leader(); ok {
		v.leader = max(v.leader, l.Token)
	}
}
