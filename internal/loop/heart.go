package loop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/keys"
)

// Heartbeats configures the heartbeats of a session. The zero value: it has none.
type Heartbeats struct {
	Pace core.Pace
	// Now reads the session's clock. Silent returns why the application does not count as alive;
	// nil: it does.
	Now    func() time.Duration
	Silent func() error
	// Fresh is true if the lease is new: no heartbeat was sent for it.
	Fresh bool
	// Told is called for each heartbeat. It is called with the mutex, and must not block.
	Told func(Beat)
	// Lost gives the session up: etcd refuses heartbeats with err, and may have carried out an
	// earlier one. It must not block.
	Lost func(err error)
}

// Beat is the outcome of one heartbeat.
type Beat struct {
	// Latency is the time from its sending to its outcome.
	Latency time.Duration
	// Left is the rest of the stretch at that time; 0: there was no stretch.
	Left time.Duration
	Err  error
	// NotPermitted is true if no more heartbeats are sent after this refusal.
	NotPermitted bool
}

// heart runs the machine of a session's heartbeats, for all of its candidates. They must have the
// same client: in another namespace there might be heartbeats of an earlier life of the lease. Made
// by Session.heartFor. The session's mutex guards it.
type heart struct {
	session *Session
	client  any // comparable
	kv      clientv3.KV
	key     string
	nonce   string
	state   core.Heart
	wanted  int // the number of candidates that need heartbeats
	beats   uint64
	timer   *time.Timer
	proofs  chan struct{} // has a value for each proof of a win that is requested
	began   chan struct{} // closed when the next stretch begins; nil while no goroutine waits
}

// most is how many proofs of wins are requested at a time.
const most = 64

// heartFor returns the session's heart, which is made for the first candidate; nil: the session has
// no heartbeats. If the client differs from that of the first candidate, the error wraps
// eldest.ErrInvalid.
func (s *Session) heartFor(client any, kv clientv3.KV) (*heart, error) {
	switch {
	case !s.Beats():
		return nil, nil
	case s.heart != nil && s.heart.client != client:
		return nil, fmt.Errorf("%w: the session has heartbeats: all of its candidates must use the same client", eldest.ErrInvalid)
	case s.heart != nil:
		return s.heart, nil
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // does not fail
	h := &heart{session: s, client: client, kv: kv, proofs: make(chan struct{}, most), key: keys.Heartbeat(s.lease), nonce: hex.EncodeToString(nonce[:])}
	h.state = core.Heart{Pace: s.beats.Pace, Tried: !s.beats.Fresh}
	h.timer = time.AfterFunc(time.Hour, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.look()
	})
	h.timer.Stop()
	s.heart = h
	return h, nil
}

// want changes the number of candidates that lead, or check whether they do.
func (h *heart) want(change int) {
	h.wanted += change
	if h.wanted == 0 {
		h.do(core.HeartEvent{Kind: core.Unwanted})
	} else {
		h.do(core.HeartEvent{Kind: core.Wanted})
	}
}

// look reads the clock: a deadline that has passed ends the stretch.
func (h *heart) look() {
	if h != nil {
		h.do(core.HeartEvent{Kind: core.Ticked})
	}
}

// do gives the machine an event. It does not block.
func (h *heart) do(e core.HeartEvent) {
	if h.session.ctx.Err() != nil {
		return // the end of the session ends all tenures, and is not a suspension
	}
	e.Now, e.Silent = h.session.beats.Now(), h.session.beats.Silent()
	before := h.state
	next, effects := core.StepHeart(before, e)
	h.state = next
	if effects.Suspend {
		h.suspend(e.Silent)
	}
	if effects.Began && h.began != nil {
		close(h.began)
		h.began = nil
	}
	if effects.Beat {
		h.beat(e.Now)
	}
	if effects.Delete {
		h.session.tasks.run(h.remove)
	}
	if effects.Timer == 0 {
		h.timer.Stop()
	} else {
		h.timer.Reset(max(effects.Timer-e.Now, LeastTimer))
	}
}

// LeastTimer is the shortest time for which a timer is set: by the session's clock it may fire a
// little early, or often if that clock is stopped.
const LeastTimer = 50 * time.Microsecond

// suspend ends the leading contexts of all candidates that lead.
func (h *heart) suspend(silent error) {
	cause := eldest.ErrSuspended
	if silent != nil {
		cause = fmt.Errorf("%w: %w", cause, silent)
	}
	for _, c := range h.session.candidates {
		if c.state.Phase == core.Leading {
			c.Do(core.Event{Kind: core.Suspend, Err: cause})
		}
	}
}

// beat sends a heartbeat, which does not wait for earlier ones.
func (h *heart) beat(sent time.Duration) {
	s := h.session
	h.beats++
	value := fmt.Sprintf("%s %d %v", h.nonce, h.beats, s.beats.Pace.Timeout)
	s.tasks.run(func() {
		// A later answer has no effect.
		ctx, cancel := context.WithTimeout(s.ctx, s.beats.Pace.Deadline(0))
		resp, err := h.kv.Put(ctx, h.key, value, clientv3.WithLease(clientv3.LeaseID(s.lease)))
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		h.heard(sent, resp, err)
	})
}

func (h *heart) heard(sent time.Duration, resp *clientv3.PutResponse, err error) {
	e := core.HeartEvent{Kind: core.Acknowledged, Sent: sent}
	switch {
	case err == nil:
		e.Revision = resp.Header.Revision
	case rpcerr.Is(err, rpctypes.ErrPermissionDenied):
		e.Kind = core.Forbidden
	default:
		e.Kind = core.Missed
	}
	before := h.state.Pulse
	h.do(e)
	if h.state.Pulse == core.Barred && before != core.Barred {
		h.session.tasks.run(func() { h.session.beats.Lost(err) })
	}
	if told, now := h.session.beats.Told, h.session.beats.Now(); told != nil && h.session.ctx.Err() == nil {
		b := Beat{Latency: now - sent, Err: err, NotPermitted: h.state.Pulse == core.Mute && before != core.Mute}
		if h.state.Pulse == core.Certain {
			b.Left = h.state.Deadline - now
		}
		told(b)
	}
}

// clear deletes the key of the heartbeats again if a candidate of the session registers and none needs
// them. One that was under way at the first deletion may have been carried out after it; the candidate
// would be evicted for its silence while it waits.
func (h *heart) clear() {
	if h != nil && h.wanted == 0 && h.state.Tried {
		h.session.tasks.run(h.remove)
	}
}

// remove deletes the key of the heartbeats, unless they are needed again. A late deletion does no
// harm: a leader without a heartbeat is not evicted.
func (h *heart) remove() {
	policy := retryrpc.Policy{Client: h.kv, Timeout: time.Second, Backoff: retry.Default()}
	_ = policy.Until(h.session.ctx, func(ctx context.Context) error {
		h.session.mu.Lock()
		wanted := h.wanted > 0
		h.session.mu.Unlock()
		if wanted {
			return nil
		}
		_, err := h.kv.Delete(ctx, h.key)
		return err
	})
}

// stretch blocks until there is a stretch, and returns its number and the revision with which it
// began; 0 if no stretch is needed. It is called without the mutex. Its error is ctx's cause.
func (h *heart) stretch(ctx context.Context) (n uint64, since int64, err error) {
	for {
		h.session.mu.Lock()
		h.look()
		if h.state.Sure() {
			n, since = h.state.Stretch, h.state.Since
			h.session.mu.Unlock()
			return n, since, nil
		}
		if h.began == nil {
			h.began = make(chan struct{})
		}
		began := h.began
		h.session.mu.Unlock()
		if err := retry.Wait(ctx, began); err != nil {
			return 0, 0, err
		}
	}
}

// lasts reports whether the stretch has not ended, by the clock.
func (h *heart) lasts(stretch uint64) bool {
	h.look()
	return h.state.Sure() && h.state.Stretch == stretch
}

// certain reports whether no candidate of this session can be evicted for another d, by the clock.
func (h *heart) certain(d time.Duration) bool {
	h.look()
	return h.state.Pulse == core.Mute || h.state.Pulse == core.Certain && h.state.Deadline-h.session.beats.Now() > d
}

// left returns for how long a candidate that has led since the stretch cannot be evicted, by the
// clock; 0 once the stretch has ended.
func (h *heart) left(stretch uint64) time.Duration {
	switch {
	case !h.lasts(stretch):
		return 0
	case h.state.Pulse == core.Mute:
		return math.MaxInt64
	}
	return h.state.Deadline - h.session.beats.Now()
}

// Left returns for how long this candidate cannot be evicted, counted from the call, if it has led
// since the present stretch; else the result is not positive.
func (c *Candidate) Left() time.Duration {
	if c.heart == nil {
		return math.MaxInt64
	}
	return c.heart.left(c.stretched)
}

// Certain reports whether this candidate cannot be evicted for another d. It reads the clock; a
// deadline that has passed ends leading contexts first.
func (c *Candidate) Certain(d time.Duration) bool { return c.heart == nil || c.heart.certain(d) }

// timeout returns the timeout that a heartbeat publishes; 0: the value is invalid.
func timeout(value string) time.Duration {
	parts := strings.Fields(value)
	if len(parts) != 3 {
		return 0
	}
	d, err := time.ParseDuration(parts[2])
	if err != nil || d < core.LeastTimeout {
		return 0
	}
	return d
}
