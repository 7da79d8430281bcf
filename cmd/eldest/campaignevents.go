package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// campaignEvent is one line of "eldest campaign --json", or of a candidate of "eldest run
// --json", which alone has the last three fields. The first six are in every line; token is 0
// before the registration.
type campaignEvent struct {
	Event       string       `json:"event"`
	Time        string       `json:"time"`
	Election    string       `json:"election"`
	Key         string       `json:"key"`
	Token       eldest.Token `json:"token"`
	Lease       string       `json:"lease"`
	Predecessor string       `json:"predecessor,omitempty"`
	Queue       int64        `json:"queue,omitempty"`
	Cause       string       `json:"cause,omitempty"`
	Led         *bool        `json:"led,omitempty"`
	RemainingMS *int64       `json:"remaining_ms,omitempty"`
	PID         int          `json:"pid,omitempty"`
	ExitCode    *int         `json:"exit_code,omitempty"`
	Hook        string       `json:"hook,omitempty"`
}

// eventLog writes the events of one candidate after another. Who tells of them does not
// wait for the lines.
type eventLog struct {
	asJSON   bool
	election string
	*cli.Lines

	mu         sync.Mutex
	key, lease string       // of the candidate; "" before the session
	token      eldest.Token // the newest one told of
	given      string       // why the candidacy is given up, if "resigned" is to say so
}

// stand says under which key and lease the following happens; "" and 0 is none.
func (l *eventLog) stand(key string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key, l.lease, l.token, l.given = key, "", 0, ""
	if id != 0 {
		l.lease = hexLease(id)
	}
}

// record completes an event and hands its line over. at is the time of the fact, not of the
// line: on a busy machine a hook is called late, and whoever compares the lines of two
// candidates would see two leaders where there was one. The caller holds mu.
func (l *eventLog) record(at time.Time, event campaignEvent) {
	if event.Token != 0 {
		l.token = event.Token
	}
	if event.Event == "resigned" && event.Cause == "" {
		event.Cause = l.given
	}
	event.Time = at.Format(time.RFC3339Nano)
	event.Election, event.Key, event.Token, event.Lease = l.election, l.key, l.token, l.lease
	if l.asJSON {
		l.Write(jsonLine(event))
		return
	}
	l.Write(event.text(at))
}

// campaignEvents writes what happens to a candidate and its session.
//
// The two tell of it on goroutines of their own. What belongs to the candidate
// comes in order; a session's line that is late, after the candidate's last one,
// is dropped, so that "lost" or "resigned" is the last line. Neither waits for the line.
type campaignEvents struct {
	eventLog
	registered bool // so there will be a last line
	retired    bool // so "lost" or "resigned" will not be the last line
	// Invariant: over once the last "lost" or "resigned" was told, and nothing after it.
	over  bool
	ended chan struct{} // closed after the last line
}

// newCampaignEvents returns events that must be closed. notice is told of lines that were
// dropped, failed of those that could not be written.
func newCampaignEvents(out io.Writer, asJSON bool, name string, notice func(string), failed func(error)) *campaignEvents {
	lines := cli.WriteLines(out, func(missed int) { notice(cli.DroppedLines(missed)) }, failed)
	return &campaignEvents{eventLog: eventLog{asJSON: asJSON, election: name, Lines: lines}, ended: make(chan struct{})}
}

// teller writes an event that was a fact at a moment.
type teller func(at time.Time, event campaignEvent)

// sessionHooks report what the session knows. Its end is not reported: it ends the
// candidate, who tells whether it led. why has words for the failure of a request.
func (tell teller) sessionHooks(why func(error) string, notice func(string, ...any)) lease.Hooks {
	return lease.Hooks{
		Jeopardy: func(j lease.JeopardyEvent) {
			left := j.Remaining.Milliseconds()
			cause := why(j.Err)
			if connect.Silent(j.Err) {
				cause = "etcd does not answer: " + cause
			}
			tell(time.Now(), campaignEvent{Event: "jeopardy", Cause: cause, RemainingMS: &left})
		},
		Recovered: func(lease.RenewedEvent) { tell(time.Now(), campaignEvent{Event: "recovered"}) },
		Beat:      mute(notice, why),
	}
}

// mute says when heartbeats are given up.
func mute(notice func(string, ...any), why func(error) string) func(lease.BeatEvent) {
	return func(b lease.BeatEvent) {
		if b.Mute {
			notice("goes on without heartbeats: %s; the user needs a role that may read and write the range from /eldest/beat/ to /eldest/beat0", why(b.Err))
		}
	}
}

// candidateHooks report what the candidate knows. ctx is the command's: an end that
// follows its end is one that was asked for.
func (tell teller) candidateHooks(ctx context.Context, notice func(string, ...any)) election.Hooks {
	return election.Hooks{
		Registered: func(r election.RegisteredEvent) {
			tell(r.At, campaignEvent{Event: "registered", Token: r.Token, Predecessor: r.Predecessor, Queue: r.Queue})
		},
		Waiting: func(w election.WaitingEvent) {
			tell(w.At, campaignEvent{Event: "waiting", Token: w.Token, Predecessor: w.Predecessor.Key})
		},
		Won: func(w election.WonEvent) {
			event := campaignEvent{Event: "leader", Token: w.Token}
			if w.Resumed {
				event.Event = "resumed"
			}
			tell(w.At, event)
		},
		Suspended: func(s election.SuspendedEvent) {
			tell(s.At, campaignEvent{Event: "suspended", Token: s.Token, Cause: connect.Because(s.Cause)})
		},
		Evicted: func(e election.EvictedEvent) {
			tell(e.At, campaignEvent{Event: "evicted", Predecessor: e.Evicted.Key})
		},
		Ended: func(end election.EndedEvent) {
			event := campaignEvent{Event: "resigned", Token: end.Token, Led: &end.Led}
			if errors.Is(end.Cause, eldest.ErrSteppedBack) {
				event.Event = "stepped-back"
			} else if lost(end.Cause) || ctx.Err() == nil && !byOwnWill(end.Cause) {
				event.Event, event.Cause = "lost", connect.Because(end.Cause)
			}
			tell(end.At, event)
		},
		Foreign: func(f election.ForeignEvent) {
			notice("the key %s is no candidate's and is ignored; candidates of other programs may wait behind it", cli.Printable(f.Key))
		},
	}
}

// byOwnWill reports whether a candidate was told to leave.
func byOwnWill(cause error) bool {
	return errors.Is(cause, eldest.ErrResigned) || errors.Is(cause, eldest.ErrWithdrawn) || errors.Is(cause, eldest.ErrClosed)
}

// lostBeforeStanding writes "lost" for a session that ended before the candidate
// was in the queue; otherwise the candidate has told.
func (e *campaignEvents) lostBeforeStanding(err error) {
	led := false
	e.tell(time.Now(), campaignEvent{Event: "lost", Cause: connect.Because(err), Led: &led})
}

// awaitEnd waits until the last line of a candidate that was in the queue is told, for at
// most the limit.
func (e *campaignEvents) awaitEnd(limit time.Duration) {
	e.mu.Lock()
	registered := e.registered
	e.mu.Unlock()
	if !registered {
		return
	}
	select {
	case <-e.ended:
	case <-time.After(limit):
	}
}

// tell writes an event that was a fact at a moment.
func (e *campaignEvents) tell(at time.Time, event campaignEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over && event.Event == "registered" {
		// It had retired, and lost the key before it could say so.
		e.over, e.ended = false, make(chan struct{})
	}
	if e.over {
		return
	}
	switch event.Event {
	case "registered":
		e.registered = true
	case "retired":
		e.retired = true
	case "lost", "resigned":
		if e.retired {
			e.retired, e.registered = false, false
			break
		}
		e.over = true
		defer close(e.ended)
	}
	e.record(at, event)
}

// clockTime is how people see a time.
const clockTime = "15:04:05.000"

// text renders the event for people: the local time, and what changes first.
func (event campaignEvent) text(at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-10s  token %d  key %s", at.Format(clockTime), event.Event, event.Token, cli.Printable(event.Key))
	if event.Predecessor != "" {
		fmt.Fprintf(&b, "  behind %s", cli.Printable(event.Predecessor))
	}
	if event.Queue != 0 {
		fmt.Fprintf(&b, "  queue %d", event.Queue)
	}
	if event.RemainingMS != nil {
		fmt.Fprintf(&b, "  certain for %d ms", *event.RemainingMS)
	}
	if event.Cause != "" {
		fmt.Fprintf(&b, "  because %s", event.Cause)
	}
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

// jsonLine renders one object on a line of its own, with keys and values as they
// are rather than dressed up for HTML. What a terminal would obey is escaped, as JSON
// allows: a program reads the same, and people look at it, too.
func jsonLine(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return plain.JSON(b.String())
}
