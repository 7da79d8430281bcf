package lease

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
)

// Heartbeat has a leader whose machine has crashed replaced after about Timeout instead of the
// lease's TTL. The zero value means no heartbeats, which costs nothing.
//
// While one of the session's candidates leads, the session writes one key of etcd every Interval,
// however many elections it leads. Candidates that wait behind it, and whose sessions have
// heartbeats too, delete its candidate's key when they have received no heartbeat for its Timeout.
// All of them need permission to read and write the range of keys.Heartbeats.
//
// What changes: a leader none of whose heartbeats etcd acknowledges in time is suspended
// (eldest.ErrSuspended), and continues to lead with the same token when the next Campaign has
// proven that its key still exists. G3 holds for heartbeats as for the lease, with one more
// assumption: the rates of the clocks of any two candidates differ by less than Margin / Timeout.
//
// The costs: at a Timeout of 1 s, 346,000 revisions of etcd a day for each session that leads.
// Enable etcd's automatic compaction (--auto-compaction-retention), or its database grows by 44 MB
// a day for each of them.
type Heartbeat struct {
	// Timeout is the time without a heartbeat after which a successor evicts. 0 means no
	// heartbeats. It must be at least MinHeartbeat, and less than the TTL.
	Timeout time.Duration
	// Interval is the time between two heartbeats. 0 means Timeout/4. Two intervals must fit
	// between the sending of a heartbeat and its deadline, Timeout - Margin later.
	Interval time.Duration
	// Margin is how much earlier than Timeout the leader stops. 0 means the larger of Timeout/10
	// and MinHeartbeatMargin.
	Margin time.Duration
}

// Limits of heartbeats.
const (
	// MinHeartbeat is the shortest Heartbeat.Timeout: on a busy machine timers fire up to 120 ms
	// late.
	MinHeartbeat = core.LeastTimeout
	// MinHeartbeatMargin is the smallest default margin.
	MinHeartbeatMargin = 150 * time.Millisecond
)

// pace returns the intervals for a session with a TTL; zero: no heartbeats.
func (h Heartbeat) pace(ttl time.Duration) (core.Pace, error) {
	if h == (Heartbeat{}) {
		return core.Pace{}, nil
	}
	p := core.Pace{Every: h.Interval, Timeout: h.Timeout, Margin: h.Margin}
	if p.Every == 0 {
		p.Every = p.Timeout / 4
	}
	if p.Margin == 0 {
		p.Margin = max(p.Timeout/10, MinHeartbeatMargin)
	}
	switch {
	case p.Timeout < MinHeartbeat || p.Timeout >= ttl:
		return p, fmt.Errorf("%w: the heartbeat timeout %v must be at least %v and less than the TTL %v", eldest.ErrInvalid, p.Timeout, MinHeartbeat, ttl)
	case p.Margin < 0 || p.Every <= 0 || p.Every > (p.Timeout-p.Margin)/2: // twice Every might overflow
		return p, fmt.Errorf("%w: a heartbeat every %v does not fit twice into a timeout of %v with a margin of %v", eldest.ErrInvalid, p.Every, p.Timeout, p.Margin)
	}
	return p, nil
}

// heartbeats returns the heartbeats of a session. fresh means that its lease is new.
func (s *Session) heartbeats(fresh bool) loop.Heartbeats {
	pace, _ := s.cfg.Heartbeat.pace(MaxTTL + 1) // it was checked
	origin := s.cfg.Clock.Now() - 1
	now := func() time.Duration { return s.cfg.Clock.Now() - origin } // positive: in package loop 0 means none
	b := loop.Heartbeats{Pace: pace, Now: now, Silent: s.cfg.Liveness.Err, Fresh: fresh}
	b.Lost = func(err error) {
		s.Forfeit(fmt.Errorf("etcd refuses heartbeats but may have stored one before: leading without heartbeats requires a new lease: %w", err))
	}
	if f := s.cfg.Hooks.Heartbeat; f != nil {
		b.Told = func(beat loop.Beat) { s.hooks.Do(func() { f(HeartbeatEvent(beat)) }) }
	}
	return b
}
