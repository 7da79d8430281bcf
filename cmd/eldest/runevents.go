//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/lease"
)

// runEvent is one line of "eldest run --json". The first six fields are in every line of
// a candidate; token is 0 before the registration.
type runEvent struct {
	campaignEvent
	PID      int    `json:"pid,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Hook     string `json:"hook,omitempty"`
}

// ownEvent is a line of the command itself: beside the rounds there is no key, no token
// and no lease.
type ownEvent struct {
	Event    string `json:"event"` // restarting, notice or failed
	Time     string `json:"time"`
	Election string `json:"election"`
	Cause    string `json:"cause,omitempty"`
	InMS     *int64 `json:"in_ms,omitempty"`
	Text     string `json:"text,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
}

// runEvents writes what happens. Whoever tells of it does not wait for the line.
type runEvents struct {
	asJSON bool
	path   string // of the command, as it is called
	why    func(error) string
	*cli.Lines

	mu    sync.Mutex
	of    subject
	ended string // why the tenure has ended, or the candidacy is given up
}

func newRunEvents(out io.Writer, asJSON bool, path, name string, why func(error) string) *runEvents {
	e := &runEvents{asJSON: asJSON, path: path, of: subject{election: name}, why: why}
	e.Lines = cli.WriteLines(out, func(missed int) {
		_, _ = io.WriteString(out, e.notice(cli.DroppedLines(missed)))
	}, func(error) {}) // the program goes on for whoever uses it, even if nobody reads this
	return e
}

// stand says under which key and lease the following happens; "" and 0 is none.
func (e *runEvents) stand(key string, id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of.key, e.of.lease, e.of.token, e.ended = key, "", 0, ""
	if id != 0 {
		e.of.lease = hexLease(id)
	}
}

// tell writes an event that is a fact now.
func (e *runEvents) tell(event runEvent) { e.tellAt(time.Now(), event) }

func (e *runEvents) tellAt(at time.Time, event runEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Event == "resigned" && event.Cause == "" {
		event.Cause = e.ended
	}
	e.of.complete(at, &event.campaignEvent)
	line := event.text(at)
	if e.asJSON {
		line = jsonLine(event)
	}
	e.Write(line)
}

// because says why the candidacy that follows its end has been given up.
func (e *runEvents) because(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = why
}

// restarting tells of the pause between two rounds.
func (e *runEvents) restarting(why string, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := pause.Milliseconds()
	if e.asJSON {
		e.Write(e.own(ownEvent{Event: "restarting", Cause: why, InMS: &ms}))
		return
	}
	e.Write(fmt.Sprintf("%s  %-10s  in %d ms  because %s\n", time.Now().Format(clockTime), "restarting", ms, why))
}

// note writes what is no event of a candidate.
func (e *runEvents) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Write(e.notice(text))
}

func (e *runEvents) notice(text string) string {
	if e.asJSON {
		return e.own(ownEvent{Event: "notice", Text: text})
	}
	return cli.NoticeLine(e.path, text)
}

// failed is what the command ends with. For programs the last line says so, and nothing is
// left for the words that people read.
func (e *runEvents) failed(err error) error {
	code, reason := cli.ExitCode(err, true)
	if !e.asJSON || reason == nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Write(e.own(ownEvent{Event: "failed", Cause: plain.Lines(reason.Error()), ExitCode: &code}))
	return cli.Exit(code, nil)
}

func (e *runEvents) own(event ownEvent) string {
	event.Time, event.Election = time.Now().Format(time.RFC3339Nano), e.of.election
	return jsonLine(event)
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
	b.WriteByte('\n')
	return b.String()
}
