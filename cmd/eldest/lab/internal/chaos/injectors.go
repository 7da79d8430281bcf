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

// beats, hasKeeper and hasMargin report whether a fault that needs one can have a candidate as its target.
func beats(c *candidate) bool     { return c.beat > 0 }
func hasKeeper(c *candidate) bool { return c.keptBy() != 0 }
func hasMargin(c *candidate) bool { return !c.tight }

// pick blocks until a participant has the role and fits (nil: anyone does), or ctx ends. If none does, the
// leader is ordered to leave, again and again: then it is a waiter, and another one has come to the front.
func (s *series) pick(ctx context.Context, in Injection, fits func(*candidate) bool) (chosen *candidate, err error) {
	var ordered *candidate
	err = inject.Until(ctx, fmt.Sprintf("a participant has the role %s", in.On), func(ctx context.Context) (bool, error) {
		var next int64 // the lease of the successor
		if in.On == Successor {
			queue, err := s.list(ctx)
			if err != nil || len(queue.Keys) < 2 {
				return false, err
			}
			next = oracle.LeaseOf(queue.Keys[1])
		}
		var fit []*candidate
		for _, c := range s.living() {
			has := c.is(in.On) && (in.On != Successor || c.last().Lease == next)
			if has && (fits == nil || fits(c)) {
				fit = append(fit, c)
			}
		}
		if len(fit) > 0 {
			chosen = fit[in.Pick%len(fit)]
			return true, nil
		}
		for _, c := range s.living() {
			if c.is(Leader) && c != ordered {
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
	heal, err := disturb(ctx, c, "data was held back for", func(h *etcdtest.Host) { h.Hold(etcdtest.Outbound) }, held)
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

// disturb sets a fault of the network between a participant and the members. It is proven by the counters of
// the proxies in between, each of which has grown.
func disturb(ctx context.Context, c *candidate, what string, set func(*etcdtest.Host), counters ...func(etcdtest.Stats) int64) (healer, error) {
	before := c.host.Stats()
	set(c.host)
	return func(context.Context) error { c.host.Mend(); return nil }, inject.Until(ctx, what+" "+c.who, func(context.Context) (bool, error) {
		now := c.host.Stats()
		return !slices.ContainsFunc(counters, func(count func(etcdtest.Stats) int64) bool { return count(now) <= count(before) }), nil
	})
}

func sum(p etcdtest.Pieces) int64 { return p.Inbound + p.Outbound }

func dropped(s etcdtest.Stats) int64 { return sum(s.Dropped) }
func held(s etcdtest.Stats) int64    { return sum(s.Held) }
func delayed(s etcdtest.Stats) int64 { return sum(s.Delayed) }
func reset(s etcdtest.Stats) int64   { return s.Reset }
func refused(s etcdtest.Stats) int64 { return s.Refused }

func clientCut(ctx context.Context, _ *series, c *candidate, _ Injection) (healer, error) {
	return disturb(ctx, c, "connections were refused to", func(h *etcdtest.Host) {
		h.Refuse()
		h.Reset()
	}, reset, refused)
}

func clientOneWay(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return disturb(ctx, c, "data was lost from or to", func(h *etcdtest.Host) { h.Drop(in.Way.direction()) }, dropped)
}

func blackHole(ctx context.Context, s *series, c *candidate, in Injection) (healer, error) {
	return disturb(ctx, c, "data was dropped from or to", func(h *etcdtest.Host) {
		if in.All {
			h.Cut()
			return
		}
		h.Proxy(c.busiest(s.Size())).Drop(etcdtest.BothWays)
	}, dropped)
}

func stall(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return disturb(ctx, c, "data was held back from or to", func(h *etcdtest.Host) { h.Hold(in.Way.direction()) }, held)
}

func delay(ctx context.Context, _ *series, c *candidate, in Injection) (healer, error) {
	return disturb(ctx, c, "data was delayed from or to", func(h *etcdtest.Host) { h.Delay(in.Inbound, in.Outbound) }, delayed)
}

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

// removing finds the key of a participant, and records its removal by an operator before that happens: no
// participant may be notified of it earlier.
func (s *series) removing(ctx context.Context, c *candidate) (e oracle.Event, err error) {
	err = inject.Until(ctx, c.who+" has a key", func(ctx context.Context) (bool, error) {
		id := c.last().Lease
		e = oracle.Event{Kind: oracle.Removed, Who: "admin", Key: keys.Candidate(electionName, id), Lease: id}
		resp, err := s.All.Get(ctx, e.Key)
		if err != nil || len(resp.Kvs) == 0 { // it will register soon
			return false, err
		}
		e.Token = resp.Kvs[0].CreateRevision
		return true, nil
	})
	if err == nil {
		s.tell(e)
	}
	return e, err
}

// revoke is proven by etcd, in which the lease and its key no longer exist.
func revoke(ctx context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	e, err := s.removing(ctx, c)
	if err == nil {
		err = s.Revoke(ctx, e.Lease, e.Key, e.Token)
	}
	return nil, err
}

// remove is proven by etcd, in which the key no longer exists.
func remove(ctx context.Context, s *series, c *candidate, _ Injection) (healer, error) {
	e, err := s.removing(ctx, c)
	if err == nil {
		err = s.Delete(ctx, e.Key, e.Token)
	}
	return nil, err
}

// Faults of etcd's members.

func (s *series) chosen(ctx context.Context, in Injection) (int, error) {
	if in.On == Leader {
		return s.Leader(ctx)
	}
	return in.Pick % s.Size(), nil
}

// ofMember injects a fault into the process of a member. It is healed by back, unless the member runs: so
// healing can be repeated.
func (s *series) ofMember(ctx context.Context, in Injection, do, back func(context.Context, *etcdtest.Member) error) (string, healer, error) {
	i, err := s.chosen(ctx, in)
	if err != nil {
		return "", nil, err
	}
	s.note("member %d: %s", i, in)
	m := s.Member(i)
	err = do(ctx, m)
	return fmt.Sprintf("member %d", i), func(ctx context.Context) error {
		if m.Running() {
			return nil
		}
		return back(ctx, m)
	}, err
}

func restart(ctx context.Context, m *etcdtest.Member) error { return m.Restart(ctx) }

// memberKill is proven by waiting for the process.
func memberKill(ctx context.Context, s *series, in Injection) (string, healer, error) {
	return s.ofMember(ctx, in, func(_ context.Context, m *etcdtest.Member) error { return m.Kill() }, restart)
}

// memberStop is proven by the kernel, which reports that the process is stopped.
func memberStop(ctx context.Context, s *series, in Injection) (string, healer, error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return "", nil, err
	}
	return s.ofMember(ctx, in, func(_ context.Context, m *etcdtest.Member) error { return m.Stop() }, func(_ context.Context, m *etcdtest.Member) error {
		if m.Index == leader {
			s.resumed = append(s.resumed, s.now())
		}
		return m.Cont()
	})
}

// memberRestart is proven by the new process, which serves requests.
func memberRestart(ctx context.Context, s *series, in Injection) (string, healer, error) {
	return s.ofMember(ctx, in, func(ctx context.Context, m *etcdtest.Member) error {
		if err := m.Kill(); err != nil {
			return err
		}
		return m.Restart(ctx)
	}, restart)
}

// replace is proven by the new member, which has another ID and serves requests.
func replace(ctx context.Context, s *series, in Injection) (string, healer, error) {
	again := func(ctx context.Context, m *etcdtest.Member) error { return s.Replace(ctx, m.Index) }
	return s.ofMember(ctx, in, func(ctx context.Context, m *etcdtest.Member) error {
		before := m.ID()
		err := again(ctx, m)
		if err == nil && m.ID() == before {
			err = fmt.Errorf("%w: member %d was not replaced", inject.ErrNoEffect, m.Index)
		}
		return err
	}, again)
}

// cut partitions one member.
func cut(ctx context.Context, s *series, in Injection) (string, healer, error) {
	i, err := s.chosen(ctx, in)
	if err != nil {
		return "", nil, err
	}
	return s.cutOff(ctx, in, i)
}

func cutMinority(ctx context.Context, s *series, in Injection) (string, healer, error) {
	return s.cutOff(ctx, in, s.some(in, (s.Size()-1)/2)...)
}

// muteTime is a long time for an answer of etcd, even on a busy machine.
const muteTime = 200 * time.Millisecond

// cutMajority is also proven by etcd, which does not answer a request.
func cutMajority(ctx context.Context, s *series, in Injection) (string, healer, error) {
	on, heal, err := s.cutOff(ctx, in, s.some(in, s.Size()/2+1)...)
	if err == nil {
		err = inject.Answers(ctx, s.All, false, muteTime)
	}
	return on, heal, err
}

// some chooses n members, beginning at a drawn one.
func (s *series) some(in Injection, n int) (chosen []int) {
	for i := range n {
		chosen = append(chosen, (in.Pick+i)%s.Size())
	}
	return chosen
}

// cutOff partitions members. It is proven by data that was held back on the links of each of them.
func (s *series) cutOff(ctx context.Context, in Injection, members ...int) (string, healer, error) {
	s.note("members %v: %s", members, in)
	return fmt.Sprintf("members %v", members), func(context.Context) error { return s.Mend(members...) }, s.Cut(ctx, in.Way.direction(), members...)
}
