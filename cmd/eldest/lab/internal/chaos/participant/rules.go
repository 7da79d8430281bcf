package participant

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// Rules that a participant can be configured not to follow: to show what they are for, or that chaos
// finds it.
const (
	// Deadline is to stop being certain of a tenure at its deadline, without a message.
	Deadline = "deadline"
	// Guard is to write only while the leader's key exists.
	Guard = "guard"
	// Owner is to bind each key to the lease of its owner: without it, a key without an owner is left
	// in the queue after a tenure.
	Owner = "owner"
	// Majority is to count a renewal only when a majority of etcd's members has confirmed it.
	Majority = "majority"
	// Clock is to have a clock that runs as fast as etcd's: without it, it runs at half the speed.
	Clock = "clock"
	// Watches is to end each watch with its tenure.
	Watches = "watches"
	// GivenClock is to use the given clock, and not the machine's.
	GivenClock = "given-clock"
)

// Rules lists all rules.
var Rules = []string{Deadline, Guard, Owner, Majority, Clock, Watches, GivenClock}

// slow is the rate of a clock without the rule Clock.
const slow = 0.5

// broken is a tenure that does not notice its end in time.
type broken struct {
	contender.Tenure
	without string
	client  *clientv3.Client
	over    chan struct{}
}

func (p *participant) defective(t contender.Tenure) contender.Tenure {
	if p.Without != Deadline && p.Without != Guard {
		return t
	}
	b := &broken{t, p.Without, p.client, make(chan struct{})}
	go func() {
		defer close(b.over)
		<-t.Context().Done()
		if p.Calm > 0 && p.endsItself(t) {
			return // people would not expect that it is certain after it has resigned
		}
		time.Sleep(2 * p.TTL)
	}()
	return b
}

func (b *broken) Holds() bool {
	if b.without != Deadline {
		return b.Tenure.Holds()
	}
	select {
	case <-b.over:
		return false
	default:
		return true
	}
}

func (b *broken) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	if b.without != Guard {
		return b.Tenure.Do(ctx, op)
	}
	return b.client.Txn(ctx).Then(op).Commit()
}

// late commits without any check but etcd's, like a request that was in flight when the tenure
// ended.
func (p *participant) late(ctx context.Context, t contender.Tenure, op clientv3.Op) (*clientv3.TxnResponse, error) {
	b, ok := t.(*broken)
	if !ok || b.without != Guard {
		return contender.Guarded(ctx, p.client, t.Key(), t.Token(), op)
	}
	if p.Calm == 0 {
		select {
		case <-b.over: // by then another candidate leads
		case <-ctx.Done():
		}
	}
	return p.client.Txn(ctx).Then(op).Commit()
}

// spoil leaves behind what a participant without a rule leaves after a tenure: a watch, which only ends
// with the client, or a candidate's key without an owner, on a lease with a long TTL.
func (p *participant) spoil() {
	switch p.Without {
	case Watches:
		events := p.client.Watch(context.Background(), keys.Prefix(p.Election))
		go func() {
			for range events { // they are not needed
			}
		}()
	case Owner:
		ctx, cancel := context.WithTimeout(p.client.Ctx(), requestTimeout)
		defer cancel()
		if granted, err := p.client.Grant(ctx, 600); err == nil { // else another tenure will end soon
			_, _ = p.client.Put(ctx, keys.Candidate(p.Election, int64(granted.ID)), "orphan", clientv3.WithLease(granted.ID))
		}
	}
}

// clock is a lease.Clock: the machine's, but from some instant on it runs at another rate.
type clock struct {
	mu           sync.Mutex
	rate         float64
	since, shown time.Duration // readings of the machine's clock and of this one when the rate was set
	read         bool          // whether the election has read it since then
}

func newClock() *clock {
	now := lease.Boot().Now()
	return &clock{rate: 1, since: now, shown: now}
}

// Now implements lease.Clock: it never runs backwards.
func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	return c.at(lease.Boot().Now())
}

func (c *clock) at(machine time.Duration) time.Duration {
	return c.shown + time.Duration(float64(machine-c.since)*c.rate)
}

func (c *clock) run(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := lease.Boot().Now()
	c.since, c.shown, c.rate, c.read = now, c.at(now), rate, false
}

// ran returns the rate of the clock since the rate was set, or 0 if the election has not read the
// clock since: a rate that was never read has had no effect.
func (c *clock) ran() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := lease.Boot().Now()
	if now <= c.since || !c.read {
		return 0
	}
	return float64(c.at(now)-c.shown) / float64(now-c.since)
}
