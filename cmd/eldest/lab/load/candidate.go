package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/time/rate"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
)

// participant is one candidate until it departs: then another one follows, with a new session.
type participant struct {
	*run
	name      string
	client    *clientv3.Client
	session   *lease.Session
	candidate *election.Candidate
	token     eldest.Token
	result    chan outcome // of its campaign
	giveUp    context.CancelFunc
	sequence  int  // of its guarded writes
	left      bool // it has reported that it no longer takes part
}

type outcome struct {
	*election.Leadership
	err error
}

// live runs one participant after the other until ctx ends. joined is called when the first is in
// the queue. After one that has not departed by order it pauses, as package elector does: a
// thousand that come back at once would prevent etcd from answering any.
func (r *run) live(ctx context.Context, index int, client *clientv3.Client, joined func()) {
	once, pause, faults := sync.OnceFunc(joined), retry.Jittered(100*time.Millisecond, 5*time.Second), 0
	defer once()
	for life := 1; ctx.Err() == nil; life++ {
		p := &participant{run: r, name: fmt.Sprintf("candidate %d, life %d", index, life), client: client, result: make(chan outcome, 1)}
		ordered := false
		if p.join(ctx) {
			once()
			ordered = p.stay(ctx, r.orders[index])
			p.giveUp()
		}
		if p.close(); ordered {
			faults = 0
			continue
		}
		_ = retry.Sleep(ctx, pause(faults)) // the loop checks ctx
		faults++
	}
}

// join opens a session, registers and campaigns. It may fail, also at the end of the run, when the
// error is ignored.
func (p *participant) join(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, p.scale.patience())
	defer cancel()
	fails := func(op string, err error) bool {
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			p.must(ctx, op, err)
		}
		return err != nil
	}
	var err error
	if p.session, err = lease.Open(ctx, lease.Config{Lease: p.client, Options: lease.Options{TTL: time.Duration(p.scale.TTL)}}); fails("open session", err) {
		return false
	}
	p.candidate, err = election.New(election.Config{
		Election: candidates, Session: p.session, KV: p.client, Watcher: p.client, Value: []byte(p.name),
		Options: election.Options{Hooks: election.Hooks{Registered: p.registered, Won: p.won, Ended: p.ended}},
	})
	if fails("new candidate", err) {
		return false
	}
	place, err := p.candidate.Register(ctx)
	if fails("register", err) {
		return false
	}
	p.token = place.Token
	var campaign context.Context
	campaign, p.giveUp = context.WithCancel(context.Background())
	go func() {
		l, err := p.candidate.Await(campaign)
		p.result <- outcome{l, err}
	}()
	p.book.count("joins")
	return true
}

func (p *participant) tell(e oracle.Event) {
	e.Who = p.name
	p.record.tell(e)
}

func (p *participant) registered(ev election.RegisteredEvent) {
	p.tell(oracle.Event{Kind: oracle.Joined, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token), Key: ev.Key, Lease: oracle.LeaseOf(ev.Key)})
}

func (p *participant) won(ev election.WonEvent) {
	p.tell(oracle.Event{Kind: oracle.Won, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token), Key: ev.Key})
	p.book.count("tenures")
	p.newest.won(ev.Token, ev.At)
}

func (p *participant) ended(ev election.EndedEvent) {
	e := oracle.Event{Kind: oracle.Failed, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token)}
	if ev.Led {
		e.Kind, e.Text = oracle.Ended, kindOf(ev.Cause)
		p.newest.ended(ev.Token)
	}
	p.tell(e)
}

// leaving reports that its key may be deleted from now on.
func (p *participant) leaving() { p.tell(oracle.Event{Kind: oracle.Leaving}) }

// gone reports, once, that its key was deleted or, if its lease is left to expire, will be.
func (p *participant) gone(lease bool) {
	if !p.left {
		p.left = true
		p.tell(oracle.Event{Kind: oracle.Exited, Lost: lease})
	}
}

// stay waits, leads, and departs when it is ordered to, or when ctx ends. It reports whether the
// end was ordered, and not caused by a fault.
func (p *participant) stay(ctx context.Context, orders <-chan *way) (ordered bool) {
	w, leads := withdraw, (*election.Leadership)(nil)
	select {
	case o := <-p.result:
		if o.err != nil {
			p.leaving()
			p.book.failed("await", o.err)
			p.book.count("campaigns ended by the faults")
			return false
		}
		if o.Token() != p.token {
			p.book.violation("registered with token %d, won with %d", p.token, o.Token())
		}
		p.write(o.Leadership)
		w, leads = resign, o.Leadership
		select {
		case w = <-p.toLeader:
		case <-o.Done():
			p.leaving()
			p.book.failed("tenure", o.Err())
			p.book.count("tenures ended by the faults")
			return false
		case <-ctx.Done():
		}
	case w = <-orders:
	case <-ctx.Done():
	}
	p.leaving()
	p.depart(w, leads)
	return true
}

// close ends candidate and session, whatever has happened to the participant: both calls must
// return, without an error.
func (p *participant) close() {
	if p.session == nil {
		return
	}
	p.gone(false)
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	if p.candidate != nil {
		p.must(ctx, "close candidate", p.candidate.Close(ctx))
	}
	p.must(ctx, "close session", p.session.Close(ctx))
}

// must records the error of a call that should fail only if it was stuck.
func (r *run) must(ctx context.Context, op string, err error) {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.book.late("stuck: %s for %v: %v", op, r.scale.patience(), err)
	default:
		r.book.failed(op, err)
	}
}

// way is a way to depart.
type way struct {
	name string
	// of is how often it is taken, in percent.
	of int
	// leads means that only the leader takes it.
	leads bool
	// do departs. All but the crashes are confirmed by etcd before it returns.
	do func(ctx context.Context, p *participant, l *election.Leadership) error
	// end is the error with which a waiter's campaign ends.
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
	// Another client deletes its key.
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

// depart makes a participant leave, which leads if l is not nil, and checks how it ended. A waiter
// may have won in the meantime; then it leaves as a leader.
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
		err = nil // it has won meanwhile, or a fault was quicker: the result of the campaign shows which
	case w == resign && errors.Is(err, eldest.ErrNotLeading):
		p.book.failed("tenure", err) // a fault was quicker
		err = nil
	}
	p.must(ctx, w.name, err)
	if l != nil && l.Err() == nil {
		p.book.violation("%s: the tenure %d has not ended", w.name, l.Token())
	}
	if l == nil {
		select {
		case end := <-p.result:
			switch {
			case end.err == nil && (w == withdraw || w == cancelled):
				p.depart(resign, end.Leadership)
				return
			case end.err == nil, errors.Is(end.err, w.end): // a tenure, which is over or about to be; or the expected error
			case errors.Is(end.err, eldest.ErrSessionLost), errors.Is(end.err, eldest.ErrDeposed):
				p.book.failed("await", end.err) // a fault was quicker
			default:
				p.book.violation("%s: the campaign ended with %v", w.name, end.err)
			}
		case <-ctx.Done():
			p.book.late("stuck: a campaign still runs %v after its end: %s", p.scale.patience(), w.name)
			return
		}
	}
	p.book.took("departure: "+w.name, time.Since(begun))
	p.book.count("departures: " + w.name)
	p.book.count("departures")
}

const (
	// backlog is how far the departures may fall behind; older ones are dropped: a load that cannot
	// be reached must not become a burst later.
	backlog = 2 * time.Second
	// handing is how long to wait for a leader: longer than a hand-over, shorter than the time
	// between two departures.
	handing = 50 * time.Millisecond
)

// order makes participants depart at the pace of the scale, until ctx ends.
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
		for w.leads { // no candidate leads
			w = draw(rng)
		}
		r.orderWaiter(rng, w)
	}
}

// orderLeader makes the leader depart; it returns false if no candidate leads.
func (r *run) orderLeader(ctx context.Context, w *way) bool {
	select {
	case r.toLeader <- w:
		return true
	case <-time.After(handing):
	case <-ctx.Done():
	}
	return false
}

// orderWaiter makes a participant depart that waits; most do.
func (r *run) orderWaiter(rng *rand.Rand, w *way) {
	for range 100 {
		select {
		case r.orders[rng.IntN(len(r.orders))] <- w:
			return
		default:
		}
	}
	r.book.count("departures without a participant")
}

// crashLeaders makes a leader crash now and then, until ctx ends.
func (r *run) crashLeaders(ctx context.Context) {
	for range ticks(ctx, r.scale.LeaderCrash) {
		select {
		case r.toLeader <- leaderCrash: // the next leader, if no candidate leads
		case <-ctx.Done():
			return
		}
	}
}

// ticks counts from 0 on, at a pace, until ctx ends. A tick that comes before the work of the
// previous one is over is dropped.
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
