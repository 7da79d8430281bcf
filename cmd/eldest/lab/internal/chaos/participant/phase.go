package participant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// The phases of a candidate that a participant reports, by the core's names; see docs/states.md.
const (
	idle     = "idle"
	entering = "entering"
	waiting  = "waiting"
	proving  = "proving"
	leading  = "leading"
	draining = "draining"
	leaving  = "leaving"
	lost     = "lost"
)

// phases reports the phase of a candidate, which follows from its status, its hooks, and what the
// participant intends: with a status alone, a candidate that proves its place is one that waits. A
// phase of less than a millisecond may be left out. A nil *phases does nothing.
type phases struct {
	tell func(phase string)
	// news is a wake-up for follow: a hook was called, or the intent has changed.
	news chan struct{}

	mu     sync.Mutex
	intent string // the phase of a candidate that has no key
	token  eldest.Token
	queued string // the phase of a candidate that has a key and does not lead
	waits  bool   // it has begun to wait for a predecessor since of was called
	told   string // by follow, which runs for one candidate at a time
}

func newPhases(tell func(string)) *phases {
	return &phases{tell: tell, news: make(chan struct{}, 1), intent: idle}
}

// note changes the state, and wakes follow.
func (p *phases) note(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// intend sets the phase of a candidate that has no key.
func (p *phases) intend(phase string) {
	if p != nil {
		p.note(func() { p.intent = phase })
	}
}

// registered is a hook of candidates. One without a predecessor proves its place at once.
func (p *phases) registered(e election.RegisteredEvent) {
	if e.Predecessor == "" && !e.Adopted {
		p.note(func() { p.token, p.queued = e.Token, proving })
	}
}

// waiting is a hook of candidates.
func (p *phases) waiting(election.WaitingEvent) { p.note(func() { p.waits = true }) }

// of returns the phase of a candidate with a status. turned means that the status may have changed
// since the last call: of a candidate that waits, its predecessor has left.
func (p *phases) of(s election.Status, turned bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.waits
	p.waits = false
	switch {
	case s.Token == 0:
		p.token = 0
		return p.intent
	case s.Leading:
		return leading
	case s.Suspended || s.Draining:
		return draining
	case waits || s.Token != p.token:
		p.queued = waiting
	case turned:
		p.queued = proving
	}
	p.token = s.Token
	return p.queued
}

// follow reports each phase of a candidate, until its session ends or it is closed.
func (p *phases) follow(c *election.Candidate, s *lease.Session) {
	for turned := false; ; {
		changed := c.Changed() // first: a later change closes it
		status, ended, closed := c.Status(), s.Err(), c.Closed()
		phase := p.of(status, turned)
		switch {
		case errors.Is(ended, eldest.ErrSessionLost):
			phase = lost
		case ended != nil, closed:
			phase = idle
		}
		if phase != p.told {
			p.told = phase
			p.tell(phase)
		}
		if ended != nil || closed {
			return
		}
		select {
		case <-changed:
			turned = true
		case <-p.news:
			turned = false
		case <-s.Done():
		}
	}
}

// showPhase writes the phase of the candidate.
func (p *participant) showPhase(phase string) {
	if err := json.NewEncoder(p.lines).Encode(Line{Phase: phase}); err != nil {
		fmt.Fprintln(os.Stderr, "phase:", err)
		os.Exit(1)
	}
}
