package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// slot is a place among the candidates: whoever departs is followed by another
// participant, with a new session.
type slot struct {
	*run
	index  int
	client *clientv3.Client
	// orders is received from while the slot's participant waits in the queue.
	orders chan order
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
	result    chan outcome
	giveUp    context.CancelFunc
	// sequence counts its guarded writes.
	sequence int
	// left says that it has been told that it takes part no more.
	left bool
}

type outcome struct {
	*election.Leadership
	err error
}

// live lets one participant follow the other until ctx ends. joined is called when the
// first stands in the queue.
func (s *slot) live(ctx context.Context, joined func()) {
	var once sync.Once
	for faults := 0; ctx.Err() == nil; {
		ordered := false
		if p := s.join(ctx); p != nil {
			once.Do(joined)
			ordered = p.stand(ctx)
		}
		if ordered {
			faults = 0
			continue
		}
		s.pause(ctx, faults)
		faults++
	}
	once.Do(joined)
}

// pause is the back-off of one who has lost a session by no will of its own, as package
// elector has it: a thousand who come back at once would keep etcd from answering any.
func (s *slot) pause(ctx context.Context, faults int) {
	limit := min(100*time.Millisecond<<min(faults, 10), 5*time.Second)
	select {
	case <-time.After(limit/2 + rand.N(limit/2)):
	case <-ctx.Done():
	}
}

// join opens a session and registers; nil if that failed, which is in the book.
func (s *slot) join(ctx context.Context) *participant {
	ctx, cancel := context.WithTimeout(ctx, s.scale.patience())
	defer cancel()
	session, err := lease.Open(ctx, lease.Config{Lease: s.client, TTL: s.ttl()})
	if err != nil {
		s.unable(ctx, "open session", err)
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
		p.leave()
		return nil
	}
	place, err := p.candidate.Register(ctx)
	if err != nil {
		s.unable(ctx, "register", err)
		p.leave()
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

// unable notes why a participant could not join, unless it was the end of the run.
func (s *slot) unable(ctx context.Context, op string, err error) {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		s.book.late("stuck: %s for %v: %v", op, s.scale.patience(), err)
	case ctx.Err() == nil:
		s.book.failed(op, err)
	}
}

// tell files what it is told, and what it does.
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
	p.line.begins(ev)
}

func (p *participant) ended(ev election.EndedEvent) {
	e := oracle.Event{Kind: oracle.Failed, At: ev.At.Sub(p.record.begun), Token: int64(ev.Token)}
	if ev.Led {
		e.Kind, e.Text = oracle.Ended, kindOf(ev.Cause)
		p.line.ends(ev.Token)
	}
	p.tell(e)
}

// leaving tells that its key may go from now on.
func (p *participant) leaving() { p.tell(oracle.Event{Kind: oracle.Leaving}) }

// gone tells, once, that its key has gone or, if its lease is left to expire, will go.
func (p *participant) gone(lease bool) {
	if !p.left {
		p.left = true
		p.tell(oracle.Event{Kind: oracle.Exited, Lost: lease})
	}
}

// stand waits, leads, and departs when it is told to, or when ctx ends. It reports
// whether the end was ordered, and no fault's.
func (p *participant) stand(ctx context.Context) (ordered bool) {
	defer p.giveUp()
	defer p.leave()
	select {
	case o := <-p.result:
		return p.lead(ctx, o)
	case o := <-p.orders:
		p.leaving()
		p.depart(ctx, o)
	case <-ctx.Done():
		p.leaving()
		p.depart(context.Background(), withdraw)
	}
	return true
}

// lead is a tenure: a guarded write at its beginning and, where it ends in good order,
// one at its end.
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
	p.leaving()
	p.departs(o.Leadership, next)
	return true
}

// leave says goodbye to etcd, whatever the participant has lived through: both calls
// must return, and without an error.
func (p *participant) leave() {
	p.gone(false)
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	if p.candidate != nil {
		p.must(ctx, "close candidate", p.candidate.Close(ctx))
	}
	p.must(ctx, "close session", p.session.Close(ctx))
}

// must notes an error of a call that has no reason to fail but that it was stuck.
func (p *participant) must(ctx context.Context, op string, err error) {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		p.book.late("stuck: %s for %v: %v", op, p.scale.patience(), err)
	default:
		p.book.failed(op, err)
	}
}
