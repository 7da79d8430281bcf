package transfer

import (
	"cmp"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
)

// ask writes one request into a candidate's request key and waits for the answer. If that does not
// come in time, or ctx ends, the request is withdrawn. It returns an answer that is Done, or an
// error with the reason why there is none.
func (h *handover) ask(ctx context.Context, m Member, what What) (answer, error) {
	asked := h.plan.asked
	q := question{ID: newID(), What: what, Leader: lifeOf(asked[len(asked)-1]), Target: lifeOf(h.plan.target)}
	box, err := h.put(ctx, m, q)
	if err != nil && box.Mod == 0 {
		return answer{}, err
	}
	var l message
	if err == nil {
		waiting, cancel := context.WithTimeoutCause(ctx, h.options.Timeout, errEnoughWaiting)
		l, err = h.listen(waiting, m, q.ID)
		cancel()
	}
	if err != nil {
		l, err = h.takeBack(ctx, m, q.ID, box, err)
	}
	switch {
	case err != nil:
		return answer{}, err
	case l.Answer == nil || l.Answer.ID != q.ID:
		// The request key belongs to another token, or was deleted, possibly with the candidacy.
		return answer{}, &vanishedError{h.refuse(Changed, m)}
	case !l.Answer.Done:
		reason := l.Answer.Reason
		if reason == "" {
			reason = Declined
		}
		return answer{}, h.refuse(reason, m)
	}
	return *l.Answer, nil
}

// vanishedError is a refusal with an open outcome: the candidate may have carried the request out
// and left before the answer was read.
type vanishedError struct{ *Refusal }

func (e *vanishedError) Unwrap() error { return e.Refusal }

func (h *handover) refuse(reason Reason, m Member) *Refusal {
	return &Refusal{Reason: reason, Who: []eldest.Candidate{m.Candidate}}
}

// put writes the request, if the request key has not changed and all candidates that the request
// names exist. If it returns both an error and a Box, the request may have been written, or be
// written later while the request key has not changed.
func (h *handover) put(ctx context.Context, m Member, q question) (requestkey.Key, error) {
	r := Request{What: q.What, Leader: h.plan.Leader, Target: h.plan.Target}
	swap := requestkey.Swap{
		Election: h.plan.Election, Lease: m.Lease, Mod: m.mod,
		Value:     message{Token: m.Token, Request: &q}.encode(),
		While:     []eldest.Candidate{m.Candidate, h.plan.Leader, h.plan.Target},
		Unchanged: q.boxes(r),
	}
	var done requestkey.Swapped
	unsure := false
	err := policy(h.clients.KV).Until(ctx, func(once context.Context) (err error) {
		done, err = swap.Do(once, h.clients.KV)
		unsure = unsure || errors.Is(err, eldest.ErrOutcomeUnknown)
		return err
	})
	switch {
	case err != nil && unsure:
		return requestkey.Key{Mod: m.mod}, cmp.Or(context.Cause(ctx), err) // takeBack finds the outcome
	case err != nil:
		return requestkey.Key{}, err
	case done.Done:
		return done.Key, nil
	case unsure && done.Key.Mod != m.mod:
		// The reply of an earlier attempt was lost. The request may have been carried out by now; then it
		// is the reason why the request key has changed, or why a candidate has left. The old mod
		// revision is returned, because the current one may be that of a request that was taken since,
		// which must not be withdrawn.
		return requestkey.Key{Mod: m.mod}, nil
	case done.Gone.Key != "":
		return requestkey.Key{}, &Refusal{Reason: Changed, Who: []eldest.Candidate{done.Gone}}
	case done.Key.Mod == 0:
		return requestkey.Key{}, h.refuse(Changed, m) // it no longer takes part
	}
	return requestkey.Key{}, h.refuse(Busy, m)
}

// waits reports whether a request key still contains the request.
func waits(box requestkey.Key, id string) bool {
	l, err := decode(box.Value)
	return err == nil && l.Request != nil && l.Request.ID == id
}

// listen waits until the request key no longer contains the request, and returns the new message;
// the zero message if the key was deleted or cannot be read.
func (h *handover) listen(ctx context.Context, m Member, id string) (message, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel() // Follow does not close its watch
	var got message
	look := func(kv *mvccpb.KeyValue) (enough bool) {
		got = message{}
		if kv != nil {
			if l, err := decode(kv.Value); err == nil {
				got = l
			}
		}
		return got.Request == nil || got.Request.ID != id
	}
	err := h.source.Follow(watching, watch.Target{
		Key: keys.Request(h.plan.Election, m.Lease),
		Snapshot: func(resp *clientv3.GetResponse) bool {
			if len(resp.Kvs) == 0 {
				return look(nil)
			}
			return look(resp.Kvs[0])
		},
		Change: func(_ int64, events []*clientv3.Event) bool {
			for _, e := range events {
				if e.Type == mvccpb.DELETE && look(nil) || e.Type == mvccpb.PUT && look(e.Kv) {
					return true // the first relevant one: the answer may be overwritten
				}
			}
			return false
		},
		Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) {
			return clientv3.OpGet(keys.Request(h.plan.Election, m.Lease)), func(answer clientv3.OpResponse) bool {
				kvs := answer.Get().Kvs
				return len(kvs) > 0 && waits(requestkey.KeyOf(kvs[0]), id)
			}
		},
	})
	return got, err
}

// takeBack withdraws a request that was not answered because of why, and returns why as the error
// to report; or, if it cannot be withdrawn, the message that replaced it.
func (h *handover) takeBack(ctx context.Context, m Member, id string, asked requestkey.Key, why error) (message, error) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), election.DefaultTimeout)
	defer cancel()
	swap := requestkey.Swap{
		Election: h.plan.Election, Lease: m.Lease, Mod: asked.Mod, Value: message{Token: m.Token}.encode(),
	}
	var done requestkey.Swapped
	err := policy(h.clients.KV).Until(late, func(once context.Context) (err error) {
		done, err = swap.Do(once, h.clients.KV)
		if l, derr := decode(done.Key.Value); err == nil && !done.Done && derr == nil &&
			l.Request != nil && l.Request.ID == id && !l.Taken && done.Key.Mod != swap.Mod {
			swap.Mod = done.Key.Mod // that of the request, whose reply was lost
			done, err = swap.Do(once, h.clients.KV)
		}
		return err
	})
	refusal := h.refuse(NoAnswer, m)
	refusal.Unknown = true
	unknown := func() error {
		if errors.Is(why, errEnoughWaiting) {
			return refusal
		}
		return errors.Join(why, refusal)
	}
	if err != nil {
		return message{}, unknown()
	}
	l, derr := decode(done.Key.Value)
	switch {
	case done.Done, derr == nil && l.Request == nil && l.Answer == nil && l.Token == m.Token:
		// Withdrawn now, or by an attempt whose reply was lost.
		refusal.Unknown = false
		return message{}, unknown()
	case derr != nil || l.Request == nil || l.Request.ID != id:
		return l, nil // answered at the last moment, or deleted
	}
	return message{}, unknown()
}
