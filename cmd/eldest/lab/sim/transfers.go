package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// mailbox is a write to one, as a reply that is lost and a point to be stopped at.
const mailbox = "mailbox"

var mailboxes, mailboxesEnd = keys.MailboxRange(electionName)

// drawTransfers adds transfers of leadership to one scenario in four, from a source of
// its own: all else in a plan is what it is without them. Most participants take part, in
// some scenarios they give way to one another, and somebody asks a few times for whomever.
func (p *plan) drawTransfers() {
	rng := rand.New(rand.NewPCG(p.seed, 0x7472616e73666572))
	if p.style == quiet || rng.IntN(4) > 0 {
		return
	}
	for range p.actors {
		p.asked = append(p.asked, rng.IntN(6) > 0)
	}
	// Not in a crowd of leaders that resign at once: whoever gives way again and again rests
	// in between, for longer than I7 lets the oldest wait.
	p.ranked = rng.IntN(3) == 0 && p.style != dense
	last := p.steps[len(p.steps)-1].at
	for range 2 + rng.IntN(5) {
		at := between(rng, calm/2, last)
		p.steps = append(p.steps, step{
			at: at, verb: transfers, role: aWaiter, pick: rng.IntN(6), keep: rng.IntN(3) > 0,
			lasts: []time.Duration{p.ttl, p.ttl, 3 * p.ttl, between(rng, time.Millisecond, 50*time.Millisecond)}[rng.IntN(4)],
		})
		if rng.IntN(3) == 0 {
			p.steps = append(p.steps, p.drawMailbox(rng, at-time.Millisecond))
		}
	}
	slices.SortStableFunc(p.steps, func(a, b step) int { return int(a.at - b.at) })
}

// drawMailbox has something go wrong with the next write to somebody's mailbox.
func (p *plan) drawMailbox(rng *rand.Rand, at time.Duration) step {
	s := step{at: at, verb: lose, role: role(rng.IntN(3)), pick: rng.IntN(6), reply: mailbox, reset: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		s.verb, s.reply, s.reset = freeze, "", false
		s.point, s.after, s.gone = mailbox, rng.IntN(2) == 0, rng.IntN(3) > 0
		s.lasts = between(rng, p.ttl/5, 2*p.ttl)
	}
	return s
}

// partake says what the n-th participant of a plan has to do with transfers.
func (p *plan) partake(a *actor, n int) {
	a.asked = p.asked != nil && p.asked[n]
	if p.ranked {
		a.rank = func(value []byte) int { return int(value[len(value)-1]) % 3 }
	}
}

// transfer has somebody ask for leadership to go to one who waits. It does not wait for
// what comes of it.
func (s *show) transfer(st step) {
	q := s.queue()
	if len(q) < 2 {
		s.note(st, "nobody waits")
		return
	}
	target := q[1+st.pick%(len(q)-1)].Key
	s.note(st, target)
	options := transfer.Options{Order: transfer.PassBy, Patience: s.ttl / 2, Drain: s.ttl}
	if st.keep {
		options.Order = transfer.Keep
	}
	s.asking.Go(func() {
		ctx, cancel := context.WithTimeout(s.world.T.Context(), st.lasts)
		defer cancel()
		result, err := transfer.To(ctx, transfer.Client(s.admin.Client), electionName, target, options)
		s.transferred(st, result, err)
	})
}

// transferred tells what came of a transfer.
func (s *show) transferred(st step, result transfer.Result, err error) {
	switch {
	case err == nil:
		e := oracle.Event{
			Who: "admin", Kind: oracle.Transferred, Key: result.Plan.Target.Key, Token: int64(result.Plan.Target.Token),
			Proof: int64(result.Plan.Leader.Token), Plan: result.Plan.Revision, Commit: result.Revision,
		}
		for _, m := range result.Moved {
			e.Tokens = append(e.Tokens, int64(m.Token))
		}
		if st.keep {
			e.Text = oracle.KeepsOrder
		}
		s.log.Add(e)
		s.count("transferred to the next", len(result.Moved) == 0)
		s.count("transferred past others", len(result.Moved) > 0)
	case errors.Is(err, eldest.ErrTransferRefused) && !errors.Is(err, eldest.ErrOutcomeUnknown):
		s.count("transfer refused", true)
		s.told("transfer refused: " + err.Error())
	default:
		s.count("transfer given up", true)
		s.told("transfer given up: " + err.Error())
	}
}

func (s *show) told(text string) { s.log.Add(oracle.Event{Kind: oracle.Fault, Text: text}) }
