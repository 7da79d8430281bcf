package loop

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/stream"
)

// Candidate is one machine of a session, and what it has under way. Made by
// Session.Candidate.
type Candidate struct {
	session *Session
	cfg     CandidateConfig
	key     string

	// The session's mutex guards what follows.
	state    core.Candidate
	leading  context.Context //nolint:containedctx // the tenure's, which users are given
	end      context.CancelCauseFunc
	asked    int // counts requests: the answer to one that was replaced is dropped
	cancel   context.CancelFunc
	failures int
	pause    *time.Timer
	own      watched
	elder    watched
	changed  chan struct{} // closed at the next change; nil while nobody asks
}

// late is the token of a watch of the candidate's key although there is none.
const late eldest.Token = -1

// watched is a key that is watched in one life; a zero token: none.
type watched struct {
	token eldest.Token
	watch *stream.Watch
}

// do gives the machine an event. It does not block.
func (c *Candidate) do(e core.Event) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.step(e)
}

// step takes an event in and starts what is to be done, in the order that core.Effects
// asks for. The caller holds the session's mutex.
func (c *Candidate) step(e core.Event) {
	next, effects := core.Step(c.state, e)
	c.state = next
	if (effects.Ended > 0 || effects.Drained) && c.end != nil {
		c.end(effects.Cause)
		c.leading, c.end = nil, nil
	}
	if effects.Won > 0 {
		c.leading, c.end = context.WithCancelCause(c.session.ctx)
	}
	if next.Asked.Request == core.None || effects.Send.Request != core.None {
		c.forget()
	}
	switch {
	case effects.Pause:
		c.rest()
	case effects.Send.Request != core.None:
		c.send(effects.Send)
	}
	c.watch(next.Watches())
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// rest has Due come after a pause.
func (c *Candidate) rest() {
	serial := c.asked
	c.pause = time.AfterFunc(c.session.cfg.Backoff(c.failures), func() {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		if c.asked == serial {
			c.step(core.Event{Kind: core.Due})
		}
	})
	c.failures++
}

// forget drops the answer of a read that is under way, and a pause.
func (c *Candidate) forget() {
	c.asked++
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	if c.pause != nil {
		c.pause.Stop()
		c.pause = nil
	}
}

// send starts a request. Its outcome comes as one event.
func (c *Candidate) send(a core.Ask) {
	serial := c.asked
	ctx, cancel := context.WithTimeout(c.session.sending, c.session.cfg.Timeout)
	c.cancel = cancel
	position := c.state.Position
	c.session.requests.Go(func() {
		defer cancel()
		e := c.request(ctx, a, position)
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		if c.asked != serial {
			return
		}
		c.cancel = nil
		if e.Kind != core.Unanswered && e.Kind != core.Refused {
			c.failures = 0
		}
		c.step(e)
	})
}

// watch watches what the machine wants to be watched, and nothing else.
func (c *Candidate) watch(w core.Watch) {
	if w.Late {
		w.Key = late
	}
	if c.own.token != w.Key {
		c.own.stop()
		if w.Key != 0 {
			c.own = c.watchLife(c.key, w.Key, w.From, c.ownChanged)
		}
	}
	if c.elder.token != w.Elder.Token {
		c.elder.stop()
		if w.Elder.Token > 0 {
			c.elder = c.watchLife(w.Elder.Key, w.Elder.Token, w.From, c.elderChanged)
		}
	}
}

func (w *watched) stop() {
	if w.watch != nil {
		w.watch.Stop()
	}
	*w = watched{}
}

// watchLife watches a key from a revision at which it was in the life with the token.
func (c *Candidate) watchLife(key string, token eldest.Token, from int64, changed func(token eldest.Token, change stream.Change)) watched {
	return watched{token, c.session.stream.Watch(key, from, func(change stream.Change) {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		changed(token, change)
	})}
}

func (c *Candidate) ownChanged(token eldest.Token, change stream.Change) {
	switch {
	case c.own.token != token: // not watched any more
	case change.Err != nil:
		c.blind()
	case token == late:
		if change.Put != nil && change.Put.Lease == c.session.id {
			c.step(core.Event{Kind: core.KeyAppeared, Token: eldest.Token(change.Put.CreateRevision)})
		}
	case deleted(change.Put, token):
		c.step(core.Event{Kind: core.KeyDeleted, Revision: change.Revision})
	case change.Put.Lease != c.session.id:
		c.step(core.Event{Kind: core.KeyUnsafe, Err: fmt.Errorf("the key is bound to lease %x", change.Put.Lease)})
	}
}

func (c *Candidate) elderChanged(token eldest.Token, change stream.Change) {
	switch {
	case c.elder.token != token:
	case change.Err != nil:
		c.blind()
	case deleted(change.Put, token):
		c.step(core.Event{Kind: core.ElderDeleted, Revision: change.Revision})
	}
}

// deleted reports whether a change ends the life with a token.
func deleted(put *mvccpb.KeyValue, token eldest.Token) bool {
	return put == nil || put.CreateRevision != int64(token)
}

// blind notes that the watches have ended: they share one stream.
func (c *Candidate) blind() {
	c.own.stop()
	c.elder.stop()
	c.step(core.Event{Kind: core.WatchEnded})
}

// await blocks until cond holds for the machine, or ctx ends; then it returns its cause.
func (c *Candidate) await(ctx context.Context, cond func(*core.Candidate) bool) error {
	for {
		c.session.mu.Lock()
		if cond(&c.state) {
			c.session.mu.Unlock()
			return nil
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.session.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Campaign blocks until the candidate leads, and returns the tenure's context; or until ctx
// or the candidacy ends.
func (c *Candidate) Campaign(ctx context.Context) (context.Context, error) {
	c.do(core.Event{Kind: core.Campaign, Want: core.Lead})
	err := c.await(ctx, func(s *core.Candidate) bool {
		return s.Phase == core.Leading || s.Phase == core.Lost || s.Phase == core.Idle && s.Want == core.Nothing
	})
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	switch {
	case err != nil:
		c.step(core.Event{Kind: core.Leave, Err: err})
		return nil, err
	case c.state.Phase != core.Leading:
		return nil, c.state.Cause
	}
	return c.leading, nil
}

// Leave gives up the candidacy or the tenure, and blocks until the key is deleted, the
// session has ended, or ctx has.
func (c *Candidate) Leave(ctx context.Context, cause error) error {
	c.do(core.Event{Kind: core.Leave, Err: cause})
	return c.await(ctx, func(s *core.Candidate) bool { return s.Phase == core.Idle || s.Phase == core.Lost })
}
