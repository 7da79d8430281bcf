package sandbox

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
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
	gate *gate
	taps []*tap

	mu    sync.Mutex
	state feed.ParticipantState // without what the gate has
	proc  *process              // the newest; nil before the first
	kept  int                   // the process ID of its newest keeper
	ended int                   // how many of its campaigns and tenures have ended, by its reports
}

// process is one process of a participant.
type process struct {
	*participant.Process
	gone chan struct{} // closed when it has ended, and the participant's state says so
	// then is the participant's life after its end, if the sandbox ends it; "" if not. If it fails, the
	// participant is dead nevertheless. The participant's mutex guards it.
	then feed.Life
}

func newCandidate(in *Sandbox, name string, kind feed.Kind, rule string) (*candidate, error) {
	c := &candidate{in: in, name: name}
	c.state = feed.ParticipantState{Kind: kind, Life: feed.Starting, TTLMS: feed.Milliseconds(in.cfg.TTL), Rule: rule}
	if kind == feed.Heartbeats {
		c.state.HeartbeatMS = feed.Milliseconds(heartbeatTimeout)
	}
	c.gate = newGate(func(what feed.Type, m message) { m.tap.tell(what, m) }, func(m message) { m.tap.tear(m) }, c.show)
	endpoints := in.field.Endpoints()
	for i := range endpoints {
		t, err := newTap(c, i, endpoints)
		if err != nil {
			c.disconnect()
			return nil, fmt.Errorf("the network of %s: %w", name, err)
		}
		c.taps = append(c.taps, t)
	}
	return c, nil
}

// disconnect ends the participant's network. No mutex may be held.
func (c *candidate) disconnect() {
	for _, t := range c.taps {
		t.Close()
	}
}

// show adds the participant's state to the log.
func (c *candidate) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown()
}

// shown is show for callers that hold the mutex: the newest state is the last one in the log.
func (c *candidate) shown() {
	state, set := c.state, c.gate.settings()
	state.Cut, state.DelayMS, state.LoseReply = set.cut, feed.Milliseconds(set.delay), set.loseReply
	state.Hold, state.Breakpoints = set.hold, set.breakpoints
	c.in.log.Add(feed.Event{Type: feed.Participant, Who: c.name, Participant: &state})
}

// config returns what the next process is configured with. The caller holds the mutex.
func (c *candidate) config() participant.Config {
	cfg := participant.Config{
		Who: c.name, Contender: contender.Eldest, Election: c.in.cfg.Election, TTL: c.in.cfg.TTL, Data: c.in.dataKey(),
		Calm: calm, Without: c.state.Rule,
	}
	for _, t := range c.taps {
		cfg.Endpoints = append(cfg.Endpoints, t.Endpoint())
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

// launch starts a process, whose life is feed.Starting. It does not wait until the process is up.
func (c *candidate) launch() (*process, error) {
	p := &process{gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	// What is called for the process needs the mutex, and so comes after this.
	var err error
	p.Process, err = participant.Launch(c.in.field.Spawner, c.in.cfg.Executable, c.config(), c.read, func(of *offspring.Process) { c.exited(p, of) })
	if err != nil {
		c.state.Life = feed.Dead
		c.shown()
		return nil, err
	}
	c.proc = p
	c.state.Lives++
	c.state.Pid, c.state.KeeperPid = p.Pid(), 0
	c.shown()
	return p, nil
}

// exited is called when a process has ended.
func (c *candidate) exited(p *process, of *offspring.Process) {
	code, complaint := of.Result()
	c.mu.Lock()
	unexpected := p.then == ""
	if unexpected || code != 0 {
		p.then = feed.Dead
	}
	if c.proc == p && c.state.Life != feed.Left {
		c.state.Life, c.state.Pid, c.state.KeeperPid = p.then, 0, 0
		c.shown()
	}
	c.mu.Unlock()
	close(p.gone)
	if unexpected {
		c.in.problem(fmt.Errorf("%s ended by itself, with exit code %d: %s", c.name, code, cmp.Or(complaint, "it gave no reason")))
	}
}

// read handles a line that a process has written.
func (c *candidate) read(l participant.Line) {
	switch {
	case l.Up:
		c.mu.Lock()
		c.state.KeeperPid = l.Keeper
		if l.Keeper != 0 {
			c.kept = l.Keeper
		}
		if c.state.Life == feed.Starting {
			c.state.Life = feed.Running
		}
		c.shown()
		c.mu.Unlock()
	case l.Phase != "":
		c.in.log.Add(feed.Event{Type: feed.Report, Who: c.name, Report: &feed.ParticipantNews{Kind: "phase", Text: l.Phase}})
	case l.Event != nil:
		c.report(*l.Event)
	}
}

// report adds what a process has reported to the log, at the instant of the report. Writes are
// reported with their outcome only.
func (c *candidate) report(e oracle.Event) {
	if e.Kind == oracle.Sent {
		return
	}
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
	c.in.log.Add(feed.Event{
		AtMS: max(c.in.log.NowMS()-feed.Milliseconds(max(ago, 0)), 0), Type: feed.Report, Who: c.name, Report: news,
	})
	if e.Kind == oracle.Ended || e.Kind == oracle.Failed {
		c.mu.Lock()
		c.ended++
		c.mu.Unlock()
	}
}

// keeper returns the process ID of its newest keeper; 0 if it has had none, or that has ended.
func (c *candidate) keeper() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != 0 && !alive(c.kept) {
		c.kept = 0
	}
	return c.kept
}

// alive reports whether a process exists and is no zombie, where the kernel can be asked.
func alive(pid int) bool {
	is, err := offspring.Alive(pid)
	return err == nil && is
}
