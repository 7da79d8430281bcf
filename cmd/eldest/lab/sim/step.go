package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// steady is how long a host must have been well for its owner to owe a prompt
// reaction: gRPC's reconnection back-off is over by then.
const steady = 8 * time.Second

// step does one step of the plan; next is the time until the following one.
func (s *show) step(st step, next time.Duration) {
	if do, ok := ofServer[st.verb]; ok {
		s.note(st, "the server")
		do(s, st)
		return
	}
	if st.verb == transfers {
		s.transfer(st)
		return
	}
	a := s.target(st)
	if a == nil {
		s.note(st, "nobody is there")
		return
	}
	s.note(st, a.name)
	switch st.verb {
	case resign:
		s.count(string(resign), a.resign())
	case withdraw:
		s.count(string(withdraw), a.quitWaiting())
	case crash:
		s.crash(a, st)
	case freeze:
		s.freeze(a, st)
	case starve:
		s.starve(a, st)
	case lose:
		s.lose(a, st)
	case overrun:
		s.overrun(a, st)
	case reset:
		s.bother(a, 0)
		s.count(string(reset), a.host.Reset() > 0)
	case revoke, remove, overwrite:
		s.byHand(a, st.verb, next)
	default:
		s.network(a, st)
	}
}

// ofServer are the steps that happen to the server.
var ofServer = map[verb]func(*show, step){
	compact: (*show).compact, restart: (*show).restart, outage: (*show).restart,
	full: (*show).full, stall: (*show).stall,
}

// target picks whom the step is for, among those who live.
func (s *show) target(st step) *actor {
	q := s.queue()
	switch {
	case st.role == theLeader && len(q) > 0:
		return s.owner(oracle.LeaseOf(q[0].Key))
	case st.role == aWaiter && len(q) > 1:
		return s.owner(oracle.LeaseOf(q[1+st.pick%(len(q)-1)].Key))
	}
	var alive []*actor
	for _, a := range s.everybody() {
		if !a.dead() {
			alive = append(alive, a)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	return alive[st.pick%len(alive)]
}

func (s *show) up() bool { return s.world.Server.Up() }

// well reports whether nothing has been wrong with the actor's way to the
// server for some time, and nothing waits to go wrong.
func (s *show) well(a *actor) bool {
	if a.host.Armed() || !a.running() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.world.Now()
	for _, name := range []string{"", a.name} {
		if at, ok := s.trouble[name]; ok && now < at+steady {
			return false
		}
	}
	return true
}

// bother notes that something is wrong with the actor, or, for nil, with the server,
// for a while.
func (s *show) bother(a *actor, d time.Duration) {
	name := ""
	if a != nil {
		name = a.name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.world.Now() + d
	s.trouble[name] = max(s.trouble[name], until)
	s.log.Add(oracle.Event{Who: name, Kind: oracle.Trouble, Until: until})
}

// later does f after a while, unless everything has healed by then.
func (s *show) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if !s.calm.Load() {
			f()
		}
	})
}

// endsAfter ends a fault after a while, if everything does not heal before, and counts
// it if its effect has grown meanwhile: a cut that nothing ran into is no cut.
func (s *show) endsAfter(d time.Duration, name string, effect func() int, end func()) {
	before := effect()
	judge := sync.OnceFunc(func() { s.count(name, effect() > before) })
	s.later(d, func() {
		end()
		judge()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, judge)
}

// count counts what took effect.
func (s *show) count(name string, took bool) {
	if took {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.struck[name]++
	}
}

func (s *show) note(st step, whom string) {
	st.at = s.world.Now()
	s.log.Add(oracle.Event{Kind: oracle.Fault, Text: fmt.Sprintf("%s -> %s", st, whom)})
}
