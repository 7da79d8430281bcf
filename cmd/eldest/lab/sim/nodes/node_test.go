package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

const electionName = "election"

// leading is the time for which a node's leading context lived.
type leading struct {
	node       string
	token      eldest.Token
	begin, end time.Duration // end is negative while it lives
}

// stage is an election with its nodes, and what is known of it.
type stage struct {
	world *rig.World
	ttl   time.Duration
	admin *rig.Host

	mu       sync.Mutex
	tenures  []*leading
	wrong    []string
	quitting map[string]chan struct{}
}

// node is one life of a node.
type node struct {
	*elector.Elector
	stage *stage
	id    string
	host  *rig.Host
	stop  context.CancelFunc
	done  chan struct{}
}

// start begins a life of a node, on a host of its own.
func (s *stage) start(id string, life int) *node {
	host := s.world.Host(fmt.Sprintf("%s-%d", id, life))
	cfg := elector.Config{
		Election: electionName, NodeID: id, Address: id, Source: elector.Always(elector.Client(host.Client)),
		// The clock of the bubble; CLOCK_BOOTTIME knows nothing of virtual time.
		Session: lease.Config{TTL: s.ttl, Clock: lease.Monotonic()},
		// The life before has ended. Every second one waits for what it left all the same.
		TakeOver: life%2 == 0,
	}
	e, err := elector.New(cfg)
	require.NoError(s.world.T, err)
	ctx, stop := context.WithCancel(s.world.T.Context())
	n := &node{Elector: e, stage: s, id: id, host: host, stop: stop, done: make(chan struct{})}
	quit := s.quitOf(id)
	var running sync.Mutex
	go func() {
		defer close(n.done)
		_ = e.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			if !running.TryLock() {
				s.violated("%s: lead functions overlap", id)
				return nil
			}
			defer running.Unlock()
			end := s.begin(id, l.Token())
			living := context.AfterFunc(ctx, end)
			defer func() {
				if living() {
					end() // gave up: nothing leads here any more
				}
			}()
			select {
			case <-ctx.Done():
			case <-quit:
			}
			return nil
		})
	}()
	go n.follow(ctx)
	return n
}

// begin notes that a leading context lives, and returns what notes its end. The end is
// noted in the very moment in which the context ends, for virtual time stands still
// meanwhile.
func (s *stage) begin(id string, token eldest.Token) (end func()) {
	now := s.world.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &leading{node: id, token: token, begin: now, end: -1}
	s.tenures = append(s.tenures, t)
	return func() {
		now := s.world.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		t.end = now
	}
}

// follow reads every status of a node and judges it.
func (n *node) follow(ctx context.Context) {
	w, newest := n.Watch(), eldest.Token(0)
	for {
		status, err := w.Next(ctx)
		if err != nil {
			return
		}
		_, token, _ := status.Own()
		if l, ok := status.Leader(); ok {
			token = l.Token
			if l.NodeID == n.id {
				n.stage.violated("%s follows itself: %v", n.id, status)
			}
		}
		if status.Role() == elector.Neither {
			if status.Reason() == nil {
				n.stage.violated("%s: neither, without a reason", n.id)
			}
			continue
		}
		if token < newest {
			n.stage.violated("%s: token %d after %d", n.id, token, newest)
		}
		newest = token
	}
}

// end stops a life politely.
func (n *node) end() {
	n.stop()
	<-n.done
}

// crash ends a life without a word to etcd.
func (n *node) crash() {
	n.host.Unplug()
	n.stop()
	<-n.done
	n.host.Kill()
}

// quitOf returns a channel on which the node's lead function is told to return.
func (s *stage) quitOf(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quitting == nil {
		s.quitting = map[string]chan struct{}{}
	}
	if s.quitting[id] == nil {
		s.quitting[id] = make(chan struct{})
	}
	return s.quitting[id]
}

func (s *stage) violated(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf("%v: ", s.world.Now())+fmt.Sprintf(format, args...))
}

// overlaps returns the pairs of leading contexts of different nodes that lived at one
// moment.
func (s *stage) overlaps() (pairs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.tenures {
		for _, b := range s.tenures[i+1:] {
			if (a.end < 0 || b.begin < a.end) && (b.end < 0 || a.begin < b.end) {
				pairs = append(pairs, fmt.Sprintf("%+v and %+v", *a, *b))
			}
		}
	}
	return pairs
}
