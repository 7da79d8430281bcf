package service

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/observe"
)

// tenure is who leads, by what the nodes report.
type tenure struct {
	*node
	token eldest.Token
	key   string
}

// stop: the leader is asked to end.
func stop(ctx context.Context, s *stage) error { return s.end(ctx, Stop, syscall.SIGTERM) }

// kill: the leader's process ends without a word.
func kill(ctx context.Context, s *stage) error { return s.end(ctx, Kill, syscall.SIGKILL) }

// end ends the leader's process, waits for a successor, and brings the node back.
func (s *stage) end(ctx context.Context, act Act, sig syscall.Signal) error {
	old, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	s.act(act, old)
	if err := old.Signal(sig); err != nil {
		return fmt.Errorf("signal to %s: %w", old.name, err)
	}
	if err := s.succeeded(ctx, old); err != nil {
		return err
	}
	if err := s.await(ctx, old.name+" has ended", s.cfg.limits().Expiry, func([]Fact) bool { return old.Gone() }); err != nil {
		return err
	}
	return s.start(ctx, old.index)
}

// suspend: the leader's process stops where it is, and somebody removes its key. When
// another node has led for a while it goes on, with a lease that is as good as ever.
func suspend(ctx context.Context, s *stage) error {
	old, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	s.act(Suspend, old)
	if err := old.Suspend(); err != nil {
		return fmt.Errorf("suspend %s: %w", old.name, err)
	}
	if err := s.remove(ctx, old); err != nil {
		return err
	}
	if err := s.succeeded(ctx, old); err != nil {
		return err
	}
	// Meanwhile requests pile up; and its lease must outlast that. News of its end is
	// waiting for it as well: the more requests there are, the more come before it.
	s.client.crowd(old.index)
	err = sleep(ctx, max(s.cfg.TTL/4, asleep))
	s.client.crowd(-1)
	if err != nil {
		return err
	}
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: Resume, Node: old.name})
	if err := old.Resume(); err != nil {
		return fmt.Errorf("resume %s: %w", old.name, err)
	}
	return s.await(ctx, old.name+" follows its successor", s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == old.name })
		return f != nil && f.Role == following && f.Token > old.token
	})
}

// asleep is how long a suspended leader sleeps on beside its successor, at least: longer
// than the least patient request.
const asleep = 700 * time.Millisecond

// remove deletes the leader's key, as an operator may.
func (s *stage) remove(ctx context.Context, t *tenure) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.limits().Expiry)
	defer cancel()
	s.aside("and deletes its key %s, in etcd", t.key)
	if _, err := s.member().Delete(ctx, t.key); err != nil {
		return fmt.Errorf("remove the key of %s: %w", t.name, err)
	}
	return nil
}

// cutLeader: the member through which the leader reaches etcd is cut off from the
// others, and joined again after another node leads.
func cutLeader(ctx context.Context, s *stage) error {
	old, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	s.act(CutLeader, old)
	if s.cluster.Leads(ctx, old.index, electionTime) {
		s.aside("%s happens to lead etcd itself; the other members must first elect another, and leases begin anew", old.member)
	}
	return s.cut(ctx, old.node, func() error {
		if err := s.succeeded(ctx, old); err != nil {
			return err
		}
		_, err := s.awaitNeither(ctx, old.node, old.token)
		return err
	})
}

// cutFollower: the same with a follower's member. The leader stays.
func cutFollower(ctx context.Context, s *stage) error {
	leader, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	// One whose member does not lead etcd, so that the leader notices nothing at all.
	var follower *node
	for _, n := range s.nodes {
		if n != leader.node && !s.cluster.Leads(ctx, n.index, electionTime) {
			follower = n
		}
	}
	s.act(CutFollower, &tenure{follower, leader.token, leader.key})
	return s.cut(ctx, follower, func() error {
		since, err := s.awaitNeither(ctx, follower, leader.token)
		if err != nil {
			return err
		}
		return s.awaitAttempts(ctx, follower.name+" is asked in vain", 1, func(a Attempt) bool {
			return a.Outcome != Done && a.Node == follower.name && a.Begin.After(since)
		})
	})
}

// cut cuts a node's member off, shows that it is cut off, waits, and heals.
func (s *stage) cut(ctx context.Context, n *node, wait func() error) error {
	if err := s.cluster.Cut(n.index); err != nil {
		return err
	}
	s.isCut[n.index] = true
	err := s.probe(ctx, n, false)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return err
	}
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: Mend, Node: n.name, Member: n.member})
	if err := s.cluster.Mend(n.index); err != nil {
		return err
	}
	s.isCut[n.index] = false
	return s.probe(ctx, n, true)
}

// act records an act against a node, in somebody's tenure.
func (s *stage) act(act Act, t *tenure) {
	s.client.begin()
	s.tell(Fact{At: time.Now(), Kind: Acted, Act: act, Node: t.name, Member: t.member, Key: t.key, Token: t.token})
}

// probe asks the node's member for what it cannot know without a majority, until the
// answer, or that there is none, is the expected one, and records that. So a cut that
// cuts nothing is found.
func (s *stage) probe(ctx context.Context, n *node, want bool) error {
	limit := time.Now().Add(s.cfg.limits().Expiry)
	for {
		once, cancel := context.WithTimeout(ctx, electionTime)
		_, err := s.etcd[n.index].Get(once, "probe")
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if (err == nil) == want || time.Now().After(limit) {
			s.tell(Fact{At: time.Now(), Kind: Probed, Node: n.name, Member: n.member, OK: err == nil})
			return nil // one that is not as it should be is for the checks to find
		}
		if want {
			// An answer is what is waited for; the failure came quickly or not.
			if err := sleep(ctx, heartbeat); err != nil {
				return err
			}
		}
	}
}

// agreed blocks until all nodes that run agree on a leader, and returns it.
func (s *stage) agreed(ctx context.Context) (*tenure, error) {
	var t *tenure
	err := s.await(ctx, "all nodes agree on a leader", s.cfg.limits().Expiry, func(facts []Fact) bool {
		t = s.agreement(facts)
		return t != nil
	})
	return t, err
}

// hasPlace blocks until a node leads or follows.
func (s *stage) hasPlace(ctx context.Context, n *node) error {
	return s.await(ctx, n.name+" leads or follows", s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Node == n.name && f.Kind == Status })
		return n.Gone() || f != nil && f.Role != neither
	})
}

// agreement returns the leader on whom all nodes that run agree, by their last reports,
// or nil.
func (s *stage) agreement(facts []Fact) *tenure {
	var t *tenure
	said := make([]*Fact, len(s.nodes))
	for i, n := range s.nodes {
		if n.Gone() {
			return nil
		}
		said[i] = last(facts, func(f Fact) bool {
			return f.Node == n.name && (f.Kind == Status || f.Kind == Acted && f.Act == Start)
		})
		if said[i] != nil && said[i].Role == leading {
			t = &tenure{n, said[i].Token, said[i].Key}
		}
	}
	for _, f := range said {
		if t == nil || f == nil || f.Token != t.token || f.Role == neither {
			return nil
		}
	}
	return t
}

// succeeded blocks until somebody leads with a newer token and serves.
func (s *stage) succeeded(ctx context.Context, old *tenure) error {
	err := s.await(ctx, old.name+" has a successor", s.cfg.limits().Expiry, func(facts []Fact) bool {
		return last(facts, func(f Fact) bool { return f.Kind == Status && f.Role == leading && f.Token > old.token }) != nil
	})
	if err != nil {
		return err
	}
	return s.awaitAttempts(ctx, "the successor of "+old.name+" serves", enough, func(a Attempt) bool {
		return a.Outcome == Done && a.Token > old.token
	})
}

// awaitNeither blocks until a node says that it is neither, after it led or followed in
// the tenure with the token, and returns since when.
func (s *stage) awaitNeither(ctx context.Context, n *node, token eldest.Token) (since time.Time, err error) {
	err = s.await(ctx, n.name+" is neither leader nor follower", s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == n.name })
		was := last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == n.name && f.Token == token })
		if f == nil || was == nil || f.Role != neither {
			return false
		}
		since = f.At
		return true
	})
	return since, err
}

// awaitAttempts blocks until so many attempts match.
func (s *stage) awaitAttempts(ctx context.Context, what string, number int, match func(Attempt) bool) error {
	limit := s.cfg.limits().Expiry
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %v in vain for this: %s", limit, what))
	defer cancel()
	seen, found := 0, 0
	return s.attempts.Await(ctx, func(all []Attempt) bool {
		for ; seen < len(all); seen++ {
			if match(all[seen]) {
				found++
			}
		}
		return found >= number
	})
}

// leave: everyone goes, the leader last, and nothing may be left.
func leave(ctx context.Context, s *stage) error {
	leader, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	s.client.halt() // first: whom it asked was there to answer
	order := []*node{leader.node}
	for _, n := range s.nodes {
		if n != leader.node {
			order = append([]*node{n}, order...)
		}
	}
	for _, n := range order {
		s.tell(Fact{At: time.Now(), Kind: Acted, Act: Leave, Node: n.name, Token: leader.token})
		if err := n.Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("signal to %s: %w", n.name, err)
		}
		if err := s.await(ctx, n.name+" has gone", s.cfg.limits().Expiry, func([]Fact) bool { return n.Gone() }); err != nil {
			return err
		}
	}
	return s.lookAround(ctx)
}

// lookAround records what is left of the election in etcd, after at most the time that
// a lease may take to go.
func (s *stage) lookAround(ctx context.Context) error {
	limit := time.Now().Add(s.cfg.limits().Expiry)
	for {
		queue, err := observe.Queue(ctx, s.member(), nil, Election)
		if err != nil {
			return err
		}
		leases, err := s.member().Leases(ctx)
		if err != nil {
			return err
		}
		if f := (Fact{At: time.Now(), Kind: Left, Keys: len(queue), Leases: len(leases.Leases)}); f.Keys+f.Leases == 0 || f.At.After(limit) {
			s.tell(f)
			return nil
		}
		if err := sleep(ctx, heartbeat); err != nil {
			return err
		}
	}
}

// sleep waits; ctx ends it, with its cause.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
