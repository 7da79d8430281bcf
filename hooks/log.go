package hooks

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Log returns hooks that write a line to logger for each event, with the name of the election,
// unless that is empty. Lines are written where the hooks are called, which is not the protocol's
// goroutine, so a slow logger loses lines, not leadership. A nil logger writes nothing. Of the
// attempts that fail in a row the 1st, 2nd, 4th, 8th and so on have a line, so that an etcd that is
// unavailable does not fill the log.
func Log(logger *slog.Logger, election string) Set {
	if logger == nil {
		return Set{}
	}
	if election != "" {
		logger = logger.With("election", election)
	}
	l := log{logger}
	return Set{Session: l.session(), Candidate: l.candidate(), Observer: l.observer()}
}

type log struct{ to *slog.Logger }

func (l log) session() lease.Hooks {
	var missed atomic.Bool // the newest heartbeat failed
	return lease.Hooks{
		Retrying: func(e lease.RetryingEvent) { l.retrying(e.Op, e.Attempt, e.Err, e.Pause) },
		Opened: func(e lease.OpenedEvent) {
			missed.Store(false) // the heartbeat was one of the session before
			l.write(slog.LevelInfo, "session opened", "lease", hex(int64(e.Session.ID())), "ttl", e.Session.TTL())
		},
		Renewed: func(e lease.RenewedEvent) {
			l.write(slog.LevelDebug, "lease renewed", "latency", e.Latency, "ttl", e.TTL, "slack", e.Slack)
		},
		AtRisk: func(e lease.AtRiskEvent) {
			l.write(slog.LevelWarn, "lease at risk", "remaining", e.Remaining, "reason", Trouble(e.Err), "error", e.Err)
		},
		Recovered: func(e lease.RenewedEvent) {
			l.write(slog.LevelInfo, "lease recovered", "latency", e.Latency, "slack", e.Slack)
		},
		Heartbeat: func(e lease.HeartbeatEvent) {
			switch before := missed.Swap(e.Err != nil); {
			case e.NotPermitted:
				l.write(slog.LevelWarn, "heartbeats are not permitted, only the lease is used: grant read and write on the range of keys.Heartbeats",
					"reason", Trouble(e.Err), "error", e.Err)
			case e.Err != nil && !before:
				l.write(slog.LevelWarn, "heartbeat failed", "left", e.Left, "reason", Trouble(e.Err), "error", e.Err)
			case e.Err == nil && before:
				l.write(slog.LevelInfo, "heartbeats recovered", "latency", e.Latency, "left", e.Left)
			}
		},
		Lost: func(e lease.LostEvent) {
			l.write(unasked(e.Cause), "session ended", "reason", Cause(e.Cause), "error", e.Cause)
		},
	}
}

func (l log) candidate() election.Hooks {
	return election.Hooks{
		Registered: func(e election.RegisteredEvent) {
			l.write(slog.LevelInfo, "candidate registered", "key", e.Key, "token", int64(e.Token),
				"queue", e.Queue, "predecessor", e.Predecessor, "adopted", e.Adopted)
		},
		Waiting: func(e election.WaitingEvent) {
			l.write(slog.LevelInfo, "candidate waits", "key", e.Key, "token", int64(e.Token), "predecessor", e.Predecessor.Key)
		},
		Won: func(e election.WonEvent) {
			what := "leadership won"
			if e.Resumed {
				what = "leadership resumed"
			}
			l.write(slog.LevelInfo, what, "key", e.Key, "token", int64(e.Token),
				"revision", e.Revision, "waited", e.Waited, "proof", e.Proof)
		},
		Suspended: func(e election.SuspendedEvent) {
			l.write(slog.LevelWarn, "leadership suspended", "key", e.Key, "token", int64(e.Token), "reason", Cause(e.Cause), "error", e.Cause)
		},
		Evicted: func(e election.EvictedEvent) {
			l.write(slog.LevelWarn, "unresponsive leader evicted", "key", e.Key, "evicted", e.Evicted.Key, "evicted_token", int64(e.Evicted.Token), "silence", e.Silence)
		},
		Ended: func(e election.EndedEvent) {
			what, cause := "candidacy ended", e.Cause
			if e.Led {
				what = "leadership ended"
			}
			if !e.Drained.IsZero() {
				cause = eldest.ErrDraining // leadership had ended then, whatever happened to the key
			}
			l.write(unasked(cause), what, "key", e.Key, "token", int64(e.Token), "reason", Cause(cause), "error", e.Cause)
		},
		Foreign: func(e election.ForeignEvent) {
			l.write(slog.LevelWarn, "foreign key ignored", "key", e.Key)
		},
		Interrupted: func(e election.InterruptedEvent) {
			l.write(slog.LevelWarn, "candidate's watch interrupted", "key", e.Key, "reason", Trouble(e.Reason), "error", e.Reason)
		},
		Retrying: func(e election.RetryingEvent) { l.retrying(e.Op, e.Attempt, e.Err, e.Pause, "key", e.Key) },
	}
}

func (l log) observer() observe.Hooks {
	return observe.Hooks{
		Started: func(observe.StartedEvent) { l.write(slog.LevelDebug, "observer started") },
		Interrupted: func(e observe.InterruptedEvent) {
			l.write(slog.LevelWarn, "observer's watch interrupted", "reason", Trouble(e.Reason), "error", e.Reason)
		},
		Retrying: func(e observe.RetryingEvent) { l.retrying(e.Op, e.Attempt, e.Err, e.Pause) },
		Ended: func(e observe.EndedEvent) {
			l.write(slog.LevelDebug, "observer ended", "reason", Cause(e.Cause), "error", e.Cause)
		},
	}
}

// retrying writes a line for attempts 1, 2, 4, 8 and so on.
func (l log) retrying(op string, attempt int, err error, pause time.Duration, attrs ...any) {
	if attempt&(attempt-1) != 0 {
		return
	}
	attrs = append(attrs, "op", op, "attempt", attempt, "pause", pause, "reason", Trouble(err), "error", err)
	l.write(slog.LevelWarn, "etcd request failed, retrying", attrs...)
}

func (l log) write(level slog.Level, what string, attrs ...any) {
	l.to.Log(context.Background(), level, what, attrs...)
}

// unasked returns the level for an end: a warning, unless this process requested it.
func unasked(cause error) slog.Level {
	if Asked(cause) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// hex writes a lease as keys have it.
func hex(lease int64) string { return fmt.Sprintf("%x", lease) }
