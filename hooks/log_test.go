package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// ttl is the shortest TTL that a busy machine can keep.
const ttl = 4 * time.Second

// paper keeps what a logger writes.
type paper struct{ etcdtest.Paper }

// lines returns the lines so far.
func (p *paper) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(p.String()) {
		var attrs map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &attrs))
		lines = append(lines, attrs)
	}
	return lines
}

// find returns the first line with a message.
func (p *paper) find(t *testing.T, message string) map[string]any {
	t.Helper()
	for _, line := range p.lines(t) {
		if line["msg"] == message {
			return line
		}
	}
	return nil
}

func logger(p *paper) *slog.Logger {
	return slog.New(slog.NewJSONHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A tenure from its beginning to its end on real etcd: each line is written, at its level, with the
// attributes that a user searches for.
func TestLogOfATenure(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var p paper
	told := hooks.Log(logger(&p), t.Name())
	session, err := lease.Open(ctx, lease.Config{
		Lease: cli,
		Options: lease.Options{
			TTL: time.Minute, Hooks: told.Session,
			Renewal: func(time.Duration) lease.Renewal {
				return lease.Renewal{Every: 100 * time.Millisecond, Timeout: 5 * time.Second}
			},
		},
	})
	require.NoError(t, err)
	candidate, err := election.New(election.Config{Election: t.Name(), Session: session, KV: cli, Watcher: cli, Options: election.Options{Hooks: told.Candidate}})
	require.NoError(t, err)
	observer, err := observe.New(observe.Config{Election: t.Name(), KV: cli, Watcher: cli, Options: observe.Options{Hooks: told.Observer}})
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(cli.Put(ctx, t.Name()+"/not-a-candidate", "")))
	l, err := candidate.Campaign(ctx)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.find(t, "lease renewed") != nil }, time.Minute, time.Millisecond)
	require.NoError(t, etcdtest.Err(cli.Delete(ctx, l.Key())))
	select {
	case <-l.Done():
	case <-ctx.Done():
		require.FailNow(t, "the tenure does not end")
	}
	observer.Close()
	require.NoError(t, candidate.Close(ctx))
	require.NoError(t, session.Close(ctx))

	token := float64(l.Token())
	for message, want := range map[string]map[string]any{
		"session opened":       {"level": "INFO", "lease": fmt.Sprintf("%x", int64(session.ID()))},
		"lease renewed":        {"level": "DEBUG"},
		"candidate registered": {"level": "INFO", "key": l.Key(), "token": token, "queue": 2.0},
		"foreign key ignored":  {"level": "WARN", "key": t.Name() + "/not-a-candidate"},
		"leadership won":       {"level": "INFO", "token": token},
		"leadership ended":     {"level": "WARN", "token": token},
		"observer started":     {"level": "DEBUG"},
		"observer ended":       {"level": "DEBUG"},
		"session ended":        {"level": "INFO"},
	} {
		line := p.find(t, message)
		require.NotNil(t, line, "%s\n%v", message, p.lines(t))
		require.Equal(t, t.Name(), line["election"], message)
		for attr, value := range want {
			require.Equal(t, value, line[attr], "%s: %s", message, attr)
		}
	}
	require.Equal(t, "deposed", p.find(t, "leadership ended")["reason"])
	require.Contains(t, p.find(t, "leadership ended")["error"], eldest.ErrDeposed.Error())
}

// Events that are not routine: each hook writes its line, with the reason.
func TestLogOfTrouble(t *testing.T) {
	var p paper
	told := hooks.Log(logger(&p), "e")
	why := fmt.Errorf("%w: for a test", eldest.ErrSessionLost)
	told.Session.AtRisk(lease.AtRiskEvent{Remaining: 3 * time.Second, Err: why})
	told.Session.Recovered(lease.RenewedEvent{Slack: time.Second})
	told.Session.Lost(lease.LostEvent{Cause: why})
	told.Candidate.Waiting(election.WaitingEvent{Predecessor: eldest.Candidate{Key: "e/1"}})
	told.Candidate.Interrupted(election.InterruptedEvent{Key: "e/2", Reason: why})
	told.Candidate.Ended(election.EndedEvent{Cause: why})
	told.Candidate.Ended(election.EndedEvent{Led: true, Cause: eldest.ErrResigned})
	told.Observer.Interrupted(observe.InterruptedEvent{Reason: why})
	for message, level := range map[string]string{
		"lease at risk": "WARN", "lease recovered": "INFO", "session ended": "WARN", "candidate waits": "INFO",
		"candidate's watch interrupted": "WARN", "candidacy ended": "WARN", "leadership ended": "INFO",
		"observer's watch interrupted": "WARN",
	} {
		line := p.find(t, message)
		require.NotNil(t, line, message)
		require.Equal(t, level, line["level"], message)
		if level == "WARN" {
			require.Equal(t, "session_lost", line["reason"], message)
			require.Contains(t, line["error"], "for a test")
		}
	}
	require.Equal(t, float64(3*time.Second), p.find(t, "lease at risk")["remaining"])
	require.Zero(t, hooks.Log(nil, "e"), "without a logger nothing is called")
}

// Of the heartbeats that fail in a row the first has a line, and so has the next one that succeeds.
// The consequences of failed heartbeats have lines, too.
func TestLogOfHeartbeats(t *testing.T) {
	var p paper
	told := hooks.Log(logger(&p), "e")
	away := fmt.Errorf("away: %w", context.DeadlineExceeded)
	well := lease.HeartbeatEvent{Left: time.Second}
	for _, beat := range []lease.HeartbeatEvent{well, {Err: away}, {Err: away}, well, well, {Err: away}, {Err: away, NotPermitted: true}} {
		told.Session.Heartbeat(beat)
	}
	told.Candidate.Suspended(election.SuspendedEvent{Key: "e/1", Token: 5, Cause: fmt.Errorf("%w: %w", eldest.ErrSuspended, eldest.ErrUnresponsive)})
	told.Candidate.Won(election.WonEvent{Key: "e/1", Token: 5, Resumed: true})
	told.Candidate.Evicted(election.EvictedEvent{Key: "e/2", Evicted: eldest.Candidate{Key: "e/1", Token: 5}, Silence: time.Second})
	var lines []string
	for _, line := range p.lines(t) {
		require.Equal(t, "e", line["election"])
		lines = append(lines, fmt.Sprint(line["level"], " ", line["msg"], " ", line["reason"]))
	}
	require.Equal(t, []string{
		"WARN heartbeat failed no_answer", "INFO heartbeats recovered <nil>", "WARN heartbeat failed no_answer",
		"WARN heartbeats are not permitted, only the lease is used: grant read and write on the range of keys.Heartbeats no_answer",
		"WARN leadership suspended suspended", "INFO leadership resumed <nil>", "WARN unresponsive leader evicted <nil>",
	}, lines)
}

// A session has heartbeats of its own: the failures of the one before it neither hide its first failure
// nor make its first success a recovery.
func TestLogOfHeartbeatsOfTheNextSession(t *testing.T) {
	var p paper
	told := hooks.Log(logger(&p), "")
	cli := etcdtest.Shared(t).Client(t)
	next := func() {
		session, err := lease.Open(t.Context(), lease.Config{Lease: cli})
		require.NoError(t, err)
		defer func() { require.NoError(t, session.Close(t.Context())) }()
		told.Session.Opened(lease.OpenedEvent{Session: session})
	}
	away := lease.HeartbeatEvent{Err: context.DeadlineExceeded}
	told.Session.Heartbeat(away)
	next()
	told.Session.Heartbeat(lease.HeartbeatEvent{Left: time.Second})
	require.Nil(t, p.find(t, "heartbeats recovered"), "of which session?")
	told.Session.Heartbeat(away)
	next()
	told.Session.Heartbeat(away)
	failed := 0
	for _, line := range p.lines(t) {
		if line["msg"] == "heartbeat failed" {
			failed++
		}
	}
	require.Equal(t, 3, failed)
}

// Attempts that fail in a row have a line less and less often.
func TestLogOfAttempts(t *testing.T) {
	const key = "e/1"
	refused := fmt.Errorf("away: %w", context.DeadlineExceeded)
	for name, report := range map[string]func(told hooks.Set, attempt int){
		"session": func(told hooks.Set, attempt int) {
			told.Session.Retrying(lease.RetryingEvent{Op: "do", Attempt: attempt, Err: refused, Pause: time.Second})
		},
		"candidate": func(told hooks.Set, attempt int) {
			told.Candidate.Retrying(election.RetryingEvent{Op: "do", Attempt: attempt, Err: refused, Pause: time.Second, Key: key})
		},
		"observer": func(told hooks.Set, attempt int) {
			told.Observer.Retrying(observe.RetryingEvent{Op: "do", Attempt: attempt, Err: refused, Pause: time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p paper
			told := hooks.Log(logger(&p), "e")
			for i := range 100 {
				report(told, i+1)
			}
			var attempts []float64
			for _, line := range p.lines(t) {
				require.Equal(t, "WARN", line["level"])
				require.Equal(t, "etcd request failed, retrying", line["msg"])
				require.Equal(t, "e", line["election"])
				require.Equal(t, "do", line["op"])
				require.Equal(t, "no_answer", line["reason"])
				require.Equal(t, refused.Error(), line["error"])
				require.Equal(t, float64(time.Second), line["pause"])
				require.Equal(t, name == "candidate", line["key"] == key)
				attempts = append(attempts, line["attempt"].(float64))
			}
			require.Equal(t, []float64{1, 2, 4, 8, 16, 32, 64}, attempts)
		})
	}
}

// A logger that hangs loses lines, not leadership: renewals continue, and dropped calls are
// counted.
func TestLoggerThatHangsCostsNoLeadership(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	release := make(chan struct{})
	told := hooks.Log(slog.New(slog.NewTextHandler(hung(release), nil)), t.Name())
	renewed := make(chan time.Duration, 1000)
	session, err := lease.Open(ctx, lease.Config{Lease: counting{cli, renewed}, Majority: cli, Options: lease.Options{TTL: ttl, Hooks: told.Session}})
	require.NoError(t, err)
	candidate, err := election.New(election.Config{Election: t.Name(), Session: session, KV: cli, Watcher: cli, Options: election.Options{Hooks: told.Candidate}})
	require.NoError(t, err)
	l, err := candidate.Campaign(ctx)
	require.NoError(t, err)
	for range 6 { // more than one TTL
		select {
		case <-renewed:
		case <-ctx.Done():
			require.FailNow(t, "no renewal")
		}
	}
	require.NoError(t, l.Err())
	close(release)
	require.NoError(t, candidate.Close(ctx))
	require.NoError(t, session.Close(ctx))
}

// hung is a writer that blocks until it is closed.
type hung chan struct{}

func (h hung) Write(data []byte) (int, error) {
	<-h
	return len(data), nil
}

// counting reports each renewal.
type counting struct {
	clientv3.Lease
	renewed chan<- time.Duration
}

func (c counting) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	resp, err := c.Lease.KeepAliveOnce(ctx, id)
	if err == nil {
		c.renewed <- time.Duration(resp.TTL) * time.Second
	}
	return resp, err
}
