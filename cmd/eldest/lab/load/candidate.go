package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
)

// slot is a place among the candidates: a participant that departs is followed by another one, with
// a new session.
type slot struct {
	*run
	index  int
	client *clientv3.Client
	// orders is received from while the slot's participant waits in the queue.
	orders chan *way
	// lives counts its participants.
	lives int
}

// participant is one life in a slot.
type participant struct {
	*slot
	name      string
	session   *lease.Session
	candidate *election.Candidate
	token     eldest.Token
	result    chan outcome // of its campaign
	giveUp    context.CancelFunc
	// sequence counts its guarded writes.
	sequence int
	// left says that it has told that it takes part no more.
	left bool
}

type outcome struct {
	*election.Leadership
	err error
}

// live lets one participant follow the other until ctx ends. joined is called when the
// first is in the queue. One that has lost a session by no will of its own pauses, as package
// elector does it: a thousand that come back at once would keep etcd from answering any.
func (s *slot) live(ctx context.Context, joined func()) {
	once, pause := sync.OnceFunc(joined), retry.Jittered(100*time.Millisecond, 5*time.Second)
	defer once()
	for faults := 0; ctx.Err() == nil; {
		ordered := false
		if p := s.join(ctx); p != nil {
			once()
			ordered = p.stay(ctx)
		}
		if ordered {
			faults = 0
			continue
		}
		_ = retry.Sleep(ctx, pause(faults)) // ctx is looked at above
		faults++
	}
}

// join opens a session and registers; nil if that failed, which is in the book.
func (s *slot) join(ctx context.Context) *participant {
	ctx, cancel := context.WithTimeout(ctx, s.scale.patience())
	defer cancel()
	// It may fail at the end of the run, when nobody wants to know why.
	unable := func(op string, err error) {
		if !errors.Is(ctx.Err(), context.Canceled) {
			s.must(ctx, op, err)
		}
	}
	session, err := lease.Open(ctx, lease.Config{Lease: s.client, TTL: time.Duration(s.scale.TTL)})
	if err != nil {
		unable("open session", err)
		return nil
	}
	s.lives++
	p := &participant{slot: s, name: fmt.Sprintf("slot %d, life %d", s.index, s.lives), session: session, result: make(chan outcome, 1)}
	p.candidate, err = election.New(election.Config{
		Election: candidates, Session: session, KV: s.client, Watcher: s.client, Value: fmt.Appendf(nil, "slot %d", s.index),
		Hooks: election.Hooks{Registered: p.registered, Won: p.won, Ended: p.ended},
	})
	if err != nil {
		s.book.violation("new candidate: %v", err)
		p.close()
		return nil
	}
	place, err := p.candidate.Register(ctx)
	if err != nil {
		unable("register", err)
		p.close()
		return nil
	}
	p.token = place.Token
	campaign, giveUp := context.WithCancel(context.Background())
	p.giveUp = giveUp
	go func() {
		l, err := p.candidate.Await(campaign)
		p.result <- outcome{l, err}
	}()
	s.book.count("joins")
	return p
}

// tell records what it is told, and what it does.
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

// leaving tells that its key may be deleted from now on.
func (p *participant) leaving() { p.tell(oracle.Event{Kind: oracle.Leaving}) }

// gone tells, once, that its key was deleted or, if its lease is left to expire, will be.
func (p *participant) gone(lease bool) {
	if !p.left {
		p.left = true
		p.tell(oracle.Event{Kind: oracle.Exited, Lost: lease})
	}
}

// stay waits, leads, and departs when it is ordered to, or when ctx ends. It reports
// whether the end was ordered, and not a fault's.
func (p *participant) stay(ctx context.Context) (ordered bool) {
	defer p.giveUp()
	defer p.close()
	select {
	case o := <-p.result:
		return p.lead(ctx, o)
	case w := <-p.orders:
		p.depart(w)
	case <-ctx.Done():
		p.depart(withdraw)
	}
	return true
}

// lead is a tenure: a guarded write at its beginning and, where it is resigned, one at its end.
func (p *participant) lead(ctx context.Context, o outcome) (ordered bool) {
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
	next := resign
	select {
	case next = <-p.toLeader:
	case <-o.Done():
		p.leaving()
		p.book.failed("tenure", o.Err())
		p.book.count("tenures ended by the faults")
		return false
	case <-ctx.Done():
	}
	p.departLeading(next, o.Leadership)
	return true
}

// close ends candidate and session, whatever has happened to the participant: both calls
// must return, and without an error.
func (p *participant) close() {
	p.gone(false)
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	if p.candidate != nil {
		p.must(ctx, "close candidate", p.candidate.Close(ctx))
	}
	p.must(ctx, "close session", p.session.Close(ctx))
}

// must notes the error of a call that has no reason to fail but that it was stuck.
func (r *run) must(ctx context.Context, op string, err error) {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.book.late("stuck: %s for %v: %v", op, r.scale.patience(), err)
	default:
		r.book.failed(op, err)
	}
}
