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
	refused        bool // heartbeats are
}

// look reads the clock, and the states of everything of this participant in this process.
func (e *Election) look() view {
	from := e.sources()
	v := view{observers: len(from.observers), dropped: from.dropped, subscriptions: from.subscribed, refused: from.refused}
	if session := from.session; session != nil {
		v.dropped += session.Dropped()
		if now := session.Status(); now.Remaining > 0 {
			v.remaining, v.ttl = now.Remaining, session.TTL()
		}
	}
	if candidate := from.candidate; candidate != nil {
		v.dropped += candidate.Dropped()
		now := candidate.Status()
		v.token = now.Token
		switch {
		case now.Leading:
			v.role, v.leader, v.certain = elector.Leading, now.Token, candidate.Remaining()
		case now.Suspended, now.Draining: // no other candidate leads while the key exists
		case now.Token > 0:
			v.role = elector.Following
		}
	}
	for o := range from.observers {
		v.dropped += o.Dropped()
		v.subscriptions += o.Subscriptions()
		if n, ok := o.Queue(); ok {
			v.queue, v.queued = n, true
		}
		if state := o.State(); state.Kind == eldest.Led {
			v.leader = max(v.leader, state.Leader.Token)
		}
	}
	if from.node != nil {
		status := from.node.Status()
		v.role = status.Role()
		if _, token, ok := status.Own(); ok {
			v.leader = max(v.leader, token)
		}
		if l, ok := status.Leader(); ok {
			v.leader = max(v.leader, l.Token)
		}
	}
	return v
}
