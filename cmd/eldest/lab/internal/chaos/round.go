package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// question bounds one request of the monitor: the member that receives it may be restarting.
const question = 700 * time.Millisecond

// Round is the result of a round.
type Round struct {
	Plan
	// From and Till are instants of the history.
	From time.Duration `json:"from"`
	Till time.Duration `json:"till"`
	// Effects are the faults that took effect, with their targets.
	Effects []Effect `json:"struck"`
	// Invalid is why the round proves nothing.
	Invalid string `json:"invalid,omitempty"`
	// Unsettled is why the election did not settle.
	Unsettled string `json:"unsettled,omitempty"`
	// Recovered is how long the election took to settle.
	Recovered time.Duration `json:"recovered"`
}

// Effect is a fault that took effect.
type Effect struct {
	Fault Fault  `json:"fault"`
	On    string `json:"on"`
}

// round carries out one round. An error means that the series cannot go on.
func (s *series) round(ctx context.Context, p Plan) (r Round, err error) {
	r = Round{Plan: p, From: s.now()}
	defer func() { r.Till = s.now() }()
	s.note("round %d: %v", p.Number, p)
	var healers []healer
	for i, in := range p.Injections {
		on, heal, err := s.inject(ctx, in, p.Injections[i+1:])
		if heal != nil {
			healers = append(healers, heal)
		}
		if err != nil {
			r.Invalid = err.Error()
			break
		}
		r.Effects = append(r.Effects, Effect{in.Fault, on})
		_ = scenario.Sleep(ctx, in.Alone) // ctx is checked below
	}
	if r.Invalid == "" {
		_ = scenario.Sleep(ctx, p.Hold)
	}
	// In any case all faults are healed: no process may remain stopped.
	if err := s.heal(healers); err != nil {
		return r, fmt.Errorf("round %d is not healed: %w", p.Number, err)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	healed := s.now()
	s.tell(oracle.Event{Kind: oracle.Healed})
	r.Unsettled, err = s.settle(ctx, healed)
	r.Recovered = s.now() - healed
	return r, err
}

// inject injects a fault, and blocks until it has taken effect, for s.patience at most. Before a fault of
// members, the target of the next fault is chosen if not every participant can have that: without a
// majority nobody moves in the queue, and nobody knows who is next.
func (s *series) inject(ctx context.Context, in Injection, then []Injection) (on string, heal healer, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	k := kindOf(in.Fault)
	if k.group == members && len(then) > 0 && kindOf(then[0].Fault).fits != nil {
		if then[0].target, err = s.pick(ctx, then[0], kindOf(then[0].Fault).fits); err != nil {
			return "", nil, fmt.Errorf("%s: %w", then[0], err)
		}
	}
	c := in.target
	if k.of != nil && c == nil {
		c, err = s.pick(ctx, in, k.fits)
	}
	switch {
	case err != nil:
	case k.of != nil:
		on = c.who
		s.note("%s: %s", on, in)
		heal, err = k.of(ctx, s, c, in)
	default:
		on, heal, err = k.on(ctx, s, in)
	}
	if err != nil {
		return on, heal, fmt.Errorf("%s: %w", in, err)
	}
	s.tell(oracle.Event{Kind: oracle.Struck, Text: string(in.Fault)})
	return on, heal, nil
}

// heal ends all faults, the last one first, and blocks until etcd answers.
func (s *series) heal(healers []healer) error {
	ctx, cancel := context.WithTimeout(context.Background(), healTime)
	defer cancel()
	var errs []error
	for _, heal := range slices.Backward(healers) {
		err := heal(ctx)
		for err != nil && scenario.Sleep(ctx, 50*time.Millisecond) == nil {
			err = heal(ctx)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := inject.Answers(ctx, s.All, true, question); err != nil {
		return fmt.Errorf("etcd does not answer although all faults are healed: %w", err)
	}
	return nil
}

// settle blocks until the election has settled, for the recovery time at most, and records the
// queue. It returns what is wrong if the election has not settled; err is for failures that make
// the series invalid.
func (s *series) settle(ctx context.Context, healed time.Duration) (wrong string, err error) {
	before := s.recorded.revision() // the leader must write after the faults, not only before
	for {
		why, queue := s.unsettled(ctx, before)
		if why == "" {
			s.Add(queue)
			return "", nil
		}
		if s.now() > healed+s.cfg.Recovery() {
			return why, s.tellQueue(ctx)
		}
		if err := scenario.Sleep(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// unsettled returns what is not yet as it should be, or "" if one participant leads and has written
// after a revision, all others wait, and the queue has only their keys, the leader's first.
func (s *series) unsettled(ctx context.Context, after int64) (why string, queue oracle.Event) {
	var want []string
	var leader oracle.Event
	living := s.living()
	for _, c := range living {
		e := c.last()
		switch e.Kind {
		case oracle.Won, oracle.Resumed:
			if leader.Key != "" {
				return "two participants lead", queue
			}
			leader = e
		case oracle.Joined:
		default:
			return c.who + " is not a candidate", queue
		}
		want = append(want, keys.Candidate(electionName, e.Lease))
	}
	switch {
	case len(living) < s.cfg.Participants:
		return "a participant has ended", queue
	case leader.Key == "":
		return "no participant leads", queue
	case !s.recorded.wrote(leader.Token, after):
		return fmt.Sprintf("the leader (token %d) does not write", leader.Token), queue
	}
	queue, err := s.list(ctx)
	if err != nil {
		return "etcd does not answer: " + err.Error(), queue
	}
	have := slices.Sorted(slices.Values(queue.Keys))
	slices.Sort(want)
	switch {
	case !slices.Equal(have, want):
		return fmt.Sprintf("the queue is %s, the candidates have %s", strings.Join(have, " "), strings.Join(want, " ")), queue
	case queue.Keys[0] != leader.Key:
		return fmt.Sprintf("%s leads, but %s is older", leader.Key, queue.Keys[0]), queue
	}
	return "", queue
}

// list reads the queue, and returns it as an event.
func (s *series) list(ctx context.Context) (oracle.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, question)
	defer cancel()
	e := oracle.Event{Kind: oracle.Queue, At: s.now(), Keys: []string{}}
	kvs, _, err := s.Queue(ctx, electionName)
	if err != nil {
		return e, err
	}
	e.Until = s.now()
	for _, kv := range kvs {
		e.Keys = append(e.Keys, string(kv.Key))
	}
	return e, nil
}

// tellQueue records the current queue, for the oracle to judge.
func (s *series) tellQueue(ctx context.Context) error {
	var err error
	for range 5 {
		var queue oracle.Event
		if queue, err = s.list(ctx); err == nil {
			s.Add(queue)
			return nil
		}
	}
	return fmt.Errorf("etcd does not answer although all faults are healed: %w", err)
}
