package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/mailbox"
	"github.com/eldest-io/eldest/keys"
)

// received acts on what somebody has written into the mailbox. An error ends Serve.
func (s *serving) received(ctx context.Context, n news) error {
	box := n.box
	// Invariant: revisions are compared with s.box.Mod only where both are of one history.
	// One that a backup has brought back begins anew below it, and so must the mailbox: else
	// every letter would look older than what we wrote.
	switch {
	case s.box.Mod == 0:
		return nil // there is none of ours
	case n.at <= s.box.Mod && !n.back:
		return nil // we wrote this ourselves or have overwritten it
	case n.at <= s.box.Mod, box.Mod < s.box.Mod:
		return s.open(ctx, s.token, letter{}) // somebody deleted it, or brought an older one back
	case box.Mod == s.box.Mod:
		return nil
	}
	s.box = box
	l, err := decode(box.Value)
	switch {
	case err == nil && l.Token != s.token:
		return nil // for another life; to be overwritten when that begins
	case err == nil && box.Lease != s.entry.Lease: // it would outlive us, and others do not read it
		err = fmt.Errorf("%w: a mailbox that is bound to lease %x", eldest.ErrForeignValue, box.Lease)
	}
	var r Request
	if err == nil && l.Request != nil && !l.Taken {
		r, err = l.Request.request(s.entry.Election, eldest.Candidate{Key: s.key, Lease: s.entry.Lease, Token: s.token})
	}
	switch {
	case err != nil:
		s.ignored(err)
		return s.open(ctx, s.token, letter{})
	case r.ID == "":
		return nil
	}
	return s.answer(ctx, *l.Request, r)
}

// answer obeys a request or refuses it. An error ends Serve.
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
		reason = Changed // somebody stands between
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
	// Half a step would leave a candidate that nobody waits for out of the queue.
	place, err := s.cfg.Candidate.Requeue(context.WithoutCancel(ctx))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		a.Reason = Changed // it leads, or does not stand any more
		return s.reply(ctx, r, a)
	}
	a.Done, a.Token = true, place.Token
	s.answered(r, a)
	return s.open(ctx, place.Token, letter{Answer: &a})
}

// take marks a request as taken, if it is still there and those whom it names stand; else
// it returns why not. For a drain it returns who is older than the target.
func (s *serving) take(ctx context.Context, q question, r Request) (older []eldest.Candidate, why Reason, err error) {
	swap := mailbox.Swap{
		Election: s.entry.Election, Lease: s.entry.Lease, Mod: s.box.Mod,
		Value: letter{Token: s.token, Request: &q, Taken: true}.encode(),
		While: []eldest.Candidate{r.Asked, r.Leader, r.Target},
		Boxes: q.boxes(r),
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
		// Somebody wrote: ourselves, and the reply was lost; or the one who asked, to
		// take the request back, which the watch will tell as well.
		l, err := decode(done.Box.Value)
		ours := err == nil && l.Taken && l.Request != nil && l.Request.ID == r.ID
		if ours {
			s.box = done.Box // the answer goes there
		}
		if !ours || done.Gone.Key != "" || done.Box.Mod == swap.Mod {
			return nil, Changed, nil // somebody's key or mailbox is not as it was
		}
		swap.Mod = done.Box.Mod
	}
}

// reply writes an answer into the mailbox, if nobody else has written since.
func (s *serving) reply(ctx context.Context, r Request, a answer) error {
	s.answered(r, a)
	_, err := s.swap(ctx, mailbox.Swap{
		Election: s.entry.Election, Lease: s.entry.Lease, Mod: s.box.Mod,
		Value: letter{Token: s.token, Answer: &a}.encode(),
	})
	return err
}

// swap changes the mailbox and notes what it is after that.
func (s *serving) swap(ctx context.Context, swap mailbox.Swap) (done mailbox.Swapped, err error) {
	err = s.policy.Until(ctx, func(once context.Context) (err error) {
		done, err = swap.Do(once, s.cfg.KV)
		return err
	})
	if err == nil && done.Done {
		s.box = done.Box
	}
	return done, err
}

func (s *serving) answered(r Request, a answer) {
	if told := s.cfg.Hooks.Answered; told != nil {
		event := AnsweredEvent{Request: r, Done: a.Done, Reason: a.Reason, Token: a.Token, At: time.Now()}
		s.hooks.Do(func() { told(event) })
	}
}

func (s *serving) ignored(err error) {
	if told := s.cfg.Hooks.Ignored; told != nil {
		event := IgnoredEvent{Election: s.entry.Election, Key: keys.Mailbox(s.entry.Election, s.entry.Lease), Err: err}
		s.hooks.Do(func() { told(event) })
	}
}
