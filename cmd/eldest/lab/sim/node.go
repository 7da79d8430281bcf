package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

// nodes are our own elections as package elector runs them: each participant is an elector, which opens
// sessions and campaigns again by itself, and whose status follows the leader.
type nodes struct{ contender.Ours }

// Name distinguishes them from our own API.
func (nodes) Name() string { return "elector" }

// drawNodes makes a scenario of nodes longer than one of candidates, so that it has many rounds, adds faults
// of each kind that a supervisor, a network or etcd has, and restarts their processes now and then. It draws
// from its own random source: everything else in a plan is the same without it.
func (p *plan) drawNodes() {
	rng := rand.New(rand.NewPCG(p.seed, 0x6e6f646573))
	verbs := []verb{cut, delay, packets, starve, reset, lose, resign, full, restart, outage, compact}
	for range 12 {
		p.add(of(verbs[rng.IntN(len(verbs))]).at(rng, p.ttl, p.last()+between(rng, 0, p.ttl)))
	}
	last := p.last()
	for range 3 + rng.IntN(3) {
		p.add(step{
			at: between(rng, calm, last), verb: crash, role: role(rng.IntN(3)), pick: rng.IntN(6), lasts: between(rng, 0, p.ttl/2),
			reset: rng.IntN(2) == 0, politely: rng.IntN(2) == 0, takesOver: rng.IntN(2) == 0,
		})
	}
}

// elect runs the process of a participant that is a node.
func (p *participant) elect() {
	n := &node{participant: p}
	p.host.Client.Lease = grants{p.host.Client.Lease, n}
	cfg := elector.Config{
		Election: electionName, NodeID: p.id, Address: p.id, Transfer: p.transfers, TakeOver: p.takesOver,
		Source: elector.Always(elector.Client(p.host.Client)), Session: lease.Options{TTL: p.run.ttl},
	}
	p.configure(&cfg.Session)
	cfg.Session.Hooks.Opened = func(e lease.OpenedEvent) {
		n.set(func() { n.opened = e.Session })
		context.AfterFunc(e.Session.Context(), n.over) // a back-off follows
	}
	p.elects(&cfg.Candidate)
	e, err := elector.New(cfg)
	require.NoError(p.run.world.T, err)
	p.set(func() {
		p.status = e.Status
		p.look = func() { e.Status() }
	})
	p.aside.Go(func() { n.follow(e.Watch()) })
	_ = e.Run(p.life, n.lead)
	n.over()
}

// node is the state of a node between its rounds.
type node struct {
	*participant
	leading sync.Mutex  // held while a lead function runs
	phase   oracle.Kind // Joined or Suspended, until that is over
	token   int64
	opened  *lease.Session
}

// usable reports whether the round's session is still valid.
func (n *node) usable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.opened.Err() == nil
}

// grants are the client's lease grants. A round begins with its lease.
type grants struct {
	clientv3.Lease
	node *node
}

func (g grants) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	resp, err := g.Lease.Grant(ctx, ttl)
	// A process that was stopped before it left gets the reply when it continues, and does not join.
	if err == nil && g.node.life.Err() == nil {
		g.node.over()
		g.node.set(func() { g.node.phase, g.node.lease = oracle.Joined, int64(resp.ID) })
		g.node.joins(int64(resp.ID))
	}
	return resp, err
}

// over reports the end of a round, if it was not reported yet.
func (n *node) over() {
	e := oracle.Event{Kind: oracle.Failed, Lost: n.life.Err() == nil, Text: "the round is over"}
	n.mu.Lock()
	phase := n.phase
	if n.phase = ""; phase == oracle.Suspended {
		e.Kind, e.Token = oracle.Ended, n.token
	}
	n.mu.Unlock()
	if phase != "" {
		n.report(e)
	}
}

// lead is the lead function.
func (n *node) lead(ctx context.Context, l *elector.Leadership) error {
	if !n.leading.TryLock() {
		n.run.violated("%s: lead functions overlap", n.name)
		return nil
	}
	defer n.leading.Unlock()
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	won := oracle.Event{Kind: oracle.Won, Token: int64(l.Token()), Key: l.Key()}
	n.set(func() {
		if n.phase == oracle.Suspended && n.token == won.Token {
			won.Kind = oracle.Resumed
		}
		n.token, n.phase = won.Token, ""
	})
	t := nodeTenure{l: l, ctx: ctx, resign: resign}
	if n.participant.lead(t, won, n.usable) {
		n.set(func() { n.phase = oracle.Suspended })
	}
	return nil
}

// nodeTenure is the tenure of a lead function, which resigns by returning.
type nodeTenure struct {
	l      *elector.Leadership
	ctx    context.Context
	resign context.CancelCauseFunc
}

func (t nodeTenure) Key() string              { return t.l.Key() }
func (t nodeTenure) Token() int64             { return int64(t.l.Token()) }
func (t nodeTenure) Holds() bool              { return t.ctx.Err() == nil && t.l.Holds(0) }
func (t nodeTenure) Context() context.Context { return t.ctx }

func (t nodeTenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := t.l.Txn(ctx).Then(op).Commit()
	if err != nil && !errors.Is(err, eldest.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", contender.ErrRefused, err)
	}
	return resp, err
}

func (t nodeTenure) Resign(context.Context) error {
	t.resign(eldest.ErrResigned)
	return nil
}

// leads reports whether a node's status is leading. It is false if the node is stopped or dead, or
// if its key was removed by hand, of which it has yet to be notified.
func (p *participant) leads() bool {
	p.mu.Lock()
	status, stopped := p.status, p.stopped != nil
	p.mu.Unlock()
	if status == nil || stopped || p.dead() {
		return false
	}
	_, token, leading := status().Own()
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return leading && !p.run.removed[int64(token)]
}

// alone checks that no other node leads while this one does.
func (n *node) alone() {
	for _, other := range n.run.allParticipants() {
		if other != n.participant && other.leads() && n.leads() {
			n.run.violated("%s and %s are both leading", n.name, other.name)
		}
	}
}

// follow checks each status of a node: its tokens rise, it does not follow itself or its earlier
// process, and no other node leads while it does.
func (n *node) follow(w *elector.Watch) {
	newest := eldest.Token(0)
	for {
		status, err := w.Next(n.life)
		if err != nil {
			return
		}
		_, token, _ := status.Own()
		l, following := status.Leader()
		if following {
			token = l.Token
		}
		n.alone()
		switch {
		case following && l.NodeID == n.id:
			n.run.violated("%s follows itself: %v", n.name, status)
		case status.Role() == elector.Unknown && status.Reason() == nil:
			n.run.violated("%s: unknown, without a reason", n.name)
		case status.Role() != elector.Unknown && token < newest:
			n.run.violated("%s: token %d after %d", n.name, token, newest)
		}
		newest = max(newest, token)
	}
}

// followed checks, when the queue has settled, that one node leads and all others follow it: within a TTL
// and 15 s, since a node that lost its connection to etcd is notified of the leader after its own back-off.
func (r *run) followed() {
	wrong := r.unfollowed()
	for end := r.world.Now() + r.ttl + 15*time.Second; wrong != "" && r.world.Now() < end; wrong = r.unfollowed() {
		time.Sleep(10 * time.Millisecond)
	}
	if wrong != "" {
		r.violated("%s", wrong)
	}
}

// unfollowed describes a node that neither leads alone nor follows the leader; it is empty if there is none.
func (r *run) unfollowed() string {
	if q := r.queue(); len(q) == 0 || q[0].Value == byHand {
		return "" // a value that is not a node's is not followed
	}
	var leaders []string
	token := eldest.Token(0)
	for _, p := range r.allParticipants() {
		if _, lives, _ := p.state(); lives && p.leads() {
			leaders = append(leaders, p.id)
			_, token, _ = p.status().Own()
		}
	}
	for _, p := range r.allParticipants() {
		if _, lives, _ := p.state(); !lives || p.status == nil {
			continue
		}
		if l, following := p.status().Leader(); len(leaders) != 1 || p.id != leaders[0] && (!following || l.Token != token || l.NodeID != leaders[0]) {
			return fmt.Sprintf("%v lead, and %s is %v", leaders, p.name, p.status())
		}
	}
	return ""
}
