package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/tests/sim/history"
	"github.com/eldest-io/eldest/tests/sim/rig"
)

// steady is how long a host must have been well for its owner to owe a prompt
// reaction: gRPC's reconnection back-off is over by then.
const steady = 8 * time.Second

// step does one step of the plan; next is the time until the following one.
func (s *show) step(st step, next time.Duration) {
	switch st.verb {
	case compact:
		s.compact()
		return
	case restart:
		s.restart(st)
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
		s.count(resign, a.resign())
	case withdraw:
		s.count(withdraw, a.quitWaiting())
	case crash:
		s.count(crash, true)
		a.crash(st.reset)
		if st.lasts > 0 {
			s.again++
			s.join(fmt.Sprintf("r%d", s.again), st.lasts)
		}
	case cut:
		s.bother(a, st.lasts)
		a.host.Cut(st.way)
		s.count(cut, true)
		s.later(st.lasts, func() {
			a.host.Heal()
			if st.reset {
				a.host.Reset()
			}
		})
	case delay:
		s.bother(a, st.lasts+2*st.lag)
		a.host.Delay(st.way, st.lag)
		s.count(delay, true)
		s.later(st.lasts, a.host.Heal)
	case fade:
		dark := 5 * s.ttl / 2
		s.bother(a, st.lasts+dark)
		a.host.Delay(st.way, st.lag)
		s.count(fade, true)
		s.later(st.lasts, func() { a.host.Cut(rig.Both) })
		s.later(st.lasts+dark, a.host.Heal)
	case flicker:
		s.bother(a, st.lasts+2*st.lag)
		a.host.Delay(st.way, st.lag)
		for at := time.Duration(0); at < st.lasts; at += 2 * st.lag / 3 {
			s.later(at, func() { s.count(flicker, a.quitWaiting()) })
		}
		s.later(st.lasts, func() {
			a.quitWaiting()
			if st.reset {
				a.host.Drop() // its last requests arrive when it has long gone on
			}
			a.host.Heal()
		})
	case lose:
		s.lose(a, st)
	case reset:
		s.bother(a, 0)
		s.count(reset, a.host.Reset() > 0)
	case revoke, remove, overwrite:
		s.byHand(a, st.verb, next)
	}
}

// lose arms the loss of a reply, and makes the request come if it would not by
// itself.
func (s *show) lose(a *actor, st step) {
	l := &rig.Loss{Match: replyMatcher(st.reply), Reset: st.reset}
	if st.reply != "renewal" || st.reset { // one lost renewal must not matter
		l.Struck = func() { s.bother(a, s.ttl) }
	}
	a.host.Lose(l)
	s.losses = append(s.losses, &armed{reply: st.reply, loss: l})
	switch st.reply {
	case "registration", "read":
		_ = a.quitWaiting() || a.resign()
	case "departure":
		_ = a.resign() || a.quitWaiting()
	}
}

// byHand takes away or overwrites a candidate's key, or revokes its lease.
func (s *show) byHand(a *actor, v verb, next time.Duration) {
	ctx := s.world.T.Context()
	for _, k := range s.queue() {
		if history.LeaseOf(k.Key) != a.lease() || !s.up() {
			continue
		}
		unimpeded := next > time.Second && s.well(a)
		e := history.Event{Who: "admin", Kind: history.Removed, Token: k.Create, Key: k.Key, Lease: k.Lease, Clear: unimpeded, Text: string(v)}
		var err error
		switch {
		case v == overwrite && !unimpeded:
			// A put without a lease makes a key that nobody but its owner would
			// ever remove, so it must be there to do so. Here the lease stays.
			_, err = s.admin.Client.Put(ctx, k.Key, "by hand", clientv3.WithIgnoreLease())
		case v == overwrite:
			s.log.Add(e)
			_, err = s.admin.Client.Put(ctx, k.Key, "by hand")
		case v == remove:
			s.log.Add(e)
			_, err = s.admin.Client.Delete(ctx, k.Key)
		default:
			s.log.Add(e)
			_, err = s.admin.Client.Revoke(ctx, clientv3.LeaseID(history.LeaseOf(k.Key)))
		}
		s.count(v, err == nil)
		return
	}
}

func (s *show) compact() {
	if !s.up() {
		return
	}
	_, err := s.admin.Client.Compact(s.world.T.Context(), s.world.Server.Tap.Rev())
	s.note(step{verb: compact}, "")
	s.count(compact, err == nil)
}

// restart stops the server and starts it with its data after a while.
func (s *show) restart(st step) {
	s.note(st, "the server")
	begun := s.world.Now()
	until := begun + st.lasts + 2*time.Second // an election
	s.mu.Lock()
	s.trouble[""] = until
	s.mu.Unlock()
	s.log.Add(history.Event{Kind: history.Trouble, Until: until})
	defer func() {
		took := s.world.Now() - begun
		require.Less(s.world.T, took, st.lasts+10*time.Second, "INVALID: the restart took %v", took)
	}()
	s.world.Server.Stop()
	time.Sleep(st.lasts)
	require.NoError(s.world.T, s.world.Server.Start())
	s.count(restart, true)
	// The hand that takes keys away needs a connection again.
	ctx, cancel := context.WithTimeout(s.world.T.Context(), time.Minute)
	defer cancel()
	_, err := s.admin.Client.Get(ctx, "nothing")
	require.NoError(s.world.T, err)
}

// target picks whom the step is for, among those who live.
func (s *show) target(st step) *actor {
	q := s.queue()
	switch {
	case st.role == theLeader && len(q) > 0:
		return s.owner(history.LeaseOf(q[0].Key))
	case st.role == aWaiter && len(q) > 1:
		return s.owner(history.LeaseOf(q[1+st.pick%(len(q)-1)].Key))
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
// server for some time.
func (s *show) well(a *actor) bool {
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

// bother notes that something is wrong with the actor's network for a while.
func (s *show) bother(a *actor, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.world.Now() + d
	s.trouble[a.name] = max(s.trouble[a.name], until)
	s.log.Add(history.Event{Who: a.name, Kind: history.Trouble, Until: until})
}

// later does f after a while, unless everything has healed by then.
func (s *show) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if !s.calm.Load() {
			f()
		}
	})
}

func (s *show) count(v verb, took bool) {
	if took {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.struck[string(v)]++
	}
}

func (s *show) note(st step, whom string) {
	st.at = s.world.Now()
	s.log.Add(history.Event{Kind: history.Fault, Text: fmt.Sprintf("%s -> %s", st, whom)})
}
