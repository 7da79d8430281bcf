package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
)

// effectTime bounds how long an action may take.
const effectTime = 15 * time.Second

var errTooLong = fmt.Errorf("it took longer than %v", effectTime)

// task is one action that is carried out.
type task struct {
	in *Sandbox
	// a is the action, as it will be recorded.
	a feed.Action
	// c is the participant on which it is done; nil for other actions.
	c *candidate
	// once means that the action cannot be played again, and so is not recorded.
	once bool
}

// subject is what an action is done to.
type subject uint8

const (
	other subject = iota
	aParticipant
	aMember
	aMessage
)

// deed is how an action is checked and carried out.
type deed struct {
	on subject
	// check checks the action's own fields; nil: there are none.
	check func(feed.Action) error
	// do blocks until the effect was seen, or ctx ends.
	do func(t *task, ctx context.Context) error
}

// deeds are all actions.
var deeds = map[string]deed{
	feed.Add:            {other, checkAdd, (*task).add},
	feed.Resign:         {aParticipant, nil, (*task).resign},
	feed.Leave:          {aParticipant, nil, (*task).leave},
	feed.Kill:           {aParticipant, nil, (*task).kill},
	feed.Restart:        {aParticipant, nil, (*task).restart},
	feed.Stop:           {aParticipant, nil, (*task).stop},
	feed.Continue:       {aParticipant, nil, (*task).resume},
	feed.Cut:            {aParticipant, checkCut, (*task).cut},
	feed.Delay:          {aParticipant, checkDelay, (*task).delay},
	feed.Heal:           {aParticipant, nil, (*task).heal},
	feed.LoseReply:      {aParticipant, nil, (*task).loseReply},
	feed.DeleteKey:      {aParticipant, nil, (*task).deleteKey},
	feed.RevokeLease:    {aParticipant, nil, (*task).revokeLease},
	feed.Transfer:       {aParticipant, nil, (*task).transfer},
	feed.Hold:           {aParticipant, nil, (*task).hold},
	feed.Unhold:         {aParticipant, nil, (*task).unhold},
	feed.Breakpoint:     {aParticipant, checkBreakpoint, (*task).breakpoint},
	feed.SetRule:        {aParticipant, checkRule, (*task).setRule},
	feed.Release:        {aMessage, nil, (*task).release},
	feed.Drop:           {aMessage, nil, (*task).drop},
	feed.MemberKill:     {aMember, nil, (*task).memberKill},
	feed.MemberStop:     {aMember, nil, (*task).memberStop},
	feed.MemberContinue: {aMember, nil, (*task).memberContinue},
	feed.MemberRestart:  {aMember, nil, (*task).memberRestart},
	feed.MoveLeader:     {aMember, nil, (*task).moveLeader},
	feed.Compact:        {other, nil, (*task).compact},
}

// asking are the actions that ask etcd. Without a member they cannot succeed.
var asking = map[string]bool{
	feed.DeleteKey: true, feed.RevokeLease: true, feed.Transfer: true, feed.Compact: true,
}

// Do implements feed.Source.
func (s *Sandbox) Do(ctx context.Context, a feed.Action) error {
	if err := a.Check(); err != nil {
		return feed.Refused("%w", err)
	}
	if a.Do == feed.Reset {
		return s.reset(ctx, a)
	}
	return s.do(ctx, a)
}

// do carries an action out, records it, and adds it to the log with the time at which it began.
func (s *Sandbox) do(ctx context.Context, a feed.Action) error {
	at := s.log.NowMS()
	e, err := s.enter()
	if err != nil {
		s.acted(at, a, err)
		return err
	}
	defer e.actions.Done()
	t := &task{in: s, a: a}
	err = t.carryOut(ctx, e)
	if !errors.Is(err, feed.ErrRefused) && !t.once {
		e.record(at, t.a)
	}
	s.acted(at, a, err)
	return err
}

// carryOut checks an action and carries it out, until ctx or the era ends, and for effectTime at
// most.
func (t *task) carryOut(ctx context.Context, e *era) error {
	if err := t.in.check(t.a); err != nil {
		return err
	}
	d := deeds[t.a.Do]
	if t.a.On != "" && (d.on == aParticipant || d.on == aMessage) {
		t.in.mu.Lock()
		t.c = t.in.candidates[t.a.On]
		t.in.mu.Unlock()
		if t.c == nil {
			return feed.Refused("there is no participant %q", t.a.On)
		}
	}
	if asking[t.a.Do] && t.in.members.running() == 0 {
		return feed.Refused("%w: restart one", inject.ErrNoMember)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, effectTime, errTooLong)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(e.life, func() { end(context.Cause(e.life)) })()
	return d.do(t, ctx)
}

// acted adds an action to the log.
func (s *Sandbox) acted(at float64, a feed.Action, err error) {
	e := feed.Event{AtMS: at, Type: feed.Acted, Action: &a}
	if err != nil {
		e.Error = err.Error()
	}
	s.log.Add(e)
}
