package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

func drawCrash(rng *rand.Rand, ttl time.Duration, s *step) {
	s.reset = rng.IntN(2) == 0
	if rng.IntN(4) > 0 {
		s.lasts = between(rng, 0, ttl)
	}
}

// crash ends a process, and starts another one later: for a node, its next process.
func (r *run) crash(p *participant, s step) {
	if started, lives, _ := p.state(); started && !lives || s.politely && !started {
		return // it is leaving, or has not started
	}
	next := func() {
		if s.lasts > 0 {
			r.mu.Lock()
			r.again++
			name := fmt.Sprintf("r%d", r.again)
			r.mu.Unlock()
			r.join(name, p.id, s.lasts, s.takesOver)
		}
	}
	switch {
	case s.politely:
		r.count("left", true)
		p.depart()
		r.asking.Go(func() {
			p.leave()
			next()
		})
		return
	case s.reset:
		r.count("crash, process only", true)
	default:
		r.count("crash, power lost", true)
	}
	p.crash(s.reset)
	next()
}

// longestWait limits how long a starving goroutine waits, for any TTL: the world must have ended a
// minute after its scenario.
const longestWait = 20 * time.Second

func drawStarve(rng *rand.Rand, ttl time.Duration, s *step) {
	s.lag = min(between(rng, ttl/10, 3*ttl/2), longestWait)
	s.lasts = between(rng, ttl/2, 2*ttl)
}

// starve makes a process wait for a processor at every point.
func (r *run) starve(p *participant, s step) {
	r.bother(p, s.lasts+2*s.lag)
	p.host.Starve(s.lag, r.rng(s))
	r.endsAfter(s.lasts, string(starve), func() int { return p.host.Effects().Starved }, func() { p.host.Starve(0, nil) })
}

// drawFreeze draws a stop of a process: for longer than its lease can last in two of three cases,
// and in most at a point, which not every process reaches.
func drawFreeze(rng *rand.Rand, ttl time.Duration, s *step) {
	if rng.IntN(6) > 0 {
		s.point = points[rng.IntN(len(points))]
		s.after = rng.IntN(2) == 0
		s.gone = rng.IntN(3) > 0
	}
	switch {
	case s.point == "read" || s.point == "watch":
		s.role, s.pick = aWaiter, 0 // the next in the queue
	case rng.IntN(2) == 0:
		s.role = theLeader
	}
	s.asked = rng.IntN(2) == 0
	s.lasts = between(rng, ttl/5, ttl)
	if rng.IntN(3) > 0 {
		s.lasts = between(rng, 11*ttl/10, 3*ttl)
	}
}

// freeze stops a process for a while: at once, or when it reaches a point.
func (r *run) freeze(p *participant, s step) {
	if s.point == "" {
		r.stop(p, s)
		return
	}
	p.host.Set(&rig.Trap{Match: matcher(s.point), After: s.after, Strike: func() {
		if goesOn := r.stop(p, s); s.gone && goesOn != nil {
			<-goesOn
		}
	}})
	what := s.point
	if what == "watch" && !s.after {
		what = "registration" // a candidate opens one when it registers, and not when it is notified of an end
	}
	if !s.unforced {
		r.force(p, what)
	}
}

// stop stops a process, and counts the stop when it is over. The effect that is wanted is that the
// process led and its lease has ended by then.
func (r *run) stop(p *participant, s step) (goesOn <-chan struct{}) {
	if r.calm.Load() {
		return nil
	}
	goesOn, first := p.stop()
	if !first {
		return goesOn
	}
	r.bother(p, s.lasts)
	led := p.token()
	time.AfterFunc(s.lasts, func() {
		if !p.goOn(s.asked) {
			return // something else has ended it
		}
		where := "anywhere"
		switch {
		case s.after:
			where = "at the reply of the " + s.point
		case s.point != "":
			where = "before the " + s.point
		}
		r.count("stopped "+where, true)
		kept := false
		for _, k := range r.queue() {
			kept = kept || k.Create == led
		}
		r.count("leader stopped, lease kept", kept)
		r.count("leader stopped past its lease", led != 0 && !kept)
	})
	return goesOn
}

// byHand is the value that overwrites a key.
const byHand = "by hand"

// takes removes or overwrites a candidate's key, or revokes its lease.
func (r *run) takes(p *participant, s step) {
	r.takeAway(p, s.verb, r.next > time.Second && r.well(p))
}

// takeAway does that; unhindered means that nothing will delay the participant's notification for a second.
func (r *run) takeAway(p *participant, v verb, unhindered bool) {
	ctx := r.world.T.Context()
	// Only its owner removes a key that was put without a lease, so the owner must be there to do
	// so. A node is not: it revokes its lease, and begins another round.
	_, node := r.impl.(nodes)
	unbound := v == overwrite && unhindered && !node
	for _, k := range r.queue() {
		if r.owner(k.Key) != p || !r.world.Server.Up() {
			continue
		}
		var err error
		if v != overwrite || unbound {
			r.mu.Lock()
			r.removed[k.Create] = true
			r.mu.Unlock()
			r.log.Add(oracle.Event{Who: "admin", Kind: oracle.Removed, Token: k.Create, Key: k.Key, Lease: k.Lease, Clear: unhindered, Text: string(v)})
		}
		switch {
		case unbound:
			_, err = r.admin.Client.Put(ctx, k.Key, byHand)
		case v == overwrite:
			_, err = r.admin.Client.Put(ctx, k.Key, byHand, clientv3.WithIgnoreLease())
		case v == remove:
			_, err = r.admin.Client.Delete(ctx, k.Key)
		default:
			_, err = r.admin.Client.Revoke(ctx, clientv3.LeaseID(oracle.LeaseOf(k.Key)))
		}
		r.count(string(v), err == nil)
		return
	}
}
