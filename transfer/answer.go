package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/keys"
)

// received handles a change of the request key. An error ends Serve.
func (s *serving) received(ctx context.Context, n news) error {
	box := n.box
	// Invariant: revisions are compared with s.box.Mod only if both are of one history. After the
	// restore of a backup revisions begin again below it, and the request key must be written
	// again: otherwise every later message would have a lower revision than our own.
	switch {
	case s.box.Mod == 0:
		return nil // we have no request key
	case n.at <= s.box.Mod && !n.back:
		return nil // our own write, or overwritten by it
	case n.at <= s.box.Mod, box.Mod < s.box.Mod:
		return s.open(ctx, s.token, message{}) // another client deleted it, or a restore brought an older one back
	case box.Mod == s.box.Mod:
		return nil
	}
	s.box = box
	l, err := decode(box.Value)
	switch {
	case err == nil && l.Token != s.token:
		return nil // for another token; to be overwritten when that begins
	case err == nil && box.Lease != s.entry.Lease: // it would outlive us, and other clients ignore it
		err = fmt.Errorf("%w: the request key is bound to lease %x", eldest.ErrForeignValue, box.Lease)
	}
	var r Request
	if err == nil && l.Request != nil && !l.Taken {
		r, err = l.Request.request(s.entry.Election, eldest.Candidate{Key: s.key, Lease: s.entry.Lease, Token: s.token})
	}
	switch {
	case err != nil:
		name := keys.Request(s.entry.Election, s.entry.Lease)
		serial.Call(&s.hooks, s.cfg.Hooks.Ignored, IgnoredEvent{Election: s.entry.Election, Key: name, Err: err})
		return s.open(ctx, s.token, message{})
	case r.ID == "":
		return nil
	}
	return s.answer(ctx, *l.Request, r)
}

// answer carries a request out or refuses it. An error ends Serve.
func (s *serving) answer(ctx context.Context, q question, r Request) error {
	a := answer{ID: r.ID}
	if s.cfg.Accept != nil && !s.cfg.Accept(r) {
		a.Reason = Declined
		return s.reply(ctx, r, a)
	}
	older, reason, err := s.take(ctx, q, r)
	if err != nil {
		return err
	}
	if reason == "" && r.What == Drain && (len(older) != 1 || older[0].Key != s.key) {
		reason = Changed // another candidate is in between
	}
	if reason != "" {
		a.Reason = reason
		return s.reply(ctx, r, a)
	}
	if r.What == Drain {
		err = s.cfg.Candidate.Drain(s.token, fmt.Errorf("handed over to %q", r.Target.Key))
		if a.Done = err == nil; err != nil {
			a.Reason = Changed
		}
		return s.reply(ctx, r, a)
	}
	// An incomplete requeue would leave a candidate without a waiting caller out of the queue.
	place, err := s.cfg.Candidate.Requeue(context.WithoutCancel(ctx))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		a.Reason = Changed // it leads, or is not queued any more
		return s.reply(ctx, r, a)
	}
	a.Done, a.Token = true, place.Token
	s.answered(r, a)
	return s.open(ctx, place.Token, message{Answer: &a})
}

// take marks a request as taken, if it still exists and the candidates that it names do; otherwise
// it returns the reason. For a drain it returns the candidates that are older than the target.
func (s *serving) take(ctx context.Context, q question, r Request) (older []eldest.Candidate, why Reason, err error) {
	swap := requestkey.Swap{
		Election: s.entry.Election, Lease: s.entry.Lease, Mod: s.box.Mod,
		Value:     message{Token: s.token, Request: &q, Taken: true}.encode(),
		While:     []eldest.Candidate{r.Asked, r.Leader, r.Target},
		Unchanged: q.boxes(r),
	}
	if r.What == Drain {
		swap.Before = r.Target.Token
	}
	for {
		done, err := s.swap(ctx, swap)
		if err != nil {
			return nil, "", err
		}
		if done.Done {
			return done.Older, "", nil
		}
		// The key has changed: either we wrote it, and the reply was lost; or the requester has
		// withdrawn the request, which the watch will deliver as well.
		l, err := decode(done.Key.Value)
		ours := err == nil && l.Taken && l.Request != nil && l.Request.ID == r.ID
		if ours {
			s.box = done.Key // the answer is written to it
		}
		if !ours || done.Gone.Key != "" || done.Key.Mod == swap.Mod {
			return nil, Changed, nil // a candidate's key or request key has changed
		}
		swap.Mod = done.Key.Mod
	}
}

// reply writes an answer into the request key, unless another client has written since.
func (s *serving) reply(ctx context.Context, r Request, a answer) error {
	s.answered(r, a)
	_, err := s.swap(ctx, requestkey.Swap{
		Election: s.entry.Election, Lease: s.entry.Lease, Mod: s.box.Mod,
		Value: message{Token: s.token, Answer: &a}.encode(),
	})
	return err
}

// swap changes the request key and stores its new state.
func (s *serving) swap(ctx context.Context, swap requestkey.Swap) (done requestkey.Swapped, err error) {
	err = s.policy.Until(ctx, func(once context.Context) (err error) {
		done, err = swap.Do(once, s.cfg.KV)
		return err
	})
	if err == nil && done.Done {
		s.box = done.Key
	}
	return done, err
}

func (s *serving) answered(r Request, a answer) {
	serial.Call(&s.hooks, s.cfg.Hooks.Answered, AnsweredEvent{Request: r, Done: a.Done, Reason: a.Reason, Token: a.Token, At: time.Now()})
}
