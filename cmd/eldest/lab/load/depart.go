package load

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
)

// way is a way to depart.
type way struct {
	name string
	// of is how often it is taken, of a hundred.
	of int
	// leads says that it is the leader's.
	leads bool
	// do departs. All but the crashes are confirmed by etcd before it returns.
	do func(ctx context.Context, p *participant, l *election.Leadership) error
	// end is what a waiter's campaign ends with.
	end error
}

// The ways to depart. Leaders crash at a pace of their own.
var (
	resign = &way{"resign", 45, true, func(ctx context.Context, _ *participant, l *election.Leadership) error { return l.Resign(ctx) }, nil}
	// The session is closed, its lease revoked.
	leaderCloses = &way{"leader closes", 5, true, closeSession, nil}
	// The session is abandoned: nothing is sent.
	leaderCrash = &way{"leader crashes", 0, true, abandon, nil}
	withdraw    = &way{"withdraw", 20, false, func(ctx context.Context, p *participant, _ *election.Leadership) error {
		return p.candidate.Withdraw(ctx)
	}, eldest.ErrWithdrawn}
	cancelled = &way{"context is cancelled", 10, false, func(_ context.Context, p *participant, _ *election.Leadership) error {
		p.giveUp()
		return nil
	}, context.Canceled}
	closes = &way{"session is closed", 10, false, closeSession, eldest.ErrClosed}
	crash  = &way{"crash", 5, false, abandon, eldest.ErrClosed}
	// Somebody else deletes its key.
	evicted = &way{"evicted", 5, false, func(ctx context.Context, p *participant, _ *election.Leadership) error {
		key := p.candidate.Key()
		p.tell(oracle.Event{Kind: oracle.Removed, Token: int64(p.token), Key: key})
		return election.Evict(ctx, p.All, candidates, eldest.Candidate{Key: key, Token: p.token})
	}, eldest.ErrDeposed}

	ways = []*way{resign, leaderCloses, withdraw, cancelled, closes, crash, evicted}
)

func closeSession(ctx context.Context, p *participant, _ *election.Leadership) error {
	return p.session.Close(ctx)
}

func abandon(_ context.Context, p *participant, _ *election.Leadership) error {
	p.gone(true)
	p.session.Abandon()
	return nil
}

func draw(rng *rand.Rand) *way {
	n := rng.IntN(100)
	for _, w := range ways {
		if n -= w.of; n < 0 {
			return w
		}
	}
	return resign
}

// depart has a participant leave, which leads if l is not nil, and looks at how it ended. A waiter may
// have won in the meantime; then it leaves as a leader.
func (p *participant) depart(w *way, l *election.Leadership) {
	ctx, stop := context.WithTimeout(context.Background(), p.scale.patience())
	defer stop()
	if w == resign {
		p.write(l)
	}
	begun := time.Now()
	err := w.do(ctx, p, l)
	switch {
	case l == nil && (errors.Is(err, eldest.ErrLeading) || errors.Is(err, eldest.ErrNotRegistered)):
		err = nil // it has won meanwhile, or a fault was quicker: the campaign says which
	case w == resign && errors.Is(err, eldest.ErrNotLeading):
		p.book.failed("tenure", err) // a fault was quicker
		err = nil
	}
	p.must(ctx, w.name, err)
	if l != nil && l.Err() == nil {
		p.book.violation("%s: the tenure %d goes on", w.name, l.Token())
	}
	if l == nil {
		select {
		case end := <-p.result:
			switch {
			case end.err == nil && (w == withdraw || w == cancelled):
				p.depart(resign, end.Leadership)
				return
			case end.err == nil, errors.Is(end.err, w.end): // a tenure, which is over or about to be; or what was to come
			case errors.Is(end.err, eldest.ErrSessionLost), errors.Is(end.err, eldest.ErrDeposed):
				p.book.failed("await", end.err) // a fault was quicker
			default:
				p.book.violation("%s: the campaign ended with %v", w.name, end.err)
			}
		case <-ctx.Done():
			p.book.late("stuck: a campaign goes on %v after its end: %s", p.scale.patience(), w.name)
			return
		}
	}
	p.book.took("departure: "+w.name, time.Since(begun))
	p.book.count("departures: " + w.name)
	p.book.count("departures")
}

const (
	// backlog is how far the departures may fall behind before they give up catching up: a load that
	// cannot be reached must not become a burst later.
	backlog = 2 * time.Second
	// handing is how long is waited for a leader: longer than a hand-over, shorter than the time
	// between two departures.
	handing = 50 * time.Millisecond
)

// order has participants depart at the pace of the scale, until ctx ends.
func (r *run) order(ctx context.Context) {
	rng := rand.New(rand.NewPCG(r.scale.Seed, 0xe1de57))
	behind := 1 + int(backlog.Seconds()*r.scale.PerSecond)
	pace := rate.NewLimiter(rate.Limit(r.scale.PerSecond), behind)
	pace.AllowN(time.Now(), behind)
	for pace.Wait(ctx) == nil {
		w := draw(rng)
		r.book.count("departures ordered")
		if w.leads && r.orderLeader(ctx, w) {
			continue
		}
		for w.leads { // nobody leads
			w = draw(rng)
		}
		r.orderWaiter(rng, w)
	}
}

// orderLeader has the leader depart; false if nobody leads.
func (r *run) orderLeader(ctx context.Context, w *way) bool {
	select {
	case r.toLeader <- w:
		return true
	case <-time.After(handing):
	case <-ctx.Done():
	}
	return false
}

// orderWaiter has one depart that waits; most do.
func (r *run) orderWaiter(rng *rand.Rand, w *way) {
	for range 100 {
		select {
		case r.orders[rng.IntN(len(r.orders))] <- w:
			return
		default:
		}
	}
	r.book.count("departures that nobody took")
}

// crashLeaders has a leader crash now and then, until ctx ends.
func (r *run) crashLeaders(ctx context.Context) {
	for range ticks(ctx, r.scale.LeaderCrash) {
		select {
		case r.toLeader <- leaderCrash: // the next leader, if nobody leads
		case <-ctx.Done():
			return
		}
	}
}

// ticks counts from 0 on, at a pace, until ctx ends. A tick that comes while the work of the one before is not
// over is dropped.
func ticks(ctx context.Context, every Span) iter.Seq[int] {
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
