package bench

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest/bench/contender"
)

// do carries a call out, on the worker's side.
func (w *worker) do(ctx context.Context, call workCall) (answer workAnswer, err error) {
	switch call.Op {
	case opWire:
		counted, err := w.host.Wire(ctx)
		answer.Wire = &counted
		return answer, err
	case opShift:
		return answer, w.host.Shift(ctx, call.By)
	case opCut:
		return answer, w.host.Cut(ctx, call.Cut)
	case opOpen:
		s, err := w.host.Open(ctx, call.Contender, call.TTL)
		if err == nil {
			answer.Ref = w.name(&hosted{Session: s})
		}
		return answer, err
	case opObserve:
		if call.Size == nil {
			return answer, fmt.Errorf("a crowd without a size")
		}
		c, err := w.host.Observe(ctx, call.Contender, call.Election, *call.Size)
		if err == nil {
			answer.Ref = w.name(c)
		}
		return answer, err
	case opAwait:
		c, err := thing[Crowd](w, call.Of)
		if err != nil {
			return answer, err
		}
		seen, err := c.Await(ctx, call.Key)
		answer.First, answer.Last = stamp(seen.First), stamp(seen.Last)
		return answer, err
	case opCandidate:
		return w.candidate(call)
	case opClose:
		return answer, w.closeOne(ctx, call.Of)
	default:
		return w.doFor(ctx, call)
	}
}

// candidate makes one, which goes with its session.
func (w *worker) candidate(call workCall) (answer workAnswer, err error) {
	s, err := thing[*hosted](w, call.Of)
	if err != nil {
		return answer, err
	}
	c, err := s.Candidate(call.Election, call.Value)
	if err != nil {
		return answer, err
	}
	answer.Ref = w.name(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	s.candidates = append(s.candidates, answer.Ref)
	return answer, nil
}

func (w *worker) closeOne(ctx context.Context, of int64) error {
	if c, err := thing[Crowd](w, of); err == nil {
		w.forget(of)
		c.Close(ctx)
		return nil
	}
	s, err := thing[*hosted](w, of)
	if err != nil {
		return err
	}
	w.forget(of)
	return s.Close(ctx)
}

// doFor is do for the calls about a candidate.
func (w *worker) doFor(ctx context.Context, call workCall) (answer workAnswer, err error) {
	c, err := thing[contender.Candidate](w, call.Of)
	if err != nil {
		return answer, err
	}
	switch call.Op {
	case opCampaign:
		won, err := lead(ctx, c)
		if err == nil {
			answer.At, answer.Key, answer.Tells = stamp(won), c.Key(), c.Lost() != nil
		}
		return answer, err
	case opLost:
		select {
		case at := <-c.Lost():
			answer.At = stamp(at)
			return answer, nil
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		}
	case opResign:
		return answer, c.Resign(ctx)
	case opPut:
		return answer, c.Put(ctx, call.Key, call.Value)
	default:
		return answer, fmt.Errorf("the worker knows no %q", call.Op)
	}
}
