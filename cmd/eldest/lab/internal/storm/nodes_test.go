package storm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/witness"
)

// serviceNode is a node: one process after another, all with the same name and address. The storm's
// mu guards it.
type serviceNode struct {
	name, address string
	process       *offspring.Process
	life          int // counts the processes
	listens       bool
	role, key     string // reported by the living process
	token         int64
	away          []span
	busy          bool // a fault of the node is in progress
	dying         bool // its process is expected to end
}

// span is a time in which a node was dead, stopping or suspended. to is zero while it lasts.
// planned means that the node was ordered to stop.
type span struct {
	from, to time.Time
	planned  bool
}

func (s span) overlaps(from, to time.Time) bool {
	return !s.from.After(to) && (s.to.IsZero() || !s.to.Before(from))
}

// outage is what may excuse how a call ended: its node was dead, stopping or suspended at any
// moment of the call (away), or when it was answered (leaving), or any node was killed or suspended at any
// moment of it (died).
type outage struct{ away, leaving, died bool }

func (s *storm) outage(c *call) (w outage) {
	for _, p := range s.nodes {
		for _, a := range p.away {
			mine := c.node == "" || p.name == c.node
			w.away = w.away || mine && a.overlaps(c.begin, c.at)
			w.leaving = w.leaving || mine && (a.overlaps(c.at, c.at) || (c.greedy || c.late) && a.overlaps(c.begin, c.at))
			w.died = w.died || !a.planned && a.overlaps(c.begin, c.at)
		}
	}
	return w
}

// leave begins a time away, before the fault is injected.
func (s *storm) leave(p *serviceNode, planned bool) {
	p.busy = true
	p.away = append(p.away, span{from: time.Now(), planned: planned})
}

// back ends the time away.
func (s *storm) back(p *serviceNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.busy = false
	p.away[len(p.away)-1].to = time.Now()
}

// lifetime bounds each wait for a node.
const lifetime = 20 * time.Second

// start starts the node's next process and blocks until it listens. Another socket may have the
// port for a moment, that of a connection for example.
func (s *storm) start(p *serviceNode, takeOver bool) {
	for limit := time.Now().Add(lifetime); ; {
		if err := s.launch(p, takeOver); err != nil {
			s.problem("%s does not start: %v", p.name, err)
			return
		}
		s.await(lifetime, func() bool { return p.listens || p.process.Gone() })
		s.mu.Lock()
		listens, process := p.listens, p.process
		s.mu.Unlock()
		if listens {
			return
		}
		process.End()
		if _, complaint := process.Result(); time.Now().After(limit) || !strings.Contains(complaint, syscall.EADDRINUSE.Error()) {
			s.problem("%s does not listen: %s", p.name, complaint)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *storm) launch(p *serviceNode, takeOver bool) error {
	args := []string{
		"service", "node", service.Election, p.name, "--json", "--ttl", s.ttl.String(),
		"--endpoints", strings.Join(s.field.Endpoints(), ","), "--listen", p.address,
	}
	if takeOver {
		args = append(args, "--take-over")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.life++
	p.listens, p.dying, p.role = false, false, ""
	life := p.life
	process, err := s.field.Spawner.Launch(exec.Command(s.binary, args...),
		func(line []byte) { s.line(p, life, line) },
		func(process *offspring.Process) { s.exited(p, life, process) })
	if err == nil {
		p.process = process
		s.processes = append(s.processes, process)
	}
	return err
}

// line handles a line of a node.
func (s *storm) line(p *serviceNode, life int, text []byte) {
	var l struct {
		witness.Line
		Address, Role, Key string
		Token              int64
	}
	if json.Unmarshal(text, &l) != nil {
		return // a process that was killed may leave half a line
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.Event == witness.Begun:
		s.begun[l.ID]++
	case p.life != life:
	case l.Event == string(service.Listening):
		p.address, p.listens = l.Address, true
	case l.Event == string(scenario.Status):
		p.role, p.key, p.token = l.Role, l.Key, l.Token
		if l.Role == scenario.Leading {
			s.leaders[l.Token] = p.name
		}
	}
}

// exited judges the end of a process: either it was killed or ended without an error after a
// signal, or it should not have ended.
func (s *storm) exited(p *serviceNode, life int, process *offspring.Process) {
	code, complaint := process.Result()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.life != life {
		return
	}
	p.role = ""
	if p.listens && (!p.dying || code > 0) {
		s.problems = append(s.problems, fmt.Sprintf("%s ended with %d: %s", p.name, code, complaint))
	}
}

// leader returns the node that leads and has no fault in progress, or nil; follower returns one
// that does not lead. The caller holds mu.
func (s *storm) leader() (leader *serviceNode) {
	for _, p := range s.nodes {
		if !p.busy && p.role == scenario.Leading && (leader == nil || p.token > leader.token) {
			leader = p
		}
	}
	return leader
}

func (s *storm) follower() *serviceNode {
	for _, i := range s.rng.Perm(len(s.nodes)) {
		if p := s.nodes[i]; !p.busy && p.role == "following" {
			return p
		}
	}
	return nil
}

// await blocks until cond, which is called with mu held, returns true. It reports whether that
// happened within the limit.
func (s *storm) await(limit time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		s.mu.Lock()
		ok := cond()
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
