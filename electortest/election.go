package electortest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/txn"
)

// patience is how long a method waits for the node or the function.
const patience = time.Minute

// Election is an election in memory. Made by New. Its methods must be called on the test's
// goroutine, one at a time, except Client. A method that cannot do what it documents, because the
// node does not lead, or within a minute, ends the test with t.Fatal.
type Election struct {
	t      testing.TB
	etcd   *memetcd.Etcd
	client *clientv3.Client
	node   *node
	name   string               // of the election that was started last
	others map[string]txn.Entry // the other node in each election, which is the last in the queue
}

// New returns an election, which ends with the test, after the node under test.
func New(t testing.TB) *Election {
	e := &Election{t: t, etcd: memetcd.New(), others: map[string]txn.Entry{}}
	e.client, _ = e.etcd.Client()
	t.Cleanup(func() {
		e.end(true)
		_ = e.client.Close()
		e.etcd.Close()
	})
	return e
}

// Client returns a client of the etcd in memory, to prepare and to read what the function reads and
// writes. It is not affected by Disconnect, and is closed with the test.
func (e *Election) Client() *clientv3.Client { return e.client }

// Start starts the node under test, and blocks until it is queued behind the other node. lead is
// called at each Win. The options are those of elector.Run; the node's client is always one of the
// etcd in memory. By default the election is "election", the node "node", the clock of the session
// is lease.Monotonic, and nothing is logged.
func (e *Election) Start(lead func(ctx context.Context, l *elector.Leadership) error, options ...elector.Option) {
	e.t.Helper()
	if e.node != nil {
		e.t.Fatal("electortest: Start: the node has been started already")
	}
	if lead == nil {
		e.t.Fatal("electortest: Start: the lead function is nil")
	}
	n := newNode(e.etcd, lead)
	name, err := n.configure(options)
	if err != nil {
		_ = n.client.Close()
		e.t.Fatalf("electortest: Start: %v", err)
	}
	if _, entered := e.others[name]; !entered {
		e.others[name] = e.enter(name)
	}
	e.name = name
	e.node = n
	n.run()
	e.queued("Start")
}

// enter queues the other node.
func (e *Election) enter(name string) txn.Entry {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := e.client.Grant(ctx, forever)
	if err != nil {
		e.t.Fatalf("electortest: %v", err)
	}
	value, _ := identity.Protobuf{}.Encode(identity.Identity{NodeID: "other"}) // it is valid
	other := txn.Entry{Election: name, Lease: int64(lease.ID), Value: value}
	if _, err = (txn.ByPointer{}).Enter(ctx, e.client, other); err != nil {
		e.t.Fatalf("electortest: %v", err)
	}
	return other
}

// forever is the TTL of the other node's leases, in seconds.
const forever = 1_000_000_000

// Win makes the node lead: the other node queues behind it, and leaves its place before it. It
// blocks until the function has been called, and returns the tenure. The node must not lead.
func (e *Election) Win() *elector.Leadership {
	e.t.Helper()
	n := e.started("Win")
	switch s := n.state(); {
	case s.call.leads():
		e.t.Fatal("electortest: Win: the node leads already")
	case s.suspended():
		e.t.Fatal("electortest: Win: the tenure is suspended: call Reconnect")
	case n.disconnected:
		e.t.Fatal("electortest: Win: the node is disconnected")
	}
	token := e.queued("Win")
	last := e.others[e.name]
	e.others[e.name] = e.enter(e.name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := e.client.Revoke(ctx, clientv3.LeaseID(last.Lease)); err != nil {
		e.t.Fatalf("electortest: Win: %v", err)
	}
	s := e.await("Win: the function is not called", func(s state) bool { return s.call != nil && s.call.l.Token() == token })
	return s.call.l
}

// Lose ends the tenure, and blocks until the context of the function has ended. The cause is
// eldest.ErrDeposed (an operator has deleted the leader's key, as eldest evict does) or
// eldest.ErrSessionLost (the lease is lost); see Suspend for eldest.ErrSuspended and Stop for the
// end of the program.
func (e *Election) Lose(cause error) {
	e.t.Helper()
	n := e.started("Lose")
	c := e.leading("Lose")
	switch {
	case cause == nil:
		e.t.Fatal("electortest: Lose: the cause is nil")
	case errors.Is(cause, eldest.ErrDeposed) && n.disconnected:
		e.t.Fatal("electortest: Lose: the node is disconnected, and would not be notified that its key is deleted")
	case errors.Is(cause, eldest.ErrDeposed):
		n.forget(c.l.Token())
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := e.client.Delete(ctx, c.l.Key()); err != nil {
			e.t.Fatalf("electortest: Lose: %v", err)
		}
	case errors.Is(cause, eldest.ErrSessionLost):
		n.forget(c.l.Token())
		n.state().session.Forfeit(errLost)
	default:
		e.t.Fatalf("electortest: Lose: %v is neither eldest.ErrDeposed nor eldest.ErrSessionLost", cause)
	}
	e.ended("Lose", c)
}

var errLost = errors.New("the test has ended the session")

// Wait blocks until the present call of the function, or the last one, has returned, and returns its
// error.
func (e *Election) Wait() error {
	e.t.Helper()
	c := e.started("Wait").state().call
	if c == nil {
		e.t.Fatal("electortest: Wait: the function has not been called")
	}
	e.until("Wait: the function does not return", c.returned)
	return c.err
}

// Disconnect separates the node from etcd: from now on its requests are not answered, and its
// watches receive nothing, until Reconnect. The tenure continues until its deadline: advance the
// time to see it end with eldest.ErrSessionLost or, with elector.WithHeartbeat,
// eldest.ErrSuspended.
func (e *Election) Disconnect() {
	e.t.Helper()
	n := e.started("Disconnect")
	n.disconnected = true
	n.link.Interrupt()
}

// Suspend disconnects the node and blocks until its tenure is suspended, which takes the time of
// elector.WithHeartbeat: without that option a tenure is never suspended. See Reconnect.
func (e *Election) Suspend() {
	e.t.Helper()
	n := e.started("Suspend")
	c := e.leading("Suspend")
	if n.heartbeat == 0 {
		e.t.Fatal("electortest: Suspend: tenures are only suspended with elector.WithHeartbeat")
	}
	e.Disconnect()
	e.ended("Suspend", c)
	if err := c.l.Err(); !errors.Is(err, eldest.ErrSuspended) {
		e.t.Fatalf("electortest: Suspend: the tenure has ended otherwise: %v", err)
	}
}

// Reconnect connects the node to etcd again. If the tenure was suspended, Reconnect blocks until the
// function has been called again, in a tenure with the same token. For that an earlier call must
// have returned.
func (e *Election) Reconnect() {
	e.t.Helper()
	n := e.started("Reconnect")
	before := n.state()
	n.disconnected = false
	n.link.Restore()
	if before.suspended() {
		e.await("Reconnect: the function is not called again", func(s state) bool {
			return s.call != before.call || s.token != before.token // the key was lost meanwhile
		})
	}
}

// Stop stops the node, as the end of its program does: the context of the function ends, and Stop
// blocks until the function has returned and the node has left the queue. Then Start can start it
// again.
func (e *Election) Stop() {
	e.t.Helper()
	e.started("Stop")
	e.end(false)
}

// end stops the node, if there is one. At the end of the test it may be disconnected.
func (e *Election) end(cleanup bool) {
	e.t.Helper()
	n := e.node
	if n == nil {
		return
	}
	if cleanup {
		n.link.Restore()
	}
	e.node = nil
	if err := n.close(); errors.Is(err, eldest.ErrStuck) {
		e.t.Errorf("electortest: the function does not return after the end of its context: %v", err)
	}
}

// started returns the node, or ends the test.
func (e *Election) started(op string) *node {
	e.t.Helper()
	if e.node == nil {
		e.t.Fatalf("electortest: %s: call Start before", op)
	}
	return e.node
}

// leading returns the call that leads, or ends the test.
func (e *Election) leading(op string) *call {
	e.t.Helper()
	c := e.node.state().call
	if !c.leads() {
		e.t.Fatalf("electortest: %s: the node does not lead", op)
	}
	return c
}

// queued waits until the node is queued, and returns the token of its key.
func (e *Election) queued(op string) eldest.Token {
	e.t.Helper()
	var token eldest.Token
	e.await(op+": the node is not queued", func(s state) bool {
		if token = s.token; token == 0 || s.running {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		resp, err := e.client.Get(ctx, s.key)
		return err == nil && len(resp.Kvs) == 1 && resp.Kvs[0].CreateRevision == int64(token)
	})
	return token
}

// ended waits until the context of a call has ended.
func (e *Election) ended(op string, c *call) {
	e.t.Helper()
	e.until(op+": the tenure does not end", c.ctx.Done())
}

// until waits until a channel is closed.
func (e *Election) until(not string, closed <-chan struct{}) {
	e.t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		e.fail(not)
	}
}

// await waits for a state of the node.
func (e *Election) await(not string, holds func(state) bool) state {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := e.node.cell.Reader().NextWhere(ctx, holds)
	if err != nil {
		e.fail(not)
	}
	return s
}

func (e *Election) fail(not string) {
	e.t.Helper()
	text := fmt.Sprintf("electortest: %s within %v", not, patience)
	if n := e.node; n != nil {
		text += fmt.Sprintf(" (status of the node: %v)", n.elector.Status())
	}
	e.t.Fatal(text)
}
