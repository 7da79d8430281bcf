//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// runEvent is one line of "eldest run --json". The first six fields are in every line;
// token is 0 before the registration, key and lease are empty before the session.
type runEvent struct {
	campaignEvent
	PID      int    `json:"pid,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Hook     string `json:"hook,omitempty"`
	InMS     *int64 `json:"in_ms,omitempty"`
}

// runEvents writes what happens. Whoever tells of it does not wait for the line: a reader
// that does not read must not keep the keeper from learning of a deadline, and so the
// program from running.
type runEvents struct {
	asJSON bool
	why    func(error) string
	lines  chan string
	done   chan struct{}

	mu     sync.Mutex
	of     subject
	missed int // lines that nobody took
	closed bool
}

// pendingLines is how many lines wait for a reader before more are dropped.
const pendingLines = 1000

func newRunEvents(out io.Writer, asJSON bool, name string, why func(error) string) *runEvents {
	e := &runEvents{asJSON: asJSON, of: subject{election: name}, why: why, lines: make(chan string, pendingLines), done: make(chan struct{})}
	go func() {
		defer close(e.done)
		for line := range e.lines {
			// The program goes on for whoever uses it, even if nobody reads this.
			_, _ = io.WriteString(out, line)
			if n := e.unread(); n > 0 {
				_, _ = fmt.Fprintf(out, "eldest run: %d lines were dropped, because nobody read them\n", n)
			}
		}
	}()
	return e
}

// unread returns how many lines were dropped since it was last asked.
func (e *runEvents) unread() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.missed
	e.missed = 0
	return n
}

// close waits until all is written, for at most the limit.
func (e *runEvents) close(limit time.Duration) {
	e.mu.Lock()
	e.closed = true
	close(e.lines)
	e.mu.Unlock()
	select {
	case <-e.done:
	case <-time.After(limit):
	}
}

// stand says under which key and lease the following happens; "" and 0 is none.
func (e *runEvents) stand(key string, id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of.key, e.of.lease, e.of.token = key, "", 0
	if id != 0 {
		e.of.lease = hexLease(id)
	}
}

// tell writes an event that is a fact now.
func (e *runEvents) tell(event runEvent) { e.tellAt(time.Now(), event) }

func (e *runEvents) tellAt(at time.Time, event runEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.of.complete(at, &event.campaignEvent)
	line := event.text(at)
	if e.asJSON {
		line = jsonLine(event)
	}
	select {
	case e.lines <- line:
	default:
		e.missed++
	}
}

// note writes a line that is no event.
func (e *runEvents) note(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		select {
		case e.lines <- line + "\n":
		default:
			e.missed++
		}
	}
}

// sessionHooks report what the session knows, and call renewed after each renewal.
func (e *runEvents) sessionHooks(renewed func()) lease.Hooks {
	told := e.campaign().sessionHooks(e.why)
	told.Renewed = func(lease.RenewedEvent) { renewed() }
	return told
}

// campaign tells of what a campaign has as well.
func (e *runEvents) campaign() teller {
	return func(at time.Time, event campaignEvent) { e.tellAt(at, runEvent{campaignEvent: event}) }
}

// text renders the event for people, as those of a campaign.
func (event runEvent) text(at time.Time) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(event.campaignEvent.text(at), "\n"))
	if event.PID != 0 {
		fmt.Fprintf(&b, "  pid %d", event.PID)
	}
	if event.ExitCode != nil {
		fmt.Fprintf(&b, "  exit code %d", *event.ExitCode)
	}
	if event.Hook != "" {
		fmt.Fprintf(&b, "  %s", event.Hook)
	}
	if event.InMS != nil {
		fmt.Fprintf(&b, "  in %d ms", *event.InMS)
	}
	b.WriteByte('\n')
	return b.String()
}
