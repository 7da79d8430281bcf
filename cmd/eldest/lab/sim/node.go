package sim

import (
	"context"
	"errors"
	"fmt"
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

// Name tells them from our own API.
func (nodes) Name() string { return "elector" }

// elect is the process of a participant that is a node.
func (p *participant) elect() {
	n := &node{participant: p}
	p.host.Client.Lease = grants{p.host.Client.Lease, n}
	cfg := elector.Config{
		Election: electionName, NodeID: p.name, Address: p.name, Transfer: p.transfers,
		Source: elector.Always(elector.Client(p.host.Client)), Session: lease.Config{TTL: p.run.ttl},
	}
	p.configure(&cfg.Session)
	cfg.Session.Hooks.Opened = func(e lease.OpenedEvent) { n.set(func() { n.opened = e.Session }) }
	p.elects(&cfg.Candidate)
	e, err := elector.New(cfg)
	require.NoError(p.run.world.T, err)
	p.set(func() {
		p.status = e.Status
		p.look = func() { e.Status() }
	})
	p.aside.Go(func() { n.follow(e.Watch()) })
	_ = e.Run(p.life, n.lead)
}

// node is what is known of one between its rounds.
type node struct {
	*participant
	phase  oracle.Kind // Joined or Suspended, while that is not over
	token  int64
	opened *lease.Session
}

// usable reports whether the round's session goes on.
func (n *node) usable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.opened.Err() == nil
}

// grants are what the client is granted. A round begins with its lease.
type grants struct {
	clientv3.Lease
	node *node
}

func (g grants) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	resp, err := g.Lease.Grant(ctx, ttl)
	if err == nil {
		g.node.over()
		g.node.phase = oracle.Joined
		g.node.set(func() { g.node.lease = int64(resp.ID) })
		g.node.joins(int64(resp.ID))
	}
	return resp, err
}

// over reports the end of a round that has not reported it.
func (n *node) over() {
	switch n.phase {
	case oracle.Joined:
		n.report(oracle.Event{Kind: oracle.Failed, Lost: true, Text: "another round begins"})
	case oracle.Suspended:
		n.report(oracle.Event{Kind: oracle.Ended, Token: n.token, Lost: true, Text: "another round begins"})
	}
}

// lead is the lead function.
func (n *node) lead(ctx context.Context, l *elector.Leadership) error {
	ctx, resign := context.WithCancelCause(ctx)
	defer resign(nil)
	won := oracle.Event{Kind: oracle.Won, Token: int64(l.Token()), Key: l.Key()}
	if n.phase == oracle.Suspended && n.token == won.Token {
		won.Kind = oracle.Resumed
	}
	n.token = won.Token
	t := nodeTenure{l: l, ctx: ctx, resign: resign}
	n.phase = ""
	if n.participant.lead(t, won, n.usable) {
		n.phase = oracle.Suspended
	}
	return nil
}

// nodeTenure is a tenure as a lead function has it: it resigns by returning.
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

// follow judges every status of a node: its tokens rise, and it does not follow itself.
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
		switch {
		case following && l.NodeID == n.name:
			n.run.violated("%s follows itself: %v", n.name, status)
		case status.Role() == elector.Neither && status.Reason() == nil:
			n.run.violated("%s: neither, without a reason", n.name)
		case status.Role() != elector.Neither && token < newest:
			n.run.violated("%s: token %d after %d", n.name, token, newest)
		}
		newest = max(newest, token)
	}
}

// followed judges, when the queue has settled, that one node leads and all others follow it: in a TTL and 15 s at most,
// since a node that lost sight of etcd is notified of the leader after a back-off of its own.
func (r *run) followed() {
	wrong := r.unfollowed()
	for end := r.world.Now() + r.ttl + 15*time.Second; wrong != "" && r.world.Now() < end; wrong = r.unfollowed() {
		time.Sleep(10 * time.Millisecond)
	}
	if wrong != "" {
		r.violated("%s", wrong)
	}
}

// unfollowed says which node neither leads alone nor follows the one that does; it is empty where there is none.
func (r *run) unfollowed() string {
	if q := r.queue(); len(q) == 0 || q[0].Value == byHand {
		return "" // a value that is not a node's is not followed
	}
	var leaders []string
	token := eldest.Token(0)
	for _, p := range r.everybody() {
		if _, lives, _ := p.state(); lives && p.status != nil && p.status().Role() == elector.Leading {
			leaders = append(leaders, p.name)
			_, token, _ = p.status().Own()
		}
	}
	for _, p := range r.everybody() {
		if _, lives, _ := p.state(); !lives || p.status == nil {
			continue
		}
		if l, following := p.status().Leader(); len(leaders) != 1 || p.name != leaders[0] && (!following || l.Token != token || l.NodeID != leaders[0]) {
			return fmt.Sprintf("%v lead, and %s is %v", leaders, p.name, p.status())
		}
	}
	return ""
}
