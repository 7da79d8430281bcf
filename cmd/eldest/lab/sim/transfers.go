package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// mailbox is a write to a request key, as a reply to lose and as a point to stop at.
const mailbox = "mailbox"

var mailboxes, mailboxesEnd = keys.RequestRange(electionName)

// drawTransfers adds transfers of leadership to one scenario in four, from its own random source: everything
// else in a plan is the same without them. Most participants take part, in some scenarios they yield to one
// another, and the administrator requests a few transfers to any of them.
func (p *plan) drawTransfers() {
	rng := rand.New(rand.NewPCG(p.seed, 0x7472616e73666572))
	if p.style == quiet || rng.IntN(4) > 0 {
		return
	}
	for i := range p.members {
		p.members[i].transfers = rng.IntN(6) > 0
	}
	// Not with many leaders that resign at once: a candidate that yields again and again pauses in
	// between, for longer than I7 lets the oldest wait.
	p.ranked = rng.IntN(3) == 0 && p.style != dense
	last := p.last()
	var more []step
	for range 2 + rng.IntN(5) {
		at := between(rng, calm/2, last)
		more = append(more, step{
			at: at, verb: transfers, role: aWaiter, pick: rng.IntN(6), keep: rng.IntN(3) > 0,
			lasts: []time.Duration{p.ttl, p.ttl, 3 * p.ttl, between(rng, time.Millisecond, 50*time.Millisecond)}[rng.IntN(4)],
		})
		if rng.IntN(3) > 0 {
			continue
		}
		// Something happens to the next write of a request.
		s := step{at: at - time.Millisecond, verb: lose, role: role(rng.IntN(3)), pick: rng.IntN(6), point: mailbox, reset: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			s.verb, s.reset = freeze, false
			s.after, s.gone = rng.IntN(2) == 0, rng.IntN(3) > 0
			s.lasts = between(rng, p.ttl/5, 2*p.ttl)
		}
		more = append(more, s)
	}
	p.add(more...)
}

// transfer requests a transfer of leadership to a queued candidate. It does not wait for the
// result.
func (r *run) transfer(s step) {
	q := r.queue()
	if len(q) < 2 {
		return // no candidate waits
	}
	target := q[1+s.pick%(len(q)-1)].Key
	options := transfer.Options{Order: transfer.PassBy, Timeout: r.ttl / 2, Drain: r.ttl}
	if s.keep {
		options.Order = transfer.Keep
	}
	r.asking.Go(func() {
		ctx, cancel := context.WithTimeout(r.world.T.Context(), s.lasts)
		defer cancel()
		result, err := transfer.To(ctx, transfer.Client(r.admin.Client), electionName, target, options)
		what := "transferred to the next"
		switch {
		case err != nil && errors.Is(err, eldest.ErrTransferRefused) && !errors.Is(err, eldest.ErrOutcomeUnknown):
			what = "transfer refused"
		case err != nil:
			what = "transfer given up"
		case len(result.Moved) > 0:
			what = "transferred past others"
		}
		r.count(what, true)
		if err != nil {
			r.note("%s: %v", what, err)
			return
		}
		e := oracle.Event{
			Who: "admin", Kind: oracle.Transferred, Key: target, Token: int64(result.Plan.Target.Token),
			Proof: int64(result.Plan.Leader.Token), Plan: result.Plan.Revision, Commit: result.Revision,
		}
		for _, m := range result.Moved {
			e.Tokens = append(e.Tokens, int64(m.Token))
		}
		if s.keep {
			e.Text = oracle.KeepsOrder
		}
		r.log.Add(e)
	})
}
