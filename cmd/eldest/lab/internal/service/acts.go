package service

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
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
		return err
	}
	if err := s.succeeded(ctx, old); err != nil {
		return err
	}
	if err := s.AwaitEnd(ctx, old.node); err != nil {
		return err
	}
	return s.start(ctx, old.Member.Index)
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
		return fmt.Errorf("suspend %s: %w", old.Name, err)
	}
	s.Aside("and deletes its key %s, in etcd", old.key)
	if err := s.Delete(ctx, old.key, old.token); err != nil {
		return fmt.Errorf("remove the key of %s: %w", old.Name, err)
	}
	if err := s.succeeded(ctx, old); err != nil {
		return err
	}
	// Meanwhile requests pile up; and its lease must outlast that. News of its end is
	// waiting for it as well: the more requests there are, the more come before it.
	s.client.crowd(old.Member.Index)
	err = scenario.Sleep(ctx, max(s.TTL/4, asleep))
	s.client.crowd(-1)
	if err != nil {
		return err
	}
	s.Tell(Fact{Kind: Acted, Act: Resume, Node: old.Name})
	if err := old.Resume(); err != nil {
		return fmt.Errorf("resume %s: %w", old.Name, err)
	}
	return s.Await(ctx, old.Name+" follows its successor", func(facts []Fact) bool {
		f := scenario.Last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == old.Name })
		return f != nil && f.Role == following && f.Token > old.token
	})
}

// asleep is how long a suspended leader sleeps on beside its successor, at least: longer
// than the least patient request.
const asleep = 700 * time.Millisecond

// cutLeader: the member through which the leader reaches etcd is cut off from the
// others, and joined again after another node leads.
func cutLeader(ctx context.Context, s *stage) error {
	old, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	s.act(CutLeader, old)
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
		if n != leader.node && !s.Leads(ctx, n.Member.Index, scenario.Election) {
			follower = n
		}
	}
	s.act(CutFollower, &tenure{follower, leader.token, leader.key})
	return s.cut(ctx, follower, func() error {
		since, err := s.awaitNeither(ctx, follower, leader.token)
		if err != nil {
			return err
		}
		return s.awaitAttempts(ctx, follower.Name+" is asked in vain", 1, func(a Attempt) bool {
			return a.Outcome != Done && a.Node == follower.Name && a.Begin.After(since)
		})
	})
}

// cut cuts a node's member off, shows that it is cut off, waits, and heals.
func (s *stage) cut(ctx context.Context, n *node, wait func() error) error {
	if err := s.Cut(ctx, n.Member); err != nil {
		return err
	}
	err := s.probe(ctx, n, false)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return err
	}
	s.Tell(Fact{Kind: Acted, Act: Mend, Node: n.Name, Member: n.Member.Name})
	if err := s.Mend(n.Member.Index); err != nil {
		return err
	}
	return s.probe(ctx, n, true)
}

// act records an act against a node, in somebody's tenure.
func (s *stage) act(act Act, t *tenure) {
	s.client.begin()
	s.Tell(Fact{Kind: Acted, Act: act, Node: t.Name, Member: t.Member.Name, Key: t.key, Token: t.token})
}

// probe asks the node's member for what it cannot know without a majority, until the
// answer, or that there is none, is the expected one, and records that. So a cut that
// cuts nothing is found.
func (s *stage) probe(ctx context.Context, n *node, want bool) error {
	limited, cancel := context.WithTimeout(ctx, s.Expiry())
	defer cancel()
	err := inject.Answers(limited, s.Each[n.Member.Index], want, scenario.Election)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// One that is not as it should be is for the checks to find.
	s.Tell(Fact{Kind: Probed, Node: n.Name, Member: n.Member.Name, OK: want == (err == nil)})
	return nil
}

// agreed blocks until all nodes that run agree on a leader, and returns it.
func (s *stage) agreed(ctx context.Context) (*tenure, error) {
	var t *tenure
	err := s.Await(ctx, "all nodes agree on a leader", func(facts []Fact) bool {
		t = s.agreement(facts)
		return t != nil
	})
	return t, err
}

// hasPlace blocks until a node leads or follows.
func (s *stage) hasPlace(ctx context.Context, n *node) error {
	return s.Await(ctx, n.Name+" leads or follows", func(facts []Fact) bool {
		f := scenario.Last(facts, func(f Fact) bool { return f.Node == n.Name && f.Kind == Status })
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
		said[i] = scenario.Last(facts, func(f Fact) bool {
			return f.Node == n.Name && (f.Kind == Status || f.Kind == Acted && f.Act == Start)
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
	err := s.Await(ctx, old.Name+" has a successor", func(facts []Fact) bool {
		return scenario.Last(facts, func(f Fact) bool { return f.Kind == Status && f.Role == leading && f.Token > old.token }) != nil
	})
	if err != nil {
		return err
	}
	return s.awaitAttempts(ctx, "the successor of "+old.Name+" serves", enough, func(a Attempt) bool {
		return a.Outcome == Done && a.Token > old.token
	})
}

// awaitNeither blocks until a node says that it is neither, after it led or followed in
// the tenure with the token, and returns since when.
func (s *stage) awaitNeither(ctx context.Context, n *node, token eldest.Token) (since time.Time, err error) {
	err = s.Await(ctx, n.Name+" is neither leader nor follower", func(facts []Fact) bool {
		f := scenario.Last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == n.Name })
		was := scenario.Last(facts, func(f Fact) bool { return f.Kind == Status && f.Node == n.Name && f.Token == token })
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
	seen, found := 0, 0
	return scenario.Await(ctx, &s.attempts, s.Expiry(), what, func(all []Attempt) bool {
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
		s.Tell(Fact{Kind: Acted, Act: Leave, Node: n.Name, Token: leader.token})
		if err := n.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := s.AwaitEnd(ctx, n); err != nil {
			return err
		}
	}
	keys, leases, err := s.Leftovers(ctx, Election)
	if err == nil {
		s.Tell(Fact{Kind: Left, Keys: keys, Leases: leases})
	}
	return err
}
