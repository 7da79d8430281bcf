package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
)

// event is one line of "eldest campaign --json" or "eldest run --json".
type event struct {
	Event    string `json:"event"`
	Time     string `json:"time"`
	Election string `json:"election"`
	*place          // nil in events that concern no candidate

	Predecessor string `json:"predecessor,omitempty"`
	Queue       int64  `json:"queue,omitempty"`
	Cause       string `json:"cause,omitempty"`
	Led         *bool  `json:"led,omitempty"`
	RemainingMS *int64 `json:"remaining_ms,omitempty"`
	PID         int    `json:"pid,omitempty"`
	ExitCode    *int   `json:"exit_code,omitempty"`
	Hook        string `json:"hook,omitempty"`
	InMS        *int64 `json:"in_ms,omitempty"`
	Text        string `json:"text,omitempty"`
	Error       string `json:"error,omitempty"`
	Advice      string `json:"advice,omitempty"`
}

// place is the position of a candidate in the queue. Each line about a candidate has all of these
// fields. The token is 0 before the registration.
type place struct {
	Key   string       `json:"key"`
	Token eldest.Token `json:"token"`
	Lease string       `json:"lease"`
}

// eventLog writes the events of one candidate after another. Its methods do not wait until the lines
// are read.
//
// The hooks of a candidate and of its session are called on different goroutines. A line of the
// session that comes after the candidate's end is dropped, so that "lost" or "resigned" is the last
// line of both.
type eventLog struct {
	*cli.Lines
	asJSON   bool
	election string
	wait     *connect.Notice // writes why the command waits, and all other lines that are no events

	mu    sync.Mutex
	place *place // of the candidate; nil while there is none
	given string // why the candidacy is given up; the cause in "resigned"
	// queued is true once the candidate has registered, drained if its next end is not its last.
	queued, drained bool
	over            bool          // the last line is written
	ended           chan struct{} // closed when over is set
}

// begin sets the candidate that the following events are about; an empty key is none.
func (l *eventLog) begin(key string, lease int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place, l.given = nil, ""
	l.queued, l.drained, l.over, l.ended = false, false, false, make(chan struct{})
	if key != "" {
		l.place = &place{Key: key, Lease: hexLease(lease)}
	}
}

// because sets why the candidacy is about to be given up.
func (l *eventLog) because(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = why
}

// tell writes an event about the candidate, with the current time.
func (l *eventLog) tell(e event) { l.tellAt(time.Now(), 0, e) }

// tellAt writes an event about the candidate. at is the time of the event and not of the line: on a
// busy machine hooks are called late, and the lines of two candidates would show two leaders where
// there was one. If token is 0, the line has the token of the event before.
func (l *eventLog) tellAt(at time.Time, token eldest.Token, e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.place == nil { // a late hook of a candidate whose round has ended
		return
	}
	switch e.Event {
	case "registered":
		if l.over { // the candidate drained, but lost its key before the "drained" event
			l.over, l.ended = false, make(chan struct{})
		}
		l.queued = true
	case "drained":
		l.drained = true
	case "at-risk", "recovered":
		if l.over {
			return
		}
	case "lost", "resigned":
		switch {
		case l.over:
			return
		case l.drained:
			l.drained, l.queued = false, false
		default:
			l.over = true
			defer close(l.ended)
		}
		if e.Event == "resigned" {
			e.Cause = l.given
		}
	}
	if e.place = l.place; token != 0 {
		e.place = &place{l.place.Key, token, l.place.Lease}
		l.place = e.place
	}
	l.write(at, e, "token", e.Token, "key", cli.Printable(e.Key), "behind", cli.Printable(e.Predecessor), "queue", e.Queue,
		"certain for", millis(e.RemainingMS), "because", e.Cause, "pid", e.PID, "exit code", e.ExitCode, "", e.Hook)
}

// own writes an event that is about no candidate.
func (l *eventLog) own(e event) {
	l.write(time.Now(), e, "in", millis(e.InMS), "because", e.Cause)
}

// write writes an event: as JSON, or for people with the labelled values.
func (l *eventLog) write(at time.Time, e event, labelled ...any) {
	e.Time, e.Election = at.Format(time.RFC3339Nano), l.election
	if l.asJSON {
		l.Write(cli.JSONLine(e))
	} else {
		l.Write(eventLine(at, e.Event, labelled...))
	}
}

// awaitEnd waits, for at most the limit, until the last line about a candidate that was queued is
// written.
func (l *eventLog) awaitEnd(limit time.Duration) {
	l.mu.Lock()
	queued, ended := l.queued, l.ended
	l.mu.Unlock()
	if !queued {
		return
	}
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// notice writes a line that is no event. It does not block.
func (l *eventLog) notice(format string, args ...any) { l.wait.Say(fmt.Sprintf(format, args...)) }

// hooks returns the hooks that write the events of the session and the candidate. The end of the
// session is not reported: it ends the candidate, whose event also shows whether it led. ctx is the
// command's: an end of the candidate after the end of ctx was requested.
func (l *eventLog) hooks(ctx context.Context) hooks.Set {
	return hooks.Tee(l.wait.Hooks(), hooks.Set{Session: l.sessionHooks(), Candidate: l.candidateHooks(ctx)})
}

func (l *eventLog) sessionHooks() lease.Hooks {
	return lease.Hooks{
		AtRisk: func(j lease.AtRiskEvent) {
			cause := l.wait.Conn.Why(j.Err)
			if connect.Silent(j.Err) {
				cause = "etcd does not answer: " + cause
			}
			l.tell(event{Event: "at-risk", Cause: cause, RemainingMS: new(j.Remaining.Milliseconds())})
		},
		Recovered: func(lease.RenewedEvent) { l.tell(event{Event: "recovered"}) },
		Heartbeat: mute(l.wait),
	}
}

// mute returns a hook that writes a notice when heartbeats are given up.
func mute(to *connect.Notice) func(lease.HeartbeatEvent) {
	return func(b lease.HeartbeatEvent) {
		if b.NotPermitted {
			to.Say(fmt.Sprintf("continues without heartbeats: %s; the user needs a role that may read and write the range from /eldest/heartbeat/ to /eldest/heartbeat0", to.Conn.Why(b.Err)))
		}
	}
}

func (l *eventLog) candidateHooks(ctx context.Context) election.Hooks {
	return election.Hooks{
		Registered: func(r election.RegisteredEvent) {
			l.tellAt(r.At, r.Token, event{Event: "registered", Predecessor: r.Predecessor, Queue: r.Queue})
		},
		Waiting: func(w election.WaitingEvent) {
			l.tellAt(w.At, w.Token, event{Event: "waiting", Predecessor: w.Predecessor.Key})
		},
		Won: func(w election.WonEvent) {
			name := "leader"
			if w.Resumed {
				name = "resumed"
			}
			l.tellAt(w.At, w.Token, event{Event: name})
		},
		Suspended: func(s election.SuspendedEvent) {
			l.tellAt(s.At, s.Token, event{Event: "suspended", Cause: connect.Because(s.Cause)})
		},
		Evicted: func(e election.EvictedEvent) {
			l.tellAt(e.At, 0, event{Event: "evicted", Predecessor: e.Evicted.Key})
		},
		Ended: func(end election.EndedEvent) {
			e := event{Event: "resigned", Led: &end.Led}
			if errors.Is(end.Cause, eldest.ErrRequeued) {
				e.Event = "requeued"
			} else if lost(end.Cause) || ctx.Err() == nil && !byOwnWill(end.Cause) {
				e.Event, e.Cause = "lost", connect.Because(end.Cause)
			}
			l.tellAt(end.At, end.Token, e)
		},
		Foreign: func(f election.ForeignEvent) {
			l.notice("the key %s does not belong to a candidate and is ignored; candidates of other programs may wait behind it", cli.Printable(f.Key))
		},
	}
}

// byOwnWill reports whether this process ended the candidacy: it resigned, withdrew or was closed.
func byOwnWill(cause error) bool {
	return errors.Is(cause, eldest.ErrResigned) || errors.Is(cause, eldest.ErrWithdrawn) || errors.Is(cause, eldest.ErrClosed)
}

func millis(ms *int64) string {
	if ms == nil {
		return ""
	}
	return fmt.Sprintf("%d ms", *ms)
}

// eventLine renders an event for people: the local time, the name, and values with their labels. Zero
// values are left out.
func eventLine(at time.Time, name string, labelled ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-10s", at.Format("15:04:05.000"), name)
	for i := 0; i < len(labelled); i += 2 {
		if value := reflect.ValueOf(labelled[i+1]); !value.IsZero() {
			b.WriteString("  " + strings.TrimLeft(fmt.Sprint(labelled[i], " ", reflect.Indirect(value)), " "))
		}
	}
	b.WriteByte('\n')
	return b.String()
}
