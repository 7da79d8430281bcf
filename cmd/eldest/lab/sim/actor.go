package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/internal/clockctx"
	"github.com/eldest-io/eldest/lease"
)

// actor is a participant: a process on a host that campaigns, leads, writes
// while it leads, and begins again when it is over, until it leaves or crashes.
type actor struct {
	stage  *stage
	name   string
	host   *rig.Host
	rng    *rand.Rand // of this actor alone; nil: no pauses at random
	temper Temper
	clock  *clock
	asked  bool                   // takes part in transfers
	beats  lease.Heartbeat        // zero: none
	mute   bool                   // etcd takes none of them
	rank   func(value []byte) int // nil for those who do not give way
	spoil  spoiler

	mu        sync.Mutex
	started   bool
	stopped   chan struct{} // while the process is: closed when it goes on
	waking    bool          // it goes on, and has not said its first word
	session   contender.Session
	candidate contender.Candidate
	tenure    contender.Tenure
	serving   sync.WaitGroup     // takes part in transfers, until the session ends
	toldLet   bool               // LetGo is in the log for this tenure
	withdraw  context.CancelFunc // ends the campaign that runs
	giveUp    chan struct{}      // closed: resign
	decided   bool               // how the tenure, or this spell of it, ends: in a resignation, or by itself
	byCall    bool               // the last withdrawal was by a call
	aside     sync.WaitGroup     // withdrawals under way
	writes    int                // sent so far; the writer's own, of which there is one at a time
	life      context.Context
	kill      context.CancelFunc
	done      chan struct{}
}

// begin starts the participant's process.
func (a *actor) begin(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = true
	a.life, a.kill = context.WithCancel(ctx)
	a.done = make(chan struct{})
	go a.run()
}

// run is the process: session after session, campaign after campaign.
func (a *actor) run() {
	defer close(a.done)
	for a.life.Err() == nil {
		s, c, err := a.open()
		if err != nil {
			a.rest(200*time.Millisecond, time.Second)
			continue
		}
		a.set(func() { a.session, a.candidate = s, c })
		for a.life.Err() == nil && s.Usable() {
			a.campaign(s, c)
			a.rest(0, a.stage.tempo.rest)
		}
		a.part(s)
	}
}

func (a *actor) open() (contender.Session, contender.Candidate, error) {
	ctx, cancel := context.WithTimeout(a.life, a.stage.ttl)
	defer cancel()
	s, err := a.contender().Open(clockctx.With(ctx, a.clock), a.host.Client, a.stage.ttl)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Candidate(electionName, a.name)
	if err != nil {
		s.Abandon()
	}
	return s, c, err
}

// part closes a session: politely, unless the process is dead by then, in which
// case crash has abandoned it.
func (a *actor) part(s contender.Session) {
	a.mu.Lock()
	mine := a.session == s
	a.session, a.candidate = nil, nil
	a.mu.Unlock()
	if !mine {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), 2*a.stage.ttl)
	defer cancel()
	_ = s.Close(ctx) // what is left then goes with the lease
	a.serving.Wait()
}

// campaign stands once and leads if it wins.
func (a *actor) campaign(s contender.Session, c contender.Candidate) {
	ctx, cancel := context.WithCancel(a.life)
	defer cancel()
	a.set(func() { a.withdraw = cancel })
	a.joins(s)
	t, err := c.Campaign(ctx)
	if err != nil {
		a.tell(oracle.Event{Kind: oracle.Failed, Lost: !s.Usable(), Denied: denied(err), Text: err.Error()})
		if a.rng != nil && a.rng.IntN(4) == 0 && s.Usable() && !a.stage.calm.Load() {
			// Idle with a live session: time for whatever is left to show.
			a.idle(a.stage.ttl, a.stage.ttl+20*time.Second)
		}
		return
	}
	won := oracle.Event{Kind: oracle.Won, Token: t.Token(), Key: t.Key()}
	for a.lead(s, t, won) {
		token := t.Token()
		a.set(func() { a.withdraw = cancel })
		if t, err = c.(resumer).Resume(ctx); err != nil {
			a.set(func() { a.withdraw = nil })
			a.retired(token, err)
			a.tell(oracle.Event{Kind: oracle.Ended, Token: token, Lost: !s.Usable(), Text: err.Error()})
			return
		}
		won.Kind, won.Token = oracle.Resumed, t.Token()
		if t.Token() != token { // its key was gone when it campaigned: this is another tenure
			a.tell(oracle.Event{Kind: oracle.Ended, Token: token, Text: "gone while it was suspended"})
			a.joins(s)
			won.Kind = oracle.Won
		}
	}
}

// resumer is a candidate whose tenures can be suspended.
type resumer interface {
	Resume(ctx context.Context) (contender.Tenure, error)
}

func (a *actor) joins(s contender.Session) {
	e := oracle.Event{Kind: oracle.Joined, Lease: int64(s.Lease())}
	if !a.mute {
		e.Beat = a.beats.Timeout
	}
	a.tell(e)
}

// wins tells that it leads, or leads on.
func (a *actor) wins(t contender.Tenure, won oracle.Event) (contender.Tenure, <-chan struct{}) {
	if a.spoil != nil {
		t = a.spoil(t, a.host.Client)
	}
	giveUp := make(chan struct{})
	a.set(func() { a.withdraw, a.tenure, a.toldLet, a.giveUp, a.decided = nil, t, false, giveUp, false })
	// Now, at the very instant of the win: who else is still sure? Their answers stand
	// before the win in the log, because whoever is not sure was not when it was won.
	for _, other := range a.stage.everybody() {
		if other != a {
			other.ask(a.name)
		}
	}
	a.tell(won)
	return t, giveUp
}

// lead writes until the tenure is over, and tells of its end at the instant at
// which it is told, which may be long before a resignation returns. It reports whether
// the tenure is suspended, and may lead on.
func (a *actor) lead(s contender.Session, t contender.Tenure, won oracle.Event) (suspended bool) {
	t, giveUp := a.wins(t, won)
	var work sync.WaitGroup
	enough := a.enough()
	work.Go(func() { a.serve(t) })
	work.Go(func() {
		select {
		case <-t.Context().Done():
			return
		case <-a.life.Done():
		case <-giveUp:
		case <-enough:
		}
		if a.decide() {
			a.quit(t)
		}
	})
	<-t.Context().Done()
	cause := context.Cause(t.Context())
	retired := a.retired(t.Token(), cause)
	over := oracle.Event{Kind: oracle.Ended, Token: t.Token(), Lost: !s.Usable(), Text: cause.Error()}
	if suspended = errors.Is(cause, eldest.ErrSuspended) && a.decide(); suspended {
		over.Kind, over.Lost = oracle.Suspended, false
	}
	a.tell(over)
	a.set(func() { a.tenure, a.giveUp = nil, nil })
	work.Wait()
	if retired {
		// What it did as leader takes a while to end, and nobody else may lead meanwhile.
		a.rest(0, 200*time.Millisecond)
		a.letGo(t)
	}
	return suspended
}

// retired reports whether the tenure, which leads or is suspended, was asked to end, and says so.
func (a *actor) retired(token int64, cause error) bool {
	was := errors.Is(cause, eldest.ErrRetired)
	if was {
		a.tell(oracle.Event{Kind: oracle.Resigning, Token: token})
	}
	return was
}

// decide reports whether the caller is the first to say how the tenure ends.
func (a *actor) decide() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.decided
	a.decided = true
	return first
}

// serve is what the leader does: where it has heartbeats, as a lead function.
func (a *actor) serve(t contender.Tenure) {
	function, ok := t.(interface {
		Lead(ctx context.Context, f func(context.Context) error) error
	})
	if a.beats.Timeout == 0 || !ok {
		a.write(t)
		return
	}
	_ = function.Lead(a.stage.world.T.Context(), func(context.Context) error {
		a.tell(oracle.Event{Kind: oracle.Serving, Token: t.Token()})
		a.write(t)
		a.tell(oracle.Event{Kind: oracle.Served, Token: t.Token()})
		return nil
	}) // the tenure says why it ended
}

// quit gives the tenure up; a resignation that fails is tried again, as the
// session may go on living.
func (a *actor) quit(t contender.Tenure) {
	a.tell(oracle.Event{Kind: oracle.Resigning, Token: t.Token()})
	a.letGo(t)
}

func (a *actor) letGo(t contender.Tenure) {
	for range 3 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), time.Second)
		err := t.Resign(ctx)
		cancel()
		if err == nil || a.dead() {
			return
		}
	}
}

// ask samples whether the actor is sure to lead, at another's win.
func (a *actor) ask(by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == nil {
		a.askLocked(by)
	}
}

func (a *actor) askLocked(by string) (sure bool) {
	if a.tenure == nil || a.toldLet {
		return false
	}
	kind := oracle.Held
	if sure = a.tenure.Holds(); !sure {
		kind, a.toldLet = oracle.LetGo, true
	}
	a.tell(oracle.Event{Kind: kind, Token: a.tenure.Token(), By: by})
	return sure
}

// enough delivers when a restless leader has led for long enough; never, for others.
func (a *actor) enough() <-chan time.Time {
	most := a.stage.tempo.linger
	if most == 0 || a.rng == nil || a.stage.calm.Load() {
		return nil
	}
	return time.After(time.Duration(a.rng.Int64N(int64(most))))
}

// denied reports whether the store refused a candidacy for its own reasons.
func denied(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

func (a *actor) tell(e oracle.Event) {
	e.Who = a.name
	a.stage.log.Add(e)
}

func (a *actor) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// rest waits for a moment between least and most, or the end of the process.
func (a *actor) rest(least, most time.Duration) { a.wait(least, most, nil) }

// idle is the same, but ends when everything heals: then somebody has to lead.
func (a *actor) idle(least, most time.Duration) { a.wait(least, most, a.stage.healed) }

func (a *actor) wait(least, most time.Duration, healed <-chan struct{}) {
	d := least
	if a.rng != nil {
		d += time.Duration(a.rng.Int64N(int64(most - least + 1)))
	}
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-healed:
	case <-a.life.Done():
	}
}
