//go:build linux

package main

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// refusing is a lease that is not renewed while it is told so, as in an outage.
type refusing struct {
	clientv3.Lease
	on atomic.Bool
}

func (l *refusing) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if l.on.Load() {
		return nil, context.DeadlineExceeded
	}
	return l.Lease.KeepAliveOnce(ctx, id)
}

// outage has a round stand behind a leader, lets its renewals fail, and then has it win. The
// round adopts orphans and kills them: the test is alone.
func outage(t *testing.T, more func(*runOptions)) (e *etcd, out *clitest.Sheet, renewals *refusing, result chan outcome) {
	t.Helper()
	e = borrowed(t)
	first, _ := e.leading("svc")
	cmd := newRunCmd()
	cmd.SetContext(t.Context())
	conn := &connect.Flags{DialTimeout: time.Second, CommandTimeout: patience}
	o := runOptions{
		standFlags: &standFlags{conn: conn, ttl: 12 * time.Second}, name: "svc", grace: 6 * time.Second, restart: restartNever,
		hookTimeout: time.Minute, healthEvery: time.Second,
	}
	more(&o)
	r := newRunner(cmd, o)
	out, renewals = &clitest.Sheet{}, &refusing{Lease: e.client.Lease}
	r.events = newRunEvents(out, true, "eldest run", "svc", conn.Why)
	t.Cleanup(func() { r.events.Close(patience) })
	ctx, signals, stop := listenSignals(t.Context())
	t.Cleanup(stop)
	// The client is the test's as well: what it must not do is done by another one.
	client := clientv3.NewCtxClient(e.client.Ctx())
	client.KV, client.Watcher, client.Cluster, client.Lease = e.client.KV, e.client.Watcher, e.client.Cluster, renewals
	r.client, r.signals = client, signals
	result = make(chan outcome, 1)
	go func() { result <- r.round(ctx) }()
	told(t, out, "waiting")
	renewals.on.Store(true)
	told(t, out, "jeopardy")
	first.Signal(syscall.SIGTERM)
	told(t, out, "leader")
	return e, out, renewals, result
}

// told waits for an event and returns it.
func told(t *testing.T, out *clitest.Sheet, event string) (found object) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, o := range objects(t, out.String()) {
			if o["event"] == event {
				found = o
				return true
			}
		}
		return false
	}, 2*patience, 2*time.Millisecond, "no event %s in %s", event, out)
	return found
}

// A tenure that is won with what an outage has left of the lease starts nothing that would
// have to end at once: it renews first.
//
// Fails when the program is started whatever time is left.
func TestRunRenewsFirstAfterAnOutage(t *testing.T) {
	if !alone(t) {
		return
	}
	diary := newDiary(t)
	etcd, out, renewals, result := outage(t, func(o *runOptions) {
		o.path, o.program = "/usr/bin/env", append(diary.program("A"), stubborn)
		o.onWin, o.health = logTo(diary.path+"-won", "won"), "true"
	})
	told(t, out, "delayed")
	require.NotContains(t, out.String(), `"started"`)
	require.NoFileExists(t, diary.path+"-won", "--on-win was not to run, either")
	renewals.on.Store(false)
	pid := int(told(t, out, "started")["pid"].(float64))
	text := out.String()
	require.Less(t, strings.Index(text, `"delayed"`), strings.Index(text, `"hook"`))
	require.FileExists(t, diary.path+"-won")
	diary.lives("A")
	require.NoError(t, handle(t, pid).Kill())
	require.NoError(t, roundOver(t, result).err)
	require.False(t, diary.told("A", syscall.SIGTERM))
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// roundOver waits for the end of a round.
func roundOver(t *testing.T, result <-chan outcome) outcome {
	t.Helper()
	end, ok := clitest.Awaited(result)
	require.True(t, ok, "the round does not end")
	return end
}

// Who waits for a renewal hears of a loss all the same.
func TestRunHearsOfALossWhileItRenewsFirst(t *testing.T) {
	if !alone(t) {
		return
	}
	ran := t.TempDir() + "/ran"
	etcd, out, _, result := outage(t, func(o *runOptions) {
		o.path, o.program = "/bin/sh", []string{"sh", "-c", "echo ran > " + ran}
	})
	led := told(t, out, "leader")
	told(t, out, "delayed")
	etcd.delete(led["key"].(string))
	require.True(t, lost(roundOver(t, result).err))
	told(t, out, "lost")
	require.NoFileExists(t, ran)
	newDiary(t).nobody("svc")
}

// A keeper that slept past the deadline that it knew, and finds the program's start in its
// orders, does not start it; eldest, whose lease is well, has it started then.
func TestRunStartsOnceTheKeeperHasHeardOfTheDeadline(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	r := etcd.run("svc", "--ttl", "4s", "--", "sh", "-c", "echo ran")
	keeper := stoppedKeeper(t, r)
	resigns(leader)
	r.event("leader")
	time.Sleep(4200 * time.Millisecond) // longer than any deadline that was known at the win
	require.NoError(t, keeper.Signal(syscall.SIGCONT))
	require.Equal(t, "ran\n", r.Line())
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	newDiary(t).nobody("svc")
}
