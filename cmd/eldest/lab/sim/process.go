package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// rng makes the source of what is random while a step lasts.
func (s *show) rng(st step) *rand.Rand {
	return rand.New(rand.NewPCG(s.plan.seed, uint64(st.at)))
}

// crash ends a process, and lets another one come.
func (s *show) crash(a *actor, st step) {
	how := "crash, power lost"
	if st.reset {
		how = "crash, process only"
	}
	s.count(how, true)
	a.crash(st.reset)
	if st.lasts > 0 {
		s.again++
		s.join(fmt.Sprintf("r%d", s.again), st.lasts)
	}
}

// starve lets a process wait for a processor at every point.
func (s *show) starve(a *actor, st step) {
	s.bother(a, st.lasts+2*st.lag)
	a.host.Starve(st.lag, s.rng(st))
	s.endsAfter(st.lasts, string(starve), func() int { return a.host.Effects().Starved }, func() { a.host.Starve(0, nil) })
}

// freeze stops a process and lets it go on after a while: at once, or when it comes to
// a point.
func (s *show) freeze(a *actor, st step) {
	if st.point == "" {
		s.stopNow(a, st)
		return
	}
	a.host.Set(&rig.Trap{Match: matcher(st.point), After: st.after, Strike: func() {
		if goesOn := s.stopNow(a, st); st.gone && goesOn != nil {
			<-goesOn
		}
	}})
	what := st.point
	if what == "watch" && !st.after {
		what = "registration" // who enters opens one; who hears of an end does not
	}
	if !st.unforced {
		s.force(a, what)
	}
}

// stopNow stops a process, and counts the stop when it is over: that its lease was over
// by then and it had led, is what it was for.
func (s *show) stopNow(a *actor, st step) (goesOn <-chan struct{}) {
	if s.calm.Load() {
		return nil
	}
	goesOn, first := a.stop()
	if !first {
		return goesOn
	}
	s.bother(a, st.lasts)
	led := a.token()
	time.AfterFunc(st.lasts, func() { s.goOn(a, st, led) })
	return goesOn
}

// goOn ends a stop, unless something else has.
func (s *show) goOn(a *actor, st step, led int64) {
	if !a.goOn(st.asked) {
		return
	}
	where := "anywhere"
	if st.point != "" {
		where = fmt.Sprintf("before the %s", st.point)
		if st.after {
			where = fmt.Sprintf("at the reply of the %s", st.point)
		}
	}
	s.count("stopped "+where, true)
	if led == 0 {
		return
	}
	for _, k := range s.queue() {
		if k.Create == led {
			s.count("leader stopped, lease kept", true)
			return
		}
	}
	s.count("leader stopped past its lease", true)
}

// force makes a request come that would not by itself, or not soon.
func (s *show) force(a *actor, what string) {
	switch what {
	case "read", "watch":
		_ = s.goesBefore(a) || a.quitWaiting() || a.resign()
	case "registration":
		_ = a.quitWaiting() || a.resign()
	case "departure":
		_ = a.resign() || a.quitWaiting()
	case "grant":
		s.byHand(a, revoke, 0)
	}
}

// first reports whether the loss of a reply that just struck is the participant's first
// within a TTL. Several may have waited for their requests since the participant was
// cut off, and two in a row are more than a session must survive.
func (s *show) first(a *actor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, again := s.lost[a.name]
	s.lost[a.name] = s.world.Now()
	return !again || s.world.Now()-last > s.ttl
}

// goesBefore makes the leader resign if the participant is the next, for whom that is
// the moment at which most depends on every request. It reports whether it was so.
func (s *show) goesBefore(a *actor) bool {
	q := s.queue()
	if len(q) < 2 || oracle.LeaseOf(q[1].Key) != a.lease() {
		return false
	}
	leader := s.owner(oracle.LeaseOf(q[0].Key))
	return leader != nil && leader.resign()
}

// lose arms the loss of a reply, and makes the request come if it would not by
// itself.
func (s *show) lose(a *actor, st step) {
	harmless := !st.reset && (st.reply == "renewal" || st.reply == confirmation)
	a.host.Set(&rig.Trap{Match: matcher(st.reply), After: true, Lose: true, Strike: func() {
		s.count("reply lost: "+st.reply, true)
		if !s.first(a) || !harmless { // one of these lost must not matter
			s.bother(a, s.ttl)
		}
		if st.reset {
			a.host.Reset()
		}
	}})
	s.force(a, st.reply)
}

// token is that of the tenure the participant believes in, or 0.
func (a *actor) token() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tenure == nil || a.toldLet {
		return 0
	}
	return a.tenure.Token()
}
