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

	mu      sync.Mutex
	present standing
}

// standing is where the slot's participant stands.
type standing struct {
	key   string
	token eldest.Token // 0: nowhere, or on its way out
}

// participant is one life in a slot.
type participant struct {
	*slot
	session   *lease.Session
	candidate *election.Candidate
	token     eldest.Token
	result    chan outcome
	giveUp    context.CancelFunc
	// sequence counts its guarded writes.
	sequence int
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
	p := &participant{slot: s, session: session, result: make(chan outcome, 1)}
	p.candidate, err = election.New(election.Config{
		Election: candidates, Session: session, KV: s.client, Watcher: s.client, Value: fmt.Appendf(nil, "slot %d", s.index),
		Hooks: election.Hooks{Won: s.line.begins, Ended: s.line.ends},
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
	s.stands(place.Key, place.Token)
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

func (s *slot) stands(key string, token eldest.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = standing{key, token}
}

func (s *slot) where() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present
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
		p.stands(p.candidate.Key(), 0)
		p.depart(ctx, o)
	case <-ctx.Done():
		p.stands(p.candidate.Key(), 0)
		p.depart(context.Background(), withdraw)
	}
	return true
}

// lead is a tenure: a guarded write at its beginning and, where it ends in good order,
// one at its end.
func (p *participant) lead(ctx context.Context, o outcome) (ordered bool) {
	if o.err != nil {
		p.stands(p.candidate.Key(), 0)
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
		p.stands(p.candidate.Key(), 0)
		p.book.failed("tenure", o.Err())
		p.book.count("tenures ended by the faults")
		return false
	case <-ctx.Done():
	}
	p.stands(p.candidate.Key(), 0)
	p.departs(o.Leadership, next)
	return true
}

// leave says goodbye to etcd, whatever the participant has lived through: both calls
// must return, and without an error.
func (p *participant) leave() {
	p.stands("", 0)
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
