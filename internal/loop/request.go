package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

var errHeld = fmt.Errorf("%w: another candidate of the session has this key", eldest.ErrCampaigning)

// names are the names of requests in events and errors.
var names = map[core.Request]string{
	core.Register: "register", core.RegisterAlone: "register", core.Look: "find predecessor", core.Survey: "read queue", core.Delete: "remove key",
}

// request is one request and its arguments.
type request struct {
	*User
	core.Ask
	candidate *Candidate
	entry     txn.Entry
	position  core.Position
	place     *txn.Position // the answer, if it has a place
	wait      time.Duration // before the request is repeated, although it was answered
}

// send starts a request. Its outcome is one event.
func (c *Candidate) send(a core.Ask) {
	serial := c.asked
	r := request{User: c.user, Ask: a, candidate: c, entry: c.user.Entry, position: c.state.Position}
	policy, attempts := r.Policy(names[a.Request]), c.attempts
	ctx, cancel := context.WithCancel(c.session.ctx)
	c.cancel = cancel
	entered := func() {}
	if a.Request == core.Register || a.Request == core.RegisterAlone {
		c.session.past.Enter()
		entered = c.session.past.Entered
		c.heart.clear()
		if c.user.Shared {
			c.shared.sent = string(r.entry.Value)
		}
	}
	c.session.tasks.run(func() {
		defer entered()
		defer cancel()
		stretch, since, asked, ended := c.stretch(ctx, a)
		if ended != nil {
			return
		}
		defer asked()
		if r.At > 0 { // 0: the newest state
			r.At = max(r.At, since)
		}
		var e core.Event
		err, again := attempts.Once(ctx, policy, func(once context.Context) (err error) {
			e, err = r.carryOut(once)
			return err
		})
		if err != nil {
			e = failed(a, err, again)
		}
		pause := r.wait
		if err != nil || r.place != nil && r.place.Unknown() {
			pause = attempts.Pause(policy)
		}
		told := *attempts // the next attempt may begin before Tell is called for this one
		if c.answered(ctx, serial, answer{e, r.User, r.place, err, pause, stretch}) {
			told.Tell(ctx, policy, err, pause)
		}
	})
}

// answer is the outcome of a request.
type answer struct {
	core.Event
	user  *User // for whom the request was sent
	place *txn.Position
	err   error
	pause time.Duration // before the next attempt, if there is one
	// stretch is the stretch of the session's heartbeats in which the request was sent.
	stretch uint64
}

// answered handles an answer, unless the request was cancelled or replaced, and reports whether it is a
// failure after which another attempt follows.
func (c *Candidate) answered(ctx context.Context, serial int, a answer) (again bool) {
	c.session.look() // no win after a sleep in which the lease may have expired (G3)
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.asked != serial || ctx.Err() != nil && a.err != nil {
		return false
	}
	c.entered(&a)
	c.inStretch(&a)
	c.cancel, c.delay = nil, a.pause
	if c.state.Phase == core.Leaving && a.Kind == core.Refused {
		c.refusal = a.err
		c.refusals++
	}
	c.take(a.Event, a.place)
	return c.state.Paused && a.err != nil
}

// entered changes the answer to a registration that a campaign has sent and given up, if the next
// campaign began before the answer arrived.
func (c *Candidate) entered(a *answer) {
	waits := c.state.Want == core.Queue || c.state.Want == core.Lead
	switch {
	case c.state.Phase != core.Entering:
		return
	case a.Kind == core.Refused && (waits && errors.Is(a.err, eldest.ErrNotElected) || c.state.Want != core.Nothing && a.user != c.user):
		// The registration was to be alone in the queue, and the present campaign waits; or it was that
		// of another user. The present campaign registers.
		kind := core.Undone
		if errors.Is(a.err, eldest.ErrOutcomeUnknown) {
			kind = core.Unanswered
		}
		a.Event, a.err, a.pause = core.Event{Kind: kind}, nil, 0
	case a.Kind == core.Registered && a.user != c.user && !c.user.Shared && !c.session.past.Held(a.Token, c):
		// The key has the value of another user, which has given it up.
		c.session.past.Doom(a.Token)
	}
	if a.Kind == core.Registered && c.state.Want == core.LeadNow && a.Position.Revision == 0 && !a.Position.Complete {
		a.Position.Elders = nil // only a hint: the candidates in it may have left, and do not exclude a win
	}
}

// stretch blocks until there is a stretch of the session's heartbeats, if the request asks for the
// proof of a win. It returns the number of the stretch, and the revision with which it began: a
// proof at an older revision is not valid, because the key may have been deleted between the two.
// asked must be called when there is an answer: the number of proofs that are requested at a time
// is limited, so that they do not delay heartbeats.
func (c *Candidate) stretch(ctx context.Context, a core.Ask) (n uint64, since int64, asked func(), err error) {
	if c.heart == nil || a.Token == 0 || a.Request != core.Look && a.Request != core.Survey {
		return 0, 0, func() {}, nil
	}
	select {
	case c.heart.proofs <- struct{}{}:
	case <-ctx.Done():
		return 0, 0, nil, context.Cause(ctx)
	}
	asked = func() { <-c.heart.proofs }
	if n, since, err = c.heart.stretch(ctx); err != nil {
		asked()
	}
	return n, since, asked, err
}

// inStretch changes an answer that would be a win, unless it was requested in the stretch that has
// not ended yet (G1, decision 0029).
func (c *Candidate) inStretch(a *answer) {
	if c.heart == nil || !a.Position.Complete || len(a.Position.Elders) > 0 {
		return
	}
	if a.Kind != core.Looked && a.Kind != core.Surveyed {
		return
	}
	if !c.heart.lasts(a.stretch) {
		a.Event, a.pause = core.Event{Kind: core.Undone}, 0
		return
	}
	c.stretched = a.stretch
}

// failed returns the event of a request without an answer, or with a refusal.
func failed(a core.Ask, err error, again bool) core.Event {
	switch {
	case again && errors.Is(err, eldest.ErrOutcomeUnknown):
		return core.Event{Kind: core.Unanswered}
	case again:
		return core.Event{Kind: core.Undone}
	case errors.Is(err, eldest.ErrDeposed) && a.Request != core.Register && a.Request != core.RegisterAlone:
		return core.Event{Kind: core.Looked} // without a token: the key does not exist
	}
	return core.Event{Kind: core.Refused, Err: err}
}

func (r *request) carryOut(ctx context.Context) (core.Event, error) {
	switch r.Request {
	case core.Register, core.RegisterAlone:
		return r.register(ctx)
	case core.Look:
		if r.Token == 0 {
			return r.find(ctx)
		}
		return r.look(ctx)
	case core.Survey:
		yield, wait, revision, err := r.Survey(ctx, r.Token)
		if r.wait = wait; wait > 0 && err == nil {
			return core.Event{Kind: core.Undone}, nil
		}
		return core.Event{Kind: core.Surveyed, Token: r.Token, Yield: yield, Position: core.Position{Revision: revision, Complete: true}}, settled(err)
	case core.Delete:
		return core.Event{Kind: core.Deleted}, txn.Leave(ctx, r.KV, r.candidate.name.Key, r.Token)
	case core.None:
	}
	panic("no request: " + r.Request.String())
}

// register enters the queue. A key that exists from an earlier attempt gets the value, and its
// older candidates are read.
func (r *request) register(ctx context.Context) (core.Event, error) {
	var p txn.Position
	err := eldest.ErrForeignKey
	if r.Request == core.RegisterAlone {
		p, err = r.Queue.EnterAlone(ctx, r.KV, r.entry)
	}
	if errors.Is(err, eldest.ErrForeignKey) { // to find out, the candidate must be queued for a moment
		p, err = r.Queue.Enter(ctx, r.KV, r.entry)
	}
	switch {
	case rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
		return core.Event{}, retryrpc.Final(fmt.Errorf("%w: %w", eldest.ErrSessionLost, err))
	case errors.Is(err, eldest.ErrNotElected):
		return core.Event{}, retryrpc.Final(err)
	case err != nil:
		return core.Event{}, settled(err)
	}
	switch {
	case !p.Adopted:
		p.Value = r.entry.Value
	case !r.Shared:
		if p, err = r.adopt(ctx, p); err != nil {
			return core.Event{}, fmt.Errorf("%w, because the key exists: %w", eldest.ErrOutcomeUnknown, err)
		}
	}
	r.place = &p
	return core.Event{Kind: core.Registered, Token: p.Token, Position: position(p)}, nil
}

// adopt makes a key that existed already the candidate's, with its value, and returns its place.
func (r *request) adopt(ctx context.Context, p txn.Position) (txn.Position, error) {
	if !bytes.Equal(p.Value, r.entry.Value) {
		if _, err := txn.Proclaim(ctx, r.KV, r.entry, p.Token); err != nil {
			return p, err
		}
	}
	at, err := r.Queue.Ahead(ctx, r.KV, r.entry, txn.Position{Token: p.Token}, 0)
	at.Adopted = true
	return at, err
}

// behind is how often a member that has not reached a revision yet counts as a follower that is a
// moment behind, so that the next member is asked.
const behind = 2

// look finds the older candidates. It reads at revision At as long as a member can answer for it.
// If no member can, it reads the newest state, which is as good, because the queue ahead only ever
// gets shorter. That read needs a quorum, and takes longer than a second request to one member.
func (r *request) look(ctx context.Context) (core.Event, error) {
	known := txn.Position{Token: r.Token, Complete: r.position.Complete}
	for _, e := range r.position.Elders {
		known.Ahead = append(known.Ahead, eldest.Candidate{Key: e.Key, Token: e.Token})
	}
	p, err := r.Queue.Ahead(ctx, r.KV, r.entry, known, r.At)
	for future := 1; r.At > 0 && txn.Repeatable(err); future++ {
		if future > behind || !rpcerr.Future(err) {
			r.At = 0
		}
		p, err = r.Queue.Ahead(ctx, r.KV, r.entry, known, r.At)
	}
	if err != nil {
		return core.Event{}, settled(err)
	}
	r.place = &p
	return core.Event{Kind: core.Looked, Token: r.Token, Position: position(p)}, nil
}

// find reads the candidate's key, in any life.
func (r *request) find(ctx context.Context) (core.Event, error) {
	resp, err := r.KV.Get(ctx, r.candidate.name.Key)
	if err != nil {
		return core.Event{}, err
	}
	e := core.Event{Kind: core.Looked, Position: core.Position{Revision: resp.Header.Revision}}
	for _, kv := range resp.Kvs {
		if kv.Lease == r.entry.Lease && (!r.Shared || r.candidate.late(kv)) {
			e.Token = eldest.Token(kv.CreateRevision)
		}
	}
	return e, nil
}

// settled marks errors that a repeated request would not change.
func settled(err error) error {
	if errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrInvalid) {
		return retryrpc.Final(err)
	}
	return err
}

// position returns the part of a place that the machine needs. If not all older candidates are
// known, they are read again after the nearest one, so a candidate in a long queue need not keep
// the others.
func position(p txn.Position) core.Position {
	at := core.Position{Revision: p.Revision, Complete: p.Complete}
	for _, e := range p.Ahead {
		at.Elders = append(at.Elders, core.Elder{Key: e.Key, Token: e.Token})
		if !p.Complete {
			break
		}
	}
	return at
}
