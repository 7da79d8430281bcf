//go:build unix

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
)

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

// runEvents writes what happens.
type runEvents struct {
	eventLog
	path string // of the command, as it is called
	why  func(error) string
}

func newRunEvents(out io.Writer, asJSON bool, path, name string, why func(error) string) *runEvents {
	e := &runEvents{eventLog: eventLog{asJSON: asJSON, election: name}, path: path, why: why}
	e.Lines = cli.WriteLines(out, func(missed int) {
		_, _ = io.WriteString(out, e.notice(cli.DroppedLines(missed)))
	}, func(error) {}) // the program goes on for whoever uses it, even if nobody reads this
	return e
}

// tell writes an event that is a fact now.
func (e *runEvents) tell(event campaignEvent) { e.tellAt(time.Now(), event) }

func (e *runEvents) tellAt(at time.Time, event campaignEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record(at, event)
}

// because says why the candidacy that follows its end has been given up.
func (e *runEvents) because(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.given = why
}

// restarting tells of the pause between two rounds.
func (e *runEvents) restarting(why string, pause time.Duration) {
	ms := pause.Milliseconds()
	if e.asJSON {
		e.Write(e.own(ownEvent{Event: "restarting", Cause: why, InMS: &ms}))
		return
	}
	e.Write(fmt.Sprintf("%s  %-10s  in %d ms  because %s\n", time.Now().Format(clockTime), "restarting", ms, why))
}

// note writes what is no event of a candidate.
func (e *runEvents) note(text string) { e.Write(e.notice(text)) }

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
	e.Write(e.own(ownEvent{Event: "failed", Cause: plain.Lines(reason.Error()), ExitCode: &code}))
	return cli.Exit(code, nil)
}

func (e *runEvents) own(event ownEvent) string {
	event.Time, event.Election = time.Now().Format(time.RFC3339Nano), e.election
	return jsonLine(event)
}

// sessionHooks report what the session knows, and call renewed after each renewal and heartbeat.
func (e *runEvents) sessionHooks(renewed func()) lease.Hooks {
	told := teller(e.tellAt).sessionHooks(e.why, func(format string, args ...any) { e.note(fmt.Sprintf(format, args...)) })
	told.Renewed = func(lease.RenewedEvent) { renewed() }
	told.Beat = hooks.Tee(told, lease.Hooks{Beat: func(lease.BeatEvent) { renewed() }}).Beat
	return told
}
