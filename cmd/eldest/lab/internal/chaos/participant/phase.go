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

// The names of the phases, as in the core's table.
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

// phases reports the phase of one candidate. Its Status alone does not tell some phases apart:
// without a token, they follow from what the participant wants; and a candidate that waits is
// proving from the change that ends its wait until the Waiting hook is called again. So a phase that
// lasts less than a millisecond may be left out.
type phases struct {
	tell func(phase string)

	mu     sync.Mutex
	wants  string        // idle, entering or leaving: the phase without a token
	elder  eldest.Token  // the last one for which the candidate waited
	alone  eldest.Token  // its own token, if there was no older candidate at its registration
	woken  chan struct{} // has a value if one of these has changed
	proves view          // of follow only
}

func newPhases(tell func(string)) *phases {
	return &phases{tell: tell, wants: idle, woken: make(chan struct{}, 1)}
}

// change changes a field, and wakes follow. A nil *phases is not followed.
func (p *phases) change(set func()) {
	if p == nil {
		return
	}
	p.mu.Lock()
	set()
	p.mu.Unlock()
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// intend sets the phase of a candidate without a token.
func (p *phases) intend(phase string) { p.change(func() { p.wants = phase }) }

// registered and waiting are hooks of the candidate.
func (p *phases) registered(e election.RegisteredEvent) {
	if e.Predecessor == "" && !e.Adopted {
		p.change(func() { p.alone = e.Token })
	}
}

func (p *phases) waiting(e election.WaitingEvent) {
	p.change(func() { p.elder, p.alone = e.Predecessor.Token, 0 })
}

// follow reports each change of the candidate's phase, until its session ends or it is closed.
func (p *phases) follow(c *election.Candidate, s *lease.Session) {
	last, turned := "", false
	for {
		changed := c.Changed() // first: a later change closes it
		status, ended, closed := c.Status(), s.Err(), c.Closed()
		phase := p.of(status, turned)
		switch {
		case errors.Is(ended, eldest.ErrSessionLost):
			phase = lost
		case ended != nil, closed:
			phase = idle
		}
		if phase != last {
			p.tell(phase)
			last = phase
		}
		if ended != nil || closed {
			return
		}
		select {
		case <-changed:
			turned = true
		case <-p.woken:
			turned = false
		case <-s.Done():
			turned = false
		}
	}
}

// of returns the phase that follows from a status. turned means that the candidate's own state has
// changed since the last call, and not only what its hooks have said.
func (p *phases) of(s election.Status, turned bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.Token == 0:
		return p.wants
	case s.Leading:
		return leading
	case s.Draining, s.Suspended:
		return draining
	}
	return p.proves.phase(s.Token, p.elder, p.alone == s.Token, turned)
}

// view tells the phases waiting and proving apart.
type view struct {
	token, elder eldest.Token // those of the last call
	proving      bool
}

// phase returns the phase of a candidate that has a token and has not won. elder is the last one for
// which it waited, alone means that there was none at its registration, and turned is as above.
func (v *view) phase(token, elder eldest.Token, alone, turned bool) string {
	switch {
	case token != v.token:
		v.token, v.elder, v.proving = token, elder, alone
	case elder != v.elder:
		v.elder, v.proving = elder, false
	case alone, turned:
		v.proving = true
	}
	if v.proving {
		return proving
	}
	return waiting
}

// showPhase writes the phase of the candidate.
func (p *participant) showPhase(phase string) {
	if err := json.NewEncoder(p.lines).Encode(Line{Phase: phase}); err != nil {
		fmt.Fprintln(os.Stderr, "phase:", err)
		os.Exit(1)
	}
}
