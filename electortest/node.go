package electortest

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/lease"
)

// node is the node under test, from Start to Stop.
type node struct {
	lead    func(ctx context.Context, l *elector.Leadership) error
	client  *clientv3.Client
	link    *memetcd.Link
	elector *elector.Elector
	stop    context.CancelFunc
	result  chan error

	// These two belong to the test's goroutine.
	heartbeat    time.Duration
	disconnected bool

	mu   sync.Mutex // of changes of the cell
	cell latest.Cell[state]
}

// state is what the hooks and the calls of the function have shown.
type state struct {
	session *lease.Session
	// key and token are those of the newest registration; the token is 0 when the key was given up.
	key   string
	token eldest.Token
	// call is the newest call of the function, and running whether it has not returned.
	call    *call
	running bool
}

// suspended reports whether the newest tenure is suspended.
func (s state) suspended() bool {
	return s.call != nil && s.token == s.call.l.Token() && errors.Is(s.call.l.Err(), eldest.ErrSuspended)
}

// call is one call of the function.
type call struct {
	ctx      context.Context //nolint:containedctx // the function's
	l        *elector.Leadership
	returned chan struct{}
	err      error // valid once returned is closed
}

// leads reports whether the function is in a tenure.
func (c *call) leads() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.returned:
		return false
	default:
		return c.ctx.Err() == nil && c.l.Err() == nil
	}
}

func newNode(etcd *memetcd.Etcd, lead func(ctx context.Context, l *elector.Leadership) error) *node {
	n := &node{lead: lead, result: make(chan error, 1)}
	n.client, n.link = etcd.Client()
	n.cell.Set(state{})
	return n
}

// configure makes the elector, and returns the name of the election.
func (n *node) configure(options []elector.Option) (name string, err error) {
	cfg := elector.Config{
		Election: "election", NodeID: "node", Session: lease.Options{Clock: lease.Monotonic()},
		Backoff: func(int) time.Duration { return 0 }, // the shortest that is possible
	}
	for _, option := range options {
		option(&cfg)
	}
	cfg.Source = elector.Always(elector.Client(n.client))
	cfg.Session.Hooks = hooks.Tee(lease.Hooks{Opened: func(o lease.OpenedEvent) {
		n.change(func(s *state) { s.session = o.Session })
	}}, cfg.Session.Hooks)
	cfg.Candidate.Hooks = hooks.Tee(election.Hooks{Registered: func(r election.RegisteredEvent) {
		n.change(func(s *state) { s.key, s.token = r.Key, r.Token })
	}, Ended: func(e election.EndedEvent) {
		n.forget(e.Token) // also of a node that waits, whose key may still exist
	}}, cfg.Candidate.Hooks)
	n.heartbeat = cfg.Session.Heartbeat.Timeout
	n.elector, err = elector.New(cfg)
	return cfg.Election, err
}

// run runs the elector until close.
func (n *node) run() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.result <- n.elector.Run(ctx, n.called) }()
}

// close stops the elector, and returns what Run has returned.
func (n *node) close() error {
	n.stop()
	err := <-n.result
	_ = n.client.Close()
	return err
}

// called is the lead function that the elector has.
func (n *node) called(ctx context.Context, l *elector.Leadership) error {
	c := &call{ctx: ctx, l: l, returned: make(chan struct{}), err: errors.New("the goroutine of the function ended with runtime.Goexit")}
	n.change(func(s *state) { s.call, s.running = c, true })
	defer func() {
		if !errors.Is(l.Err(), eldest.ErrSuspended) {
			n.forget(l.Token())
		}
		n.change(func(s *state) { s.running = false })
		close(c.returned)
	}()
	c.err = n.lead(ctx, l)
	return c.err
}

// forget notes that a key is given up.
func (n *node) forget(token eldest.Token) {
	n.change(func(s *state) {
		if s.token == token {
			s.token = 0
		}
	})
}

func (n *node) change(f func(s *state)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.state()
	f(&s)
	n.cell.Set(s)
}

func (n *node) state() state {
	s, _ := n.cell.Get()
	return s
}
