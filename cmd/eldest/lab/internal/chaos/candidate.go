package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// candidate is one process of a participant. When it is killed, another process takes its place,
// with the same network and a new name ("p3", "p3.2"): in a history no name returns after a crash.
type candidate struct {
	*participant.Process
	index int
	life  int
	who   string
	// host is its network.
	host *etcdtest.Host
	// tight means that its lease has next to no margin: its clock must not be wrong. beat is the
	// timeout of its heartbeats, 0 for none.
	tight bool
	beat  time.Duration

	mu       sync.Mutex
	standing oracle.Event // the last reported event of Joined, Won, Suspended, Resumed, Failed and Ended
	lease    int64
	keeper   int // the process ID of its keeper; 0: none
	ending   ending
}

// ending is why a process may end.
type ending int

const (
	unexpected ending = iota
	killed
	leaving // it was ordered to leave
)

// start starts the next process of a participant. It does not wait until that process is up.
func (s *series) start(index int) (err error) {
	old := s.seat(index)
	c := &candidate{index: index, life: 1, tight: index%2 == 1}
	if old != nil {
		c.life, c.host = old.life+1, old.host
	} else if c.host, err = s.NewHost(); err != nil {
		return err
	} else {
		s.hosts = append(s.hosts, c.host)
	}
	c.beat = s.beatOf(index, c.life)
	c.who = fmt.Sprintf("p%d", index+1)
	if c.life > 1 {
		c.who = fmt.Sprintf("%s.%d", c.who, c.life)
	}
	cfg := participant.Config{
		Who: c.who, Contender: s.cfg.Contender, Election: electionName, Endpoints: c.host.Endpoints(), TTL: s.cfg.TTL,
		Data: dataKey, Beat: c.beat, Keeper: s.hasKeeper(index), Tight: c.tight, Without: s.cfg.Without,
	}
	c.Process, err = participant.Launch(s.Spawner, s.cfg.Executable, cfg, func(l participant.Line) { s.report(c, l) }, func(p *offspring.Process) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch code, complaint := p.Result(); c.ending {
		case unexpected:
			s.fail(fmt.Errorf("participant %s ended by itself (exit code %d): %s", c.who, code, complaint))
		case leaving:
			s.tell(oracle.Event{Kind: oracle.Exited, Who: c.who, Code: code, Text: complaint})
		case killed:
		}
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seats[index] = c
	return nil
}

// heartbeats reports whether participants have heartbeats and keepers, as those of Eldest have.
func (c Config) heartbeats() bool { return c.Contender == contender.Eldest }

// beatOf draws the heartbeat timeout of a process; two of five participants have none (0). Of any two
// beside each other at least one has heartbeats.
func (s *series) beatOf(index, life int) time.Duration {
	if n := (index + int(s.seed%5)) % 5; !s.cfg.heartbeats() || n == 1 || n == 3 {
		return 0
	}
	d := drawer{rand.New(rand.NewPCG(s.seed, uint64(index*maxLives+life))), s.cfg.TTL}
	return d.between(lease.MinHeartbeat, s.cfg.longestBeat())
}

// maxLives is greater than the number of processes that a participant has in a series.
const maxLives = 1 << 20

// longestBeat is the longest heartbeat timeout, which must be less than the TTL.
func (c Config) longestBeat() time.Duration { return min(c.TTL*9/10, 2*time.Second) }

// hasKeeper reports whether a participant has a keeper, as every other participant has.
func (s *series) hasKeeper(index int) bool {
	return s.cfg.heartbeats() && (index+int(s.seed%2))%2 == 0
}

// report handles a line that a participant has written. It is also the store outside etcd, which
// refuses tokens that are older than the newest that it has accepted. The store is in this process,
// so that an offer can be in flight while the participant is stopped or killed.
func (s *series) report(c *candidate, l participant.Line) {
	switch {
	case l.Up:
		c.mu.Lock()
		c.keeper = l.Keeper
		c.mu.Unlock()
		return
	case l.Event == nil:
		s.offer(c.who, l.Offer)
		return
	}
	e := *l.Event
	e.At -= s.zero
	if e.Until != 0 {
		e.Until -= s.zero
	}
	if e.At > s.now() {
		s.fail(fmt.Errorf("participant %s reports a time in the future: the processes do not share a clock", c.who))
	}
	c.mu.Lock()
	switch e.Kind {
	case oracle.Joined, oracle.Won, oracle.Suspended, oracle.Resumed, oracle.Failed, oracle.Ended:
		c.standing = e
		if e.Kind == oracle.Joined {
			c.lease = e.Lease
		}
	}
	c.mu.Unlock()
	s.Add(e)
}

// offer decides whether the store outside etcd accepts a token, and records the decision.
func (s *series) offer(who string, token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, err := s.newest.Advance(context.Background(), electionName, eldest.Token(token))
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	e := oracle.Event{Kind: oracle.FenceRefused, Who: who, Token: token}
	if newest == eldest.Token(token) {
		e.Kind = oracle.FenceAccepted
	}
	s.tell(e)
}

func (c *candidate) is(r Role) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r {
	case Leader:
		return c.standing.Kind == oracle.Won || c.standing.Kind == oracle.Resumed
	case Waiter:
		return c.standing.Kind == oracle.Joined
	default:
		return true
	}
}

// last returns the last event of its candidacy, with its lease; the zero Event if it has none.
func (c *candidate) last() oracle.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.standing
	e.Lease = c.lease
	return e
}

// seat returns the newest process of a participant, or nil if there was none.
func (s *series) seat(index int) *candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seats[index]
}

func (s *series) living() []*candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seats), func(c *candidate) bool { return c == nil || c.Gone() })
}

func (s *series) crash(c *candidate) {
	c.expect(killed)
	if keeper := c.keptBy(); keeper != 0 {
		s.kept = append(s.kept, crash{s.now(), c.last().Lease})
	}
	c.End()
	s.tell(oracle.Event{Kind: oracle.Crashed, Who: c.who})
}

// crash is the crash of a participant with a keeper.
type crash struct {
	at    time.Duration
	lease int64
}

// keptBy returns the process ID of a candidate's keeper, or 0 if it has none.
func (c *candidate) keptBy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keeper
}

// loseKeeper kills a candidate's keeper, and blocks until the keeper has ended.
func (c *candidate) loseKeeper(ctx context.Context) error {
	pid := c.keptBy()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("the keeper of %s: %w", c.who, err)
	}
	err := inject.Until(ctx, "a keeper ends", func(context.Context) (bool, error) {
		alive, err := offspring.Alive(pid)
		return err == nil && !alive, err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeper = 0
	return err
}

func (c *candidate) expect(how ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = how
}

// order sends an order to a candidate, and blocks until an event shows that the order was carried
// out. If no such event comes before ctx ends, the error is inject.ErrNoEffect.
func (s *series) order(ctx context.Context, c *candidate, o participant.Order, what string, shown func(oracle.Event) bool) error {
	since := s.now()
	if err := c.Order(o); err != nil {
		return err
	}
	err := s.Await(ctx, s.patience, what, func(all []oracle.Event) bool {
		return scenario.Last(all, func(e oracle.Event) bool { return e.Who == c.who && e.At >= since && shown(e) }) != nil
	})
	if err != nil {
		return fmt.Errorf("%w: no evidence that %s: %w", inject.ErrNoEffect, what, err)
	}
	return nil
}

// quit makes all participants leave at the same time, and ends those that have not left when ctx ends.
func (s *series) quit(ctx context.Context) {
	all := s.living()
	for _, c := range all {
		c.expect(leaving)
		_ = c.Order(participant.Order{Do: participant.DoQuit}) // an error means that it has ended, which is already recorded
	}
	for _, c := range all {
		if err := inject.Until(ctx, c.who+" ends", func(context.Context) (bool, error) { return c.Gone(), nil }); err != nil {
			s.tell(oracle.Event{Kind: oracle.Left, Text: "the process of " + c.who})
		}
		c.End()
	}
}
