package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// show plays a plan, step by step.
type show struct {
	*stage
	plan   *plan
	struck map[string]int
	// trouble is when something last was wrong with a host, by name; "" is the
	// server.
	trouble map[string]time.Duration
	lost    map[string]time.Duration // when a host last lost a reply, by name
	open    []func()                 // count faults that may not have ended
	owed    bool                     // space, to a server that is down
	again   int                      // processes that came after a crash
	asking  sync.WaitGroup           // transfers under way
}

// play runs a plan in a world and judges it.
func play(w *rig.World, impl contender.Contender, p *plan) *result {
	s := &show{
		stage: newStage(w, impl, p.ttl), plan: p,
		struck: map[string]int{}, trouble: map[string]time.Duration{}, lost: map[string]time.Duration{},
	}
	s.tempo = p.tempo
	var v *spectator
	if p.watched {
		v = newSpectator(s.stage, p.seed)
	}
	begun := w.Now()
	stop := s.readAlong()
	for i := range p.actors {
		s.join(fmt.Sprintf("p%d", i+1), p.joins[i])
	}
	for i, st := range p.steps {
		time.Sleep(begun + st.at - w.Now())
		next := p.ttl
		if i+1 < len(p.steps) {
			next = begun + p.steps[i+1].at - w.Now()
		}
		s.step(st, next)
	}
	if p.unhurried {
		time.Sleep(begun + p.over() - w.Now())
	}
	s.calm.Store(true)
	s.heal()
	close(s.healed)
	s.asking.Wait()
	s.settle()
	s.listQueue()
	s.log.Add(oracle.Event{Kind: oracle.Quiet})
	if v != nil {
		v.leave(s.queue())
	}
	stop()
	return s.end()
}

// patient is in how many scenarios one waits to the end although all is well.
const patient = 8

// settle lets time pass in which everything comes right by itself: leases expire, sessions
// are opened, back-offs end. In most scenarios that is over once all has been well for a
// moment; one in a few shows whether it lasts, and so does each that somebody looks at.
func (s *show) settle() {
	const enough = 3
	all := 2*s.plan.ttl + s.plan.tempo.settle
	if s.plan.watched || s.plan.seed%patient == 0 {
		time.Sleep(all)
		return
	}
	look, end := max(250*time.Millisecond, s.plan.ttl/32), s.world.Now()+all
	for well := 0; s.world.Now() < end && well < enough; {
		time.Sleep(min(end-s.world.Now(), look))
		if well++; !s.recovered() {
			well = 0
		}
	}
}

// recovered reports whether all who live stand in the queue, nobody is still to come, no lease
// has yet to expire, and whoever judges the end would find nothing wrong with it.
func (s *show) recovered() bool {
	living := 0
	for _, a := range s.everybody() {
		started, lives := a.state()
		if !started {
			return false
		}
		if lives {
			living++
		}
	}
	if len(s.queue()) != living {
		return false
	}
	leases, err := s.admin.Client.Leases(s.world.T.Context())
	if err != nil || len(leases.Leases) != living {
		return false
	}
	h := s.history()
	h.Events = append(h.Events, oracle.Event{At: s.world.Now(), Kind: oracle.Quiet, Rev: s.world.Server.Rev()})
	return len(oracle.I5(h)) == 0
}

// join lets a new participant begin after a while.
func (s *show) join(name string, after time.Duration) {
	a := s.enter(name)
	n := len(s.everybody()) % s.plan.actors
	a.host.Settle(s.plan.trips[n])
	a.temper = s.plan.temper[n]
	a.clock = newClock(a.temper.Rate)
	s.plan.partake(a, n)
	if s.plan.beats != nil {
		a.beats, a.mute = s.plan.beats[n], s.plan.mute
	}
	a.spoil = s.plan.spoil
	a.rng = rand.New(rand.NewPCG(s.plan.seed, uint64(len(s.everybody()))))
	life := s.world.T.Context()
	if after == 0 {
		a.begin(life)
		return
	}
	time.AfterFunc(after, func() { a.begin(life) })
}

// heal ends what is still wrong.
func (s *show) heal() {
	require.NoError(s.world.T, s.world.Server.Start())
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	for _, judge := range open {
		judge()
	}
	s.space()
	require.False(s.world.T, s.owed)
	for _, a := range s.everybody() {
		a.host.Forget()
		a.goOn(true)
		a.host.Starve(0, nil)
		a.host.Heal()
		a.host.Hurry()
	}
	s.log.Add(oracle.Event{Kind: oracle.Healed, Text: "everything heals"})
}

// listQueue tells whose keys are there when all has settled.
func (s *show) listQueue() {
	var keys []string
	for _, k := range s.queue() {
		keys = append(keys, k.Key)
	}
	now := s.world.Now()
	s.log.Add(oracle.Event{Kind: oracle.Queue, Until: now, Keys: keys})
}

// end lets everybody leave, and judges all.
func (s *show) end() *result {
	r := &result{impl: s.impl.Name(), plan: s.plan, violations: s.finish(), virtual: s.world.Now()}
	s.mu.Lock()
	r.struck = s.struck // counting has ended
	s.mu.Unlock()
	s.tally()
	r.history = s.history()
	r.tally = r.history.Tally()
	return r
}
