package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	giveUp    context.CancelFunc // ends its campaign
	tenure    *election.Leadership
	writes    int
	crashed   bool
}

// live has one participant after the other until ctx ends. After one that has not departed by order
// it pauses, as package elector does: a thousand that come back at once would prevent etcd from
// answering any.
func (r *run) live(ctx context.Context, seat int, client *clientv3.Client) {
	pause, faults := retry.Jittered(100*time.Millisecond, 5*time.Second), 0
	for life := 1; ctx.Err() == nil; life++ {
		p := &participant{run: r, name: fmt.Sprintf("candidate %d, life %d", seat, life), client: client}
		ordered := p.join() && p.stay(ctx, r.orders[seat])
		if p.close(); ordered {
			faults = 0
			continue
		}
		_ = retry.Sleep(ctx, pause(faults)) // the loop checks ctx
		faults++
	}
}

// join opens a session and enters the queue. It may fail.
func (p *participant) join() bool {
	err := p.call("open session", func(ctx context.Context) (err error) {
		p.session, err = lease.Open(ctx, lease.Config{Lease: p.client, Options: lease.Options{TTL: time.Duration(p.scale.TTL)}})
		return err
	})
	if err != nil {
		return false
	}
	err = p.call("register", func(ctx context.Context) (err error) {
		p.candidate, err = election.New(election.Config{
			Election: candidates, Session: p.session, KV: p.client, Watcher: p.client, Value: []byte(p.name),
			Options: election.Options{Hooks: election.Hooks{Registered: p.registered, Won: p.won, Ended: p.ended}},
		})
		if err != nil {
			return err
		}
		place, err := p.candidate.Register(ctx)
		p.token = place.Token
		return err
	})
	if err == nil {
		p.book.count("joins")
	}
	return err == nil
}

// stay waits, leads, and departs when it is ordered to, or when ctx ends. It reports whether the
// end was ordered, and not caused by a fault.
func (p *participant) stay(ctx context.Context, orders <-chan *way) (ordered bool) {
	campaign, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	p.giveUp = giveUp
	won, over := make(chan *election.Leadership, 1), make(chan error, 1)
	go func() { over <- p.campaign(ctx, campaign, won) }()
	op, kind, w := "await", "campaigns", withdraw
	for {
		select {
		case p.tenure = <-won:
			op, kind, w, orders = "tenure", "tenures", resign, p.toLeader
			if p.tenure.Token() != p.token {
				p.book.violation("registered with token %d, won with %d", p.token, p.tenure.Token())
			}
			p.write()
			continue
		case w = <-orders:
		case <-ctx.Done():
		case err := <-over:
			p.leaving()
			p.book.failed(op, err)
			p.book.count(kind + " ended by the faults")
			return false
		}
		break
	}
	if w == resign {
		p.write()
	}
	p.depart(w, op, over)
	return true
}

// campaign waits to lead, and until the tenure is over. It returns how that ended. One that has won
// just before it gave up resigns. life is that of the load.
func (p *participant) campaign(life, ctx context.Context, won chan<- *election.Leadership) error {
	l, err := p.candidate.Await(ctx)
	if err != nil {
		return err
	}
	p.book.count("tenures")
	p.living.Go(func() { p.converge(life, l.Token()) })
	p.leading.Add(1) // not before the tenure is counted: see load
	defer p.leading.Add(-1)
	won <- l
	select {
	case <-l.Done():
	case <-ctx.Done():
		_ = p.call("resign", l.Resign) // it is counted
	}
	return l.Err()
}

// depart makes a participant leave, and checks how its campaign or tenure ended. A waiter may have
// won in the meantime; then it leaves as a leader.
func (p *participant) depart(w *way, op string, over <-chan error) {
	p.leaving()
	_ = p.timed("departure: "+w.name, func(ctx context.Context) error {
		switch err := w.do(ctx, p); {
		case errors.Is(err, eldest.ErrLeading): // it has won meanwhile
			p.giveUp()
		case errors.Is(err, eldest.ErrNotRegistered), errors.Is(err, eldest.ErrNotLeading): // a fault was quicker
		default:
			p.book.failed(w.name, err)
		}
		if p.tenure != nil && p.tenure.Err() == nil {
			p.book.violation("%s: the tenure %d has not ended", w.name, p.token)
		}
		select {
		case err := <-over:
			switch {
			case errors.Is(err, w.end), !w.leads && errors.Is(err, eldest.ErrResigned):
			case errors.Is(err, eldest.ErrSessionLost), errors.Is(err, eldest.ErrDeposed):
				p.book.failed(op, err) // a fault was quicker
			default:
				p.book.violation("%s: the campaign or tenure ended with %v", w.name, err)
			}
		case <-ctx.Done(): // it is stuck, which timed reports
		}
		return nil
	})
	p.book.count("departures: " + w.name)
	p.book.count("departures")
}

// close ends candidate and session, whatever has happened to the participant: both calls must
// return, without an error. Then its key is deleted or, after a crash, is when the lease expires.
func (p *participant) close() {
	if p.candidate != nil {
		_ = p.call("close candidate", p.candidate.Close) // it is counted
	}
	if p.session != nil {
		_ = p.call("close session", p.session.Close)
		p.tell(oracle.Event{Kind: oracle.Exited, Lost: p.crashed})
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
	do func(ctx context.Context, p *participant) error
	// end is the error with which the campaign or the tenure ends.
	end error
}

// The ways to depart. Leaders crash at a pace of their own.
var (
	resign = &way{"resign", 45, true, func(ctx context.Context, p *participant) error {
		return p.tenure.Resign(ctx)
	}, eldest.ErrResigned}
	// The session is closed, its lease revoked.
	leaderCloses = &way{"leader closes", 5, true, closeSession, eldest.ErrClosed}
	// The session is abandoned: nothing is sent.
	leaderCrash = &way{"leader crashes", 0, true, abandon, eldest.ErrClosed}
	withdraw    = &way{"withdraw", 20, false, func(ctx context.Context, p *participant) error {
		return p.candidate.Withdraw(ctx)
	}, eldest.ErrWithdrawn}
	cancelled = &way{"context is cancelled", 10, false, func(_ context.Context, p *participant) error {
		p.giveUp()
		return nil
	}, context.Canceled}
	closes = &way{"session is closed", 10, false, closeSession, eldest.ErrClosed}
	crash  = &way{"crash", 5, false, abandon, eldest.ErrClosed}
	// Another client deletes its key.
	evicted = &way{"evicted", 5, false, func(ctx context.Context, p *participant) error {
		key := p.candidate.Key()
		p.tell(oracle.Event{Kind: oracle.Removed, Token: int64(p.token), Key: key})
		return election.Evict(ctx, p.All, candidates, eldest.Candidate{Key: key, Token: p.token})
	}, eldest.ErrDeposed}

	ways = []*way{resign, leaderCloses, withdraw, cancelled, closes, crash, evicted}
)

func closeSession(ctx context.Context, p *participant) error { return p.session.Close(ctx) }

func abandon(_ context.Context, p *participant) error {
	p.crashed = true
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

// handing is how long to wait for a leader that departs: longer than a hand-over, shorter than the
// time between two departures.
const handing = 50 * time.Millisecond

// order makes one participant depart: the leader, if that is drawn and there is one, or a waiter.
func (r *run) order(rng *rand.Rand) {
	r.book.count("departures ordered")
	w := draw(rng)
	if w.leads {
		select {
		case r.toLeader <- w:
			return
		case <-time.After(handing): // no candidate leads
		}
	}
	for w.leads {
		w = draw(rng)
	}
	for range 100 { // most of them wait
		select {
		case r.orders[rng.IntN(len(r.orders))] <- w:
			return
		default:
		}
	}
	r.book.count("departures without a participant")
}

// write makes a leader write once, with its guard.
func (p *participant) write() {
	key := fmt.Sprintf("%s%020d/%d", written, p.token, p.writes)
	p.writes++
	e := oracle.Event{Kind: oracle.Sent, Token: int64(p.token), Write: key}
	p.tell(e)
	err := p.call("guarded write", func(ctx context.Context) error {
		_, err := p.tenure.Txn(ctx).Then(clientv3.OpPut(key, oracle.WriteValue(e.Token, key))).Commit()
		return err
	})
	outcome := "refused"
	switch e.Kind = oracle.Refused; {
	case err == nil:
		e.Kind, outcome = oracle.Acked, "acknowledged"
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		e.Kind, outcome = oracle.Unclear, "of unknown outcome"
	}
	p.tell(e)
	p.book.count("guarded writes " + outcome)
}

func (p *participant) tell(e oracle.Event) {
	e.Who = p.name
	p.record.tell(e)
}

// leaving reports that its key may be deleted from now on.
func (p *participant) leaving() { p.tell(oracle.Event{Kind: oracle.Leaving}) }

func (p *participant) registered(ev election.RegisteredEvent) {
	p.tell(oracle.Event{Kind: oracle.Joined, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token), Key: ev.Key, Lease: oracle.LeaseOf(ev.Key)})
}

func (p *participant) won(ev election.WonEvent) {
	p.tell(oracle.Event{Kind: oracle.Won, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token), Key: ev.Key})
}

func (p *participant) ended(ev election.EndedEvent) {
	e := oracle.Event{Kind: oracle.Failed, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token)}
	if ev.Led {
		e.Kind, e.Text = oracle.Ended, kindOf(ev.Cause)
	}
	p.tell(e)
}
