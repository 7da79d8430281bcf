package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// ofParticipant makes an injector for one participant that has the role and what the fault needs.
func ofParticipant(do func(context.Context, *series, *candidate, Injection) (healer, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (on string, heal healer, err error) {
		c := in.target
		if c == nil {
			if c, err = s.pick(ctx, in, fitFor[in.Fault]); err != nil {
				return "", nil, err
			}
		}
		s.note("%s: %s", c.who, in)
		heal, err = do(ctx, s, c, in)
		return c.who, heal, err
	}
}

func beats(c *candidate) bool     { return c.beat > 0 }
func hasKeeper(c *candidate) bool { return c.keptBy() != 0 }

// pick blocks until a participant has the role and fits (nil: anyone does), or ctx ends. A leader or
// successor that does not fit is ordered to leave, and so is a leader that fits if no waiter does but one
// is wanted.
func (s *series) pick(ctx context.Context, in Injection, fits func(*candidate) bool) (chosen *candidate, err error) {
	if fits == nil {
		fits = func(*candidate) bool { return true }
	}
	var ordered *candidate
	err = inject.Until(ctx, fmt.Sprintf("a participant has the role %s", in.On), func(ctx context.Context) (bool, error) {
		all := s.living()
		var next int64 // the lease of the successor
		if in.On == Successor {
			queue, err := s.list(ctx)
			if err != nil || len(queue.Keys) < 2 {
				return false, err
			}
			next = oracle.LeaseOf(queue.Keys[1])
		}
		// The clock of a tight leader must not be wrong; then any participant serves, as it may lead later.
		anybody := in.Fault == Skew && in.On == Leader && slices.ContainsFunc(all, func(c *candidate) bool { return c.tight && c.is(Leader) })
		var fit, misplaced []*candidate
		for _, c := range all {
			has := anybody || in.On == Successor && c.last().Lease == next || in.On != Successor && c.is(in.On)
			suits := fits(c) && (in.Fault != Skew || !c.tight)
			switch {
			case has && suits:
				fit = append(fit, c)
			case in.On == Waiter && suits && c.is(Leader), in.On != Waiter && has && !fits(c):
				misplaced = append(misplaced, c)
			}
		}
		if len(fit) > 0 {
			chosen = fit[in.Pick%len(fit)]
			return true, nil
		}
		for _, c := range misplaced {
			if c != ordered {
				ordered = c
				_ = c.Order(participant.Order{Do: participant.DoResign}) // an error means that it has ended, and will soon be no candidate
			}
		}
		return false, nil
	})
	return chosen, err
}

// kill is proven by waiting for the process. It is healed when the next process is up: how long a
// process takes to start is not a property of the election.
func kill(_ context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	s.crash(c)
	return func(ctx context.Context) error {
		if s.seat(c.index) == c {
			if err := s.start(c.index); err != nil {
				return err
			}
		}
		next := s.seat(c.index)
		select {
		case <-next.Up:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("starting %s: %w", next.who, ctx.Err())
		}
	}, nil
}

// killBoth kills the keeper and, at once, the participant: its lease must expire, or its heartbeats stop.
func killBoth(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	if err := c.loseKeeper(ctx); err != nil {
		return nil, err
	}
	return kill(ctx, s, c, in)
}

// alone is how long a participant continues after its keeper was killed.
const alone = 200 * time.Millisecond

func killKeeper(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	if err := c.loseKeeper(ctx); err != nil {
		return nil, err
	}
	if err := scenario.Sleep(ctx, alone); err != nil {
		return nil, err
	}
	if c.Gone() {
		return nil, fmt.Errorf("%w: %s has ended with its keeper", inject.ErrNoEffect, c.who)
	}
	return kill(ctx, s, c, in)
}

// compactHeld is proven by held data, and by a read at a compacted revision, which fails.
func compactHeld(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	before := c.host.Stats()
	c.host.Hold(etcdtest.Outbound)
	heal := func(context.Context) error { c.host.Mend(); return nil }
	err := inject.Until(ctx, "data for "+c.who+" is held back", func(context.Context) (bool, error) {
		return sum(c.host.Stats().Held) > sum(before.Held), nil
	})
	if err == nil {
		_, _, err = compact(ctx, s, in)
	}
	return heal, err
}

// stop is proven by the kernel, which reports that the process is stopped, and reports it again
// before the process is resumed.
func stop(_ context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	if err := c.Suspend(); err != nil {
		return func(context.Context) error { return c.Resume() }, err
	}
	s.tell(oracle.Event{Kind: oracle.Stopped, Who: c.who})
	on := false
	return func(context.Context) error {
		if on {
			return nil
		}
		if still, err := etcdtest.Stopped(c.Pid()); err != nil || !still {
			return fmt.Errorf("%s continued although it was not resumed", c.who)
		}
		s.tell(oracle.Event{Kind: oracle.Continued, Who: c.who})
		on = true
		return c.Resume()
	}, nil
}

// resign is proven by the participant, which reports that its tenure or candidacy is over.
func resign(ctx context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	return nil, s.order(ctx, c, participant.Order{Do: participant.DoResign}, c.who+" resigns", func(e oracle.Event) bool {
		return e.Kind == oracle.Ended || e.Kind == oracle.Failed
	})
}

// skew is proven by the participant: the election has read its clock, and the clock has run at the
// wrong rate.
func skew(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	heal := func(context.Context) error {
		if c.Gone() { // another fault of the round has killed it: the next process has a right clock
			return nil
		}
		return c.Order(participant.Order{Do: participant.DoRate, Rate: 1})
	}
	return heal, s.order(ctx, c, participant.Order{Do: participant.DoRate, Rate: in.Rate}, "the election reads the clock of "+c.who, func(e oracle.Event) bool {
		return e.Kind == oracle.Fault && e.Text == participant.RateText(in.Rate)
	})
}

// network makes an injector for the network between a participant and the members. It is proven by
// the counters of the proxies in between.
func network(what string, do func(s *series, c *candidate, in Injection), seen func(before, now etcdtest.Stats) bool) injector {
	return ofParticipant(func(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
		before := c.host.Stats()
		do(s, c, in)
		return func(context.Context) error { c.host.Mend(); return nil }, inject.Until(ctx, what+" "+c.who, func(context.Context) (bool, error) {
			return seen(before, c.host.Stats()), nil
		})
	})
}

var (
	clientCut = network("connections were refused to", func(_ *series, c *candidate, _ Injection) {
		c.host.Refuse()
		c.host.Reset()
	}, func(before, now etcdtest.Stats) bool { return now.Reset > before.Reset && now.Refused > before.Refused })
	clientOneWay = network("data was lost from or to", func(_ *series, c *candidate, in Injection) { c.host.Drop(in.Way.direction()) }, dropped)
	blackHole    = network("data was dropped from or to", func(s *series, c *candidate, in Injection) {
		if in.All {
			c.host.Cut()
			return
		}
		c.host.Proxy(c.busiest(s.Size())).Drop(etcdtest.BothWays)
	}, dropped)
	stall = network("data was held back from or to", func(_ *series, c *candidate, in Injection) { c.host.Hold(in.Way.direction()) },
		func(before, now etcdtest.Stats) bool { return sum(now.Held) > sum(before.Held) })
	delay = network("data was delayed from or to", func(_ *series, c *candidate, in Injection) { c.host.Delay(in.Inbound, in.Outbound) },
		func(before, now etcdtest.Stats) bool { return sum(now.Delayed) > sum(before.Delayed) })
)

func dropped(before, now etcdtest.Stats) bool { return sum(now.Dropped) > sum(before.Dropped) }

func sum(p etcdtest.Pieces) int64 { return p.Inbound + p.Outbound }

// busiest returns the member with which a participant has exchanged most: a client distributes its
// requests, but its watches and renewals stay at one member.
func (c *candidate) busiest(size int) int {
	best, most := 0, int64(-1)
	for i := range size {
		if n := sum(c.host.Proxy(i).Stats().Passed); n > most {
			best, most = i, n
		}
	}
	return best
}

// lostReply is proven by the reply that the proxy dropped: the request was carried out.
func lostReply(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	var match func([]byte) bool
	switch in.Reply {
	case WriteReply:
		// A write carries the writer's name in its value; a read does not.
		match = etcdtest.Containing(" " + c.who + "-")
	case Registration:
		match = registrationOf(c.who)
	}
	lost := c.host.SwallowNextReply(match)
	if in.Reply == Registration {
		if err := c.Order(participant.Order{Do: participant.DoResign}); err != nil {
			return nil, err
		}
	}
	if err := lost.Wait(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", inject.ErrNoEffect, err)
	}
	return nil, nil
}

// registrationOf distinguishes the request that puts a candidate's key, whose value is its name,
// from the writes of leaders, which contain the name, too, but followed by a number.
func registrationOf(who string) func([]byte) bool {
	name, write := etcdtest.Containing(who), etcdtest.Containing(" "+who+"-")
	return func(message []byte) bool { return name(message) && !write(message) }
}

// Operations of an operator on etcd.

// moveLeader is proven by a majority that follows the new leader.
func moveLeader(ctx context.Context, s *series, in Injection) (string, healer, error) {
	from, err := s.Leader(ctx)
	if err != nil {
		return "", nil, err
	}
	to := (from + 1 + in.Pick%(s.Size()-1)) % s.Size()
	s.note("etcd's leader moves from %d to %d", from, to)
	return fmt.Sprintf("from member %d to %d", from, to), nil, s.MoveLeader(ctx, to) // it polls until that member leads
}

// compact is proven by a read at a compacted revision, which fails. All earlier changes were
// recorded before.
func compact(ctx context.Context, s *series, _ Injection) (string, healer, error) {
	var rev int64
	err := inject.Until(ctx, "etcd has a revision", func(ctx context.Context) (_ bool, err error) {
		rev, err = s.Revision(ctx)
		return err == nil, err
	})
	if err == nil {
		err = s.recorded.reached(ctx, rev)
	}
	if err != nil {
		return "", nil, err
	}
	s.note("compaction up to %d", rev)
	return fmt.Sprintf("up to revision %d", rev), nil, s.CompactTo(ctx, rev)
}

// defragment is proven by the members' replies.
func defragment(ctx context.Context, s *series, _ Injection) (string, healer, error) {
	s.note("defragmentation")
	return "all members", nil, s.Defragment(ctx)
}

// target is a candidate's key that an operator removes.
type target struct {
	key, who     string
	token, lease int64
}

// target finds the key of a participant that has the role, and records its removal before that
// happens: no participant may be notified of it earlier.
func (s *series) target(ctx context.Context, in Injection) (t target, err error) {
	c, err := s.pick(ctx, in, nil)
	if err != nil {
		return t, err
	}
	err = inject.Until(ctx, c.who+" has a key", func(ctx context.Context) (bool, error) {
		t = target{who: c.who, lease: c.last().Lease}
		t.key = keys.Candidate(electionName, t.lease)
		resp, err := s.All.Get(ctx, t.key)
		if err != nil || len(resp.Kvs) == 0 { // it will register soon
			return false, err
		}
		t.token = resp.Kvs[0].CreateRevision
		return true, nil
	})
	if err == nil {
		s.tell(oracle.Event{Kind: oracle.Removed, Who: "admin", Token: t.token, Key: t.key, Lease: t.lease})
	}
	return t, err
}

// revoke is proven by etcd, in which the lease and its key no longer exist.
func revoke(ctx context.Context, s *series, in Injection) (string, healer, error) {
	t, err := s.target(ctx, in)
	if err != nil {
		return "", nil, err
	}
	return t.who, nil, s.Revoke(ctx, t.lease, t.key, t.token)
}

// remove is proven by etcd, in which the key no longer exists.
func remove(ctx context.Context, s *series, in Injection) (string, healer, error) {
	t, err := s.target(ctx, in)
	if err != nil {
		return "", nil, err
	}
	return t.who, nil, s.Delete(ctx, t.key, t.token)
}

// Faults of etcd's members.

func (s *series) chosen(ctx context.Context, in Injection) (int, error) {
	if in.On == Leader {
		return s.Leader(ctx)
	}
	return in.Pick % s.Size(), nil
}

// ofMember makes an injector for one member.
func ofMember(what string, do func(context.Context, *series, *etcdtest.Member) (healer, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		i, err := s.chosen(ctx, in)
		if err != nil {
			return "", nil, err
		}
		s.note("%s member %d", what, i)
		heal, err := do(ctx, s, s.Member(i))
		return fmt.Sprintf("member %d", i), heal, err
	}
}

// unlessItRuns calls back only if the member does not run, so that healing can be repeated.
func unlessItRuns(m *etcdtest.Member, back healer) healer {
	return func(ctx context.Context) error {
		if m.Running() {
			return nil
		}
		return back(ctx)
	}
}

// memberKill is proven by waiting for the process.
func memberKill(_ context.Context, _ *series, m *etcdtest.Member) (healer, error) {
	err := m.Kill()
	return unlessItRuns(m, m.Restart), err
}

// memberStop is proven by the kernel, which reports that the process is stopped.
func memberStop(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return nil, err
	}
	err = m.Stop()
	return unlessItRuns(m, func(context.Context) error {
		if m.Index == leader {
			s.resumed = append(s.resumed, s.now())
		}
		return m.Cont()
	}), err
}

// memberRestart is proven by the new process, which serves requests.
func memberRestart(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	heal, err := memberKill(ctx, s, m)
	if err == nil {
		err = heal(ctx)
	}
	return heal, err
}

// replace is proven by the new member, which has another ID and serves requests.
func replace(ctx context.Context, s *series, m *etcdtest.Member) (healer, error) {
	before := m.ID()
	err := s.Replace(ctx, m.Index)
	if err == nil && m.ID() == before {
		err = fmt.Errorf("%w: member %d was not replaced", inject.ErrNoEffect, m.Index)
	}
	return unlessItRuns(m, func(ctx context.Context) error { return s.Replace(ctx, m.Index) }), err
}

func theOne(ctx context.Context, s *series, in Injection) ([]int, error) {
	i, err := s.chosen(ctx, in)
	return []int{i}, err
}

// some chooses as many members as of returns, beginning at a drawn one.
func some(of func(size int) int) func(context.Context, *series, Injection) ([]int, error) {
	return func(_ context.Context, s *series, in Injection) (chosen []int, err error) {
		for n := range of(s.Size()) {
			chosen = append(chosen, (in.Pick+n)%s.Size())
		}
		return chosen, nil
	}
}

// cut is proven by data that was held back on the links of each partitioned member.
func cut(which func(context.Context, *series, Injection) ([]int, error)) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		chosen, err := which(ctx, s, in)
		if err != nil {
			return "", nil, err
		}
		s.note("members %v: %s", chosen, in)
		return fmt.Sprintf("members %v", chosen), func(context.Context) error { return s.Mend(chosen...) }, s.Cut(ctx, in.Way.direction(), chosen...)
	}
}

// mute adds the proof that etcd does not answer a request.
func mute(fault injector) injector {
	return func(ctx context.Context, s *series, in Injection) (string, healer, error) {
		on, heal, err := fault(ctx, s, in)
		if err == nil {
			err = inject.Answers(ctx, s.All, false, muteTime)
		}
		return on, heal, err
	}
}

// muteTime is a long time for an answer of etcd, even on a busy machine.
const muteTime = 200 * time.Millisecond
