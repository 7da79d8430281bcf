package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	// effectTime bounds how long an action may take.
	effectTime = 15 * time.Second
	// mostDelay is the longest delay of a message.
	mostDelay = time.Minute
)

var errTooLong = fmt.Errorf("it took longer than %v", effectTime)

// task is one action that is carried out.
type task struct {
	in *Sandbox
	// The action, as it will be recorded.
	feed.Action
	ctx context.Context
	era *era
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
	aMessage // of a participant, or with its number
)

// deed is how an action is carried out.
type deed struct {
	on subject
	// lives are those of the participant in which the action makes sense; nil: any.
	lives []feed.Life
	// do blocks until the effect was seen, or the task's ctx ends.
	do func(*task) error
}

// Lives in which actions make sense.
var (
	running       = []feed.Life{feed.Running}
	stopped       = []feed.Life{feed.Stopped}
	dead          = []feed.Life{feed.Dead}
	runningOrDead = []feed.Life{feed.Running, feed.Dead}
	notDead       = []feed.Life{feed.Starting, feed.Running, feed.Stopped}
	notLeft       = []feed.Life{feed.Starting, feed.Running, feed.Stopped, feed.Dead}
)

// deeds are all actions but Reset, which ends them.
var deeds = map[string]deed{
	feed.Add:      {other, nil, (*task).add},
	feed.Resign:   {aParticipant, running, (*task).resign},
	feed.Leave:    {aParticipant, runningOrDead, (*task).leave},
	feed.Kill:     {aParticipant, notDead, (*task).kill},
	feed.Restart:  {aParticipant, dead, (*task).restart},
	feed.Stop:     {aParticipant, running, (*task).stop},
	feed.Continue: {aParticipant, stopped, (*task).resume},
	feed.SetRule:  {aParticipant, runningOrDead, (*task).setRule},

	feed.Cut:       onNetwork(func(p *feed.ParticipantState, a feed.Action) { p.Cut = cmp.Or(a.Way, bothWays) }),
	feed.Delay:     onNetwork(func(p *feed.ParticipantState, a feed.Action) { p.DelayMS = a.MS }),
	feed.LoseReply: onNetwork(func(p *feed.ParticipantState, _ feed.Action) { p.LoseReply = true }),
	feed.Heal: onNetwork(func(p *feed.ParticipantState, _ feed.Action) {
		p.Cut, p.DelayMS, p.LoseReply = "", 0, false
	}),
	feed.Hold: onNetwork(func(p *feed.ParticipantState, _ feed.Action) { p.Hold = true }),
	feed.Breakpoint: onNetwork(func(p *feed.ParticipantState, a feed.Action) {
		p.Breakpoints = slices.Clone(a.Breakpoints)
	}),
	feed.Unhold:  onNetwork(func(p *feed.ParticipantState, _ feed.Action) { p.Hold, p.Breakpoints = false, nil }),
	feed.Release: {aMessage, nil, func(t *task) error { return t.decide(true) }},
	feed.Drop:    {aMessage, nil, func(t *task) error { return t.decide(false) }},

	feed.DeleteKey:   {aParticipant, nil, (*task).deleteKey},
	feed.RevokeLease: {aParticipant, nil, (*task).revokeLease},
	feed.Transfer:    {aParticipant, nil, (*task).transfer},
	feed.Compact:     {other, nil, (*task).compact},

	feed.MemberKill:     onMember(notDead, func(_ *task, m *etcdtest.Member) error { return m.Kill() }),
	feed.MemberStop:     onMember(running, func(_ *task, m *etcdtest.Member) error { return m.Stop() }),
	feed.MemberContinue: onMember(stopped, func(_ *task, m *etcdtest.Member) error { return m.Cont() }),
	feed.MemberRestart: onMember(dead, func(t *task, m *etcdtest.Member) error {
		return t.in.restartMembers(t.ctx, m.Index)
	}),
	feed.MoveLeader: onMember(running, func(t *task, m *etcdtest.Member) error {
		return t.in.field.MoveLeader(t.ctx, m.Index)
	}),
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
		// Its own event comes after that of the beginning, at which the page forgets all that was before.
		err := s.begin(ctx, s.initial())
		s.acted(s.log.NowMS(), a, err)
		return err
	}
	at := s.log.NowMS()
	e, err := s.enter()
	if err != nil {
		s.acted(at, a, err)
		return err
	}
	defer e.running.Done()
	t := &task{in: s, era: e, Action: a}
	err = t.carryOut(ctx)
	if !errors.Is(err, feed.ErrRefused) && !t.once {
		e.record(at, t.Action)
	}
	s.acted(at, a, err)
	return err
}

// acted adds an action to the log, with the time at which it began.
func (s *Sandbox) acted(at float64, a feed.Action, err error) {
	e := feed.Event{AtMS: at, Type: feed.Acted, Action: &a}
	if err != nil {
		e.Error = err.Error()
	}
	s.log.Add(e)
}

// carryOut checks an action and carries it out, until ctx or the era ends, and for effectTime at most.
func (t *task) carryOut(ctx context.Context) error {
	if err := t.in.check(t.Action); err != nil {
		return err
	}
	d := deeds[t.Do]
	if t.On != "" && (d.on == aParticipant || d.on == aMessage) {
		if t.c = t.era.candidate(t.On); t.c == nil {
			return feed.Refused("there is no participant %q", t.On)
		}
		if err := permit(t.On, t.c.life(), d.lives); err != nil {
			return err
		}
	}
	if asking[t.Do] && t.in.runningMembers() == 0 {
		return feed.Refused("%w: restart one", inject.ErrNoMember)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, effectTime, errTooLong)
	defer cancel()
	t.ctx, cancel = endsWith(ctx, t.era.ctx)
	defer cancel()
	return brief(d.do(t))
}

// permit refuses what makes no sense in the present life of a participant or a member.
func permit(name string, now feed.Life, wanted []feed.Life) error {
	if wanted == nil || slices.Contains(wanted, now) {
		return nil
	}
	switch {
	case now == feed.Left:
		return feed.Refused("%s has left: add another participant", name)
	case now == feed.Dead:
		return feed.Refused("%s is dead: restart it first", name)
	case now == feed.Starting:
		return feed.Refused("%s is starting: try again in a moment", name)
	case now == feed.Stopped && slices.Contains(wanted, feed.Running):
		return feed.Refused("%s is stopped: continue it first", name)
	case slices.Contains(wanted, feed.Dead):
		return feed.Refused("%s is %s: kill it first", name, now)
	}
	return feed.Refused("%s is running: only a stopped member or participant can be continued", name)
}

// kindOfMessages matches a method and a kind of messages of package transcript.
var kindOfMessages = regexp.MustCompile(`^[^ ]{1,56} (request|answer|event|end)$`)

// check checks what an action is, without the present state of the sandbox.
func (s *Sandbox) check(a feed.Action) error {
	d, known := deeds[a.Do]
	switch {
	case a.Do == feed.Evict:
		return feed.Refused("%s is for an existing cluster", a.Do)
	case !known:
		return feed.Refused("unknown action %.64q", a.Do)
	case d.on == aParticipant && a.On == "" && (a.Do != feed.DeleteKey || a.Key == ""):
		return feed.Refused("%s needs a participant", a.Do)
	case d.on == aMessage && a.On == "" && a.Message == 0:
		return feed.Refused("%s needs a message, or a participant", a.Do)
	case d.on == aMember && (a.Member < 0 || a.Member >= s.cfg.Members):
		return feed.Refused("there is no member %d: they are numbered from 0 to %d", a.Member, s.cfg.Members-1)
	case a.Do == feed.Add && !slices.Contains(feed.Kinds, a.Kind):
		return feed.Refused("unknown kind of participant %.64q", a.Kind)
	case !slices.Contains([]string{"", bothWays, requests, replies}, a.Way):
		return feed.Refused("unknown way %.64q: want %s, %s or %s", a.Way, bothWays, requests, replies)
	case !(a.MS >= 0 && a.MS <= feed.Milliseconds(mostDelay)): // NaN is refused as well
		return feed.Refused("a delay of %v ms: want 0 to %v", a.MS, feed.Milliseconds(mostDelay))
	}
	for _, b := range a.Breakpoints {
		if !kindOfMessages.MatchString(b) {
			const want = `want a method and one of request, answer, event, end, such as "Txn answer"`
			return feed.Refused("unknown kind of messages %.64q: %s", b, want)
		}
	}
	return checkRule(a.Rule, a.Kind)
}

// brief returns an error without the end of etcd's log that follows it, besides the first line.
func brief(err error) error {
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	lines := strings.SplitN(err.Error(), "\n", 3)
	return errors.New(lines[0] + ": " + shortened(strings.TrimSpace(lines[1])))
}
