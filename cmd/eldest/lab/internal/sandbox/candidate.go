package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/lease"
)

const (
	// heartbeatTimeout is that of participants of the kind feed.Heartbeats.
	heartbeatTimeout = time.Second
	// calm is the time between two writes of a leader.
	calm = 2 * time.Second
)

// candidate is a participant, over all its processes. Its name and its network stay the same.
type candidate struct {
	in   *Sandbox
	name string

	mu sync.Mutex
	// changed is closed, and replaced, when anything below has changed: see await.
	changed chan struct{}
	// state is what the page shows. What it says of the network is what the network does.
	state   feed.ParticipantState
	process *participant.Process // the newest; nil before the first
	keepers []*os.Process        // of all its processes: one may outlast the next process
	// expected means that the sandbox ends process, leaves that it has left if it ends in good order.
	expected, leaves bool
	ended            int // how many of its campaigns and tenures have ended, by its reports

	taps   []*wiretap.Proxy // its network: one for each member; none when it has left
	coming map[place]*message
	// torn are the directions of calls that have not ended in which a message was lost: see tear.
	torn map[direction]bool
}

// participantName returns the name of the n-th participant, from 1.
func participantName(n int) string { return "p" + strconv.Itoa(n) }

// newCandidate returns a participant without a network and a process.
func newCandidate(in *Sandbox, name string) *candidate {
	return &candidate{
		in: in, name: name, changed: make(chan struct{}), coming: map[place]*message{}, torn: map[direction]bool{},
	}
}

// addCandidate adds a participant to an era. It has no process.
func (s *Sandbox) addCandidate(e *era, kind feed.Kind) (*candidate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	here := 0
	for _, c := range e.candidates {
		if c.life() != feed.Left {
			here++
		}
	}
	if here >= MostParticipants {
		return nil, feed.Refused("there are %d participants, which is the limit: let one leave first", here)
	}
	c := newCandidate(s, participantName(len(e.candidates)+1))
	c.state = feed.ParticipantState{Kind: kind, Life: feed.Dead, TTLMS: feed.Milliseconds(s.cfg.TTL)}
	if kind == feed.Heartbeats {
		c.state.HeartbeatMS = feed.Milliseconds(heartbeatTimeout)
	}
	for i := range s.cfg.Members {
		tap, err := c.tap(i)
		if err != nil {
			c.disconnect()
			return nil, fmt.Errorf("the network of %s: %w", c.name, err)
		}
		c.taps = append(c.taps, tap)
	}
	e.candidates = append(e.candidates, c)
	return c, nil
}

// disconnect ends the participant's network. It may be called again.
func (c *candidate) disconnect() {
	c.mu.Lock()
	taps := c.taps
	c.taps = nil
	c.mu.Unlock() // the messages on their way need it
	for _, tap := range taps {
		tap.Close()
	}
}

// life returns the state of its process.
func (c *candidate) life() feed.Life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Life
}

// change changes the state, and shows it.
func (c *candidate) change(change func(*feed.ParticipantState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
	for _, m := range c.coming { // it is released, also if messages are held again a moment later
		m.decided = m.decided || m.held && !c.holds(m)
	}
	c.show()
}

// show adds the state to the log. The caller holds mu, so that the newest state is the last one in the log.
func (c *candidate) show() {
	state := c.state
	c.in.log.Add(feed.Event{Type: feed.Participant, Who: c.name, Participant: &state})
	c.wake()
}

// wake makes all calls of await look again. The caller holds mu.
func (c *candidate) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await blocks until holds returns true, or ctx ends (its cause). The caller holds mu, which is unlocked
// while await blocks.
func (c *candidate) await(ctx context.Context, holds func() bool) error {
	for !holds() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	return nil
}

// config returns what the next process is configured with. The caller holds mu.
func (c *candidate) config() participant.Config {
	cfg := participant.Config{
		Who: c.name, Contender: contender.Eldest, Election: c.in.cfg.Election, TTL: c.in.cfg.TTL,
		Data: c.in.cfg.Election + "-data", Calm: calm, Without: c.state.Rule,
	}
	for _, tap := range c.taps {
		cfg.Endpoints = append(cfg.Endpoints, tap.Endpoint())
	}
	switch c.state.Kind {
	case feed.Heartbeats:
		cfg.Beat = heartbeatTimeout
	case feed.Keeper:
		cfg.Keeper = true
	case feed.Concurrency:
		cfg.Contender = contender.Concurrency
	case feed.Herd:
		cfg.Contender = contender.Herd
	}
	return cfg
}

// read handles a line that its process has written.
func (c *candidate) read(l participant.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.Up:
		if l.Keeper != 0 {
			keeper, _ := os.FindProcess(l.Keeper) // on Unix there always is one
			c.keepers = append(c.keepers, keeper)
		}
		c.state.KeeperPid, c.state.Life = l.Keeper, feed.Running
		c.show()
	case l.Phase != "":
		news := &feed.ParticipantNews{Kind: "phase", Text: l.Phase}
		c.in.log.Add(feed.Event{Type: feed.Report, Who: c.name, Report: news})
	case l.Event != nil && l.Event.Kind != oracle.Sent: // writes are reported with their outcome only
		c.report(l.Event)
	}
}

// report adds what a process has reported to the log, at the instant of the report. The caller holds mu.
func (c *candidate) report(e *oracle.Event) {
	news := &feed.ParticipantNews{Kind: string(e.Kind), Token: e.Token, Key: e.Key}
	if e.Lease != 0 {
		news.Lease = strconv.FormatInt(e.Lease, 16)
	}
	var parts []string
	if e.Write != "" {
		parts = append(parts, "write "+e.Write)
	}
	if revision := max(e.Commit, e.Proof); revision > 0 {
		parts = append(parts, fmt.Sprintf("at r%d", revision))
	}
	if e.Text != "" {
		parts = append(parts, e.Text)
	}
	news.Text = shortened(strings.Join(parts, ": "))
	ago := lease.Boot().Now() - e.At // all processes of a machine share this clock
	at := max(c.in.log.NowMS()-feed.Milliseconds(max(ago, 0)), 0)
	c.in.log.Add(feed.Event{AtMS: at, Type: feed.Report, Who: c.name, Report: news})
	if e.Kind == oracle.Ended || e.Kind == oracle.Failed {
		c.ended++
		c.wake()
	}
}

// exited is called when its process has ended, after the last line.
func (c *candidate) exited(p *offspring.Process) {
	code, complaint := p.Result()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Life, c.state.Pid, c.state.KeeperPid = feed.Dead, 0, 0
	if c.leaves && code == 0 {
		c.state.Life = feed.Left
	}
	c.show()
	if !c.expected {
		complaint = cmp.Or(complaint, "it gave no reason")
		c.in.problem(fmt.Errorf("%s ended by itself, with exit code %d: %s", c.name, code, complaint))
	}
}

// alive reports whether a process exists and is no zombie, where the kernel can be asked.
func alive(pid int) bool {
	is, err := offspring.Alive(pid)
	return err == nil && is
}
