package lease

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
)

// Heartbeat says how fast a leader that died with its machine is replaced: in about Timeout instead of
// the lease's TTL. The zero value: no heartbeats, which costs nothing.
//
// While one of the session's candidates leads, the session writes one key of etcd every Interval, however
// many elections it leads; candidates whose sessions have heartbeats as well, and who wait behind it, delete
// its candidate's key when they have received none for its Timeout. All of them need the permission to read and
// write the range of keys.Beats.
//
// What it changes: a leader to whom etcd acknowledges no beat in time is suspended (eldest.ErrSuspended), and
// leads on with the same token when the next Campaign has proven that its key still stands. G3 holds
// for heartbeats as for the lease, and assumes one thing more: that the rates of the clocks of the candidates
// differ by less than Margin / Timeout among each other.
//
// What it costs: at a Timeout of 1 s, 346,000 revisions of etcd a day and session that leads. Let etcd compact by
// itself (--auto-compaction-retention), or its database grows by 44 MB a day for each.
type Heartbeat struct {
	// Timeout is after how much silence a successor evicts. 0 means: no heartbeats. At least
	// MinHeartbeat, and less than the TTL.
	Timeout time.Duration
	// Interval is the time between two beats. 0 means Timeout/4. Two must fit between the
	// sending of a beat and the deadline that follows from it, Timeout - Margin later.
	Interval time.Duration
	// Margin is how much sooner than Timeout the leader stops. 0 means the larger of Timeout/10 and
	// MinHeartbeatMargin.
	Margin time.Duration
}

// Limits of heartbeats.
const (
	// MinHeartbeat is the shortest Heartbeat.Timeout: on a busy machine timers go off up to
	// 120 ms late.
	MinHeartbeat = core.LeastTimeout
	// MinHeartbeatMargin is the smallest default margin.
	MinHeartbeatMargin = 150 * time.Millisecond
)

// pace is what follows from it, for a session with a TTL; zero: no heartbeats.
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
	case p.Margin < 0 || p.Every <= 0 || 2*p.Every > p.Timeout-p.Margin:
		return p, fmt.Errorf("%w: a heartbeat every %v does not fit twice into a timeout of %v with a margin of %v", eldest.ErrInvalid, p.Every, p.Timeout, p.Margin)
	}
	return p, nil
}

// heartbeats are those of a session. fresh says that its lease is new.
func (s *Session) heartbeats(fresh bool) loop.Heartbeats {
	pace, _ := s.cfg.Heartbeat.pace(MaxTTL + 1) // it was checked
	b := loop.Heartbeats{Pace: pace, Now: s.cfg.Clock.Now, Silent: s.cfg.Liveness.Err, Fresh: fresh}
	b.Lost = func(err error) {
		s.Forfeit(fmt.Errorf("etcd refuses heartbeats, and may have taken one before: only another lease can lead without them: %w", err))
	}
	if f := s.cfg.Hooks.Beat; f != nil {
		b.Told = func(beat loop.Beat) { s.hooks.Do(func() { f(BeatEvent(beat)) }) }
	}
	return b
}
