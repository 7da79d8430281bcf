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

// participant is one life of a candidate: one that departs is followed by another one, with a new session.
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
	left      bool // it has told that it takes part no more
}

type outcome struct {
	*election.Leadership
	err error
}

// live lets one participant follow the other until ctx ends. joined is called when the first is in the
// queue. One that has lost a session by no will of its own pauses, as package elector does it: a thousand
// that come back at once would keep etcd from answering any.
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
		_ = retry.Sleep(ctx, pause(faults)) // ctx is looked at above
		faults++
	}
}

// join opens a session, registers and campaigns. It may fail, also at the end of the run, when nobody wants
// to know why.
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
	if p.session, err = lease.Open(ctx, lease.Config{Lease: p.client, TTL: time.Duration(p.scale.TTL)}); fails("open session", err) {
		return false
	}
	p.candidate, err = election.New(election.Config{
		Election: candidates, Session: p.session, KV: p.client, Watcher: p.client, Value: []byte(p.name),
		Hooks: election.Hooks{Registered: p.registered, Won: p.won, Ended: p.ended},
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

// close ends candidate and session, whatever has happened to the participant: both calls
// must return, and without an error.
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
