package load

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// order is a way to depart.
type order string

// The ways to depart. All but crash and leaderCrash are confirmed by etcd before the
// participant has left.
const (
	resign      order = "resign"               // the leader resigns
	leaderClose order = "leader closes"        // the leader's session is closed: its lease revoked
	leaderCrash order = "leader crashes"       // the leader's session is abandoned: nothing is sent
	withdraw    order = "withdraw"             // a waiter withdraws
	cancel      order = "context is cancelled" // a waiter's campaign is cancelled
	closing     order = "session is closed"    // a waiter's lease is revoked
	crash       order = "crash"                // a waiter's session is abandoned
	evict       order = "evicted"              // somebody else removes a waiter's key
)

// mix is how often each way is taken, of a hundred. leaderCrash has a clock of
// its own.
var mix = []struct {
	order
	of int
}{{resign, 45}, {leaderClose, 5}, {withdraw, 20}, {cancel, 10}, {closing, 10}, {crash, 5}, {evict, 5}}

func (o order) leaders() bool { return o == resign || o == leaderClose || o == leaderCrash }

func draw(rng *rand.Rand) order {
	n := rng.IntN(100)
	for _, m := range mix {
		if n -= m.of; n < 0 {
			return m.order
		}
	}
	return resign
}

// conduct sends participants away at the pace of the scale, until ctx ends.
func (r *run) conduct(ctx context.Context) {
	rng := rand.New(rand.NewPCG(r.scale.Seed, 0xe1de57))
	beat := pace{every: time.Duration(float64(time.Second) / r.scale.PerSecond), next: time.Now()}
	for {
		next := draw(rng)
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat.wait()):
		}
		r.book.count("departures ordered")
		if next.leaders() && r.sendLeader(ctx, next) {
			continue
		}
		for next.leaders() { // nobody leads
			next = draw(rng)
		}
		r.sendWaiter(ctx, rng, next)
	}
}

// crash has a leader leave without a word now and then, until ctx ends.
func (r *run) crash(ctx context.Context) {
	for range beats(ctx, r.scale.LeaderCrash) {
		select {
		case r.toLeader <- leaderCrash: // whoever leads next, if nobody does
		case <-ctx.Done():
			return
		}
	}
}

// beats counts from 0 on, at a pace, until ctx ends. A beat that comes while the one before is not
// over is dropped.
func beats(ctx context.Context, every Span) iter.Seq[int] {
	return func(yield func(int) bool) {
		tick := time.NewTicker(time.Duration(every))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if !yield(n) {
				return
			}
		}
	}
}

// pace is a beat that catches up: who was late for one is early for the next. A ticker
// would drop beats, and the load would be less than was asked for.
type pace struct {
	every time.Duration
	next  time.Time
}

// backlog is how far a beat may fall behind before it gives up catching up: a load that
// cannot be reached must not become a burst later.
const backlog = 2 * time.Second

// wait returns how long it is until the next beat.
func (p *pace) wait() time.Duration {
	p.next = p.next.Add(p.every)
	if time.Since(p.next) > backlog {
		p.next = time.Now()
	}
	return time.Until(p.next)
}

// handing is how long the conductor waits for a leader to turn up: longer than a
// hand-over, shorter than a beat.
const handing = 50 * time.Millisecond

// sendLeader has the leader depart; false if nobody leads.
func (r *run) sendLeader(ctx context.Context, o order) bool {
	wait, cancel := context.WithTimeout(ctx, handing)
	defer cancel()
	select {
	case r.toLeader <- o:
		return true
	case <-wait.Done():
		return false
	}
}

// sendWaiter has one depart who waits; most do.
func (r *run) sendWaiter(ctx context.Context, rng *rand.Rand, o order) {
	for range 100 {
		select {
		case r.slots[rng.IntN(len(r.slots))].orders <- o:
			return
		case <-ctx.Done():
			return
		default:
		}
	}
	r.book.count("departures that nobody took")
}
