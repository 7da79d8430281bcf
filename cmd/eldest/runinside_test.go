//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// While a program may run, no request is sent that lets another candidate lead; a request that is
// given up meanwhile is never sent.
func TestRunGate(t *testing.T) {
	g, requests := new(hold), make(chan string, 10)
	ours, _ := keys.RequestRange("svc")
	client := borrowed(t).Client(t, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(g.intercept(ours),
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				requests <- path.Base(method)
				return invoke(ctx, method, req, reply, cc, opts...)
			}))
	})
	commit := func(ops ...clientv3.Op) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.Txn(ctx).Then(ops...).Else(clientv3.OpGet("svc/1")).Commit()
			return err
		}
	}
	put, remove := clientv3.OpPut(keys.Request("svc", 1), ""), clientv3.OpDelete("svc/1")
	for what, send := range map[string]func(context.Context) error{
		"LeaseRevoke": func(ctx context.Context) error {
			_, err := client.Revoke(ctx, 1)
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				return nil
			}
			return err
		},
		"Txn":           commit(),
		"Txn to remove": commit(put, remove),
		"Txn in a Txn":  commit(put, clientv3.OpTxn(nil, []clientv3.Op{remove}, nil)),
	} {
		what, _, _ := strings.Cut(what, " ")
		require.NoError(t, send(t.Context()))
		require.Equal(t, what, <-requests)

		g.Set(true)
		g.Set(true)
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, send(short), context.DeadlineExceeded)
		cancel()
		require.Empty(t, requests)

		sent := make(chan error)
		go func() { sent <- send(t.Context()) }()
		g.Set(false)
		require.NoError(t, <-sent)
		require.Equal(t, what, <-requests)
	}

	// A request key lets no candidate lead.
	g.Set(true)
	for _, ops := range [][]clientv3.Op{{put, clientv3.OpGet("svc/1")}, {clientv3.OpDelete(keys.Request("svc", 1))}} {
		require.NoError(t, commit(ops...)(t.Context()))
		require.Equal(t, "Txn", <-requests)
	}
}

// inside makes a runner for a command line, in this process. It adopts orphans and kills them, so the
// test must run alone.
func inside(ctx context.Context, t *testing.T, e *etcd, args ...string) *runner {
	t.Helper()
	t.Setenv(signsIn, e.path)
	cmd, o := runCommand()
	cmd.SetContext(ctx)
	cmd.SetErr(io.Discard)
	require.NoError(t, cmd.ParseFlags(append([]string{"svc", "--endpoints", e.endpoint, "--command-timeout", patience.String()}, args...)))
	require.NoError(t, o.take(cmd, cmd.Flags().Args()))
	require.NoError(t, o.check(cmd))
	return &runner{cmd: cmd, runOptions: *o}
}

// The gate is shut from the win until nothing of the program runs, and at no other time.
func TestRunShutsTheGateWhileTheProgramMayRun(t *testing.T) {
	if !etcdtest.Alone(t) {
		return
	}
	etcd := borrowed(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := inside(ctx, t, etcd, "--ttl", "30s", "--", "witness", "A")
	shut := func() bool { return r.hold.Shut() != nil }
	require.False(t, shut())
	result := make(chan error)
	go func() { result <- r.run() }()
	etcd.lives("A")
	require.True(t, shut(), "the program runs, and the lease could be given back")
	cancel()
	require.NoError(t, <-result)
	require.False(t, shut())
}

// refusing is a lease whose renewals fail while on is set, as in an outage.
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

// outage makes a round wait behind a leader, makes its renewals fail, and then lets it win. What the
// round does then is started once the lease is renewed.
func outage(t *testing.T, e *etcd, args ...string) (out *clitest.Sheet, renewals *refusing, result chan outcome) {
	t.Helper()
	first, _ := e.campaign("leader", "svc")
	r := inside(t.Context(), t, e, append([]string{"--ttl", "12s", "--grace", "6s"}, args...)...)
	out, renewals = &clitest.Sheet{}, &refusing{Lease: e.client.Lease}
	r.openEvents(out, true, "eldest run")
	t.Cleanup(func() { r.events.Close(patience) })
	ctx, signals, stop := listenSignals(t.Context())
	t.Cleanup(stop)
	// The runner has a client of its own, because the renewals of the test's client must not fail.
	r.client = clientv3.NewCtxClient(e.client.Ctx())
	r.client.KV, r.client.Watcher, r.client.Cluster, r.client.Lease = e.client.KV, e.client.Watcher, e.client.Cluster, renewals
	r.signals, r.status = signals, httpstatus.New("svc", time.Minute)
	result = make(chan outcome, 1)
	go func() { result <- r.round(ctx) }()
	told(t, out, "waiting")
	renewals.on.Store(true)
	told(t, out, "at-risk")
	first.Signal(syscall.SIGTERM)
	told(t, out, "leader")
	told(t, out, "delayed")
	return out, renewals, result
}

// told waits for an event and returns it.
func told(t *testing.T, out *clitest.Sheet, event string) (found object) {
	t.Helper()
	require.Eventually(t, func() bool {
		for line := range strings.Lines(out.String()) {
			if o := parse[object](t, line); o["event"] == event {
				found = o
				return true
			}
		}
		return false
	}, 2*patience, 2*time.Millisecond, "no event %s in %s", event, out)
	return found
}

// A tenure that is won with the rest of a lease after an outage starts nothing that would have to end
// at once: the lease is renewed first.
//
// Fails when the program is started whatever time is left.
func TestRunRenewsFirstAfterAnOutage(t *testing.T) {
	if !etcdtest.Alone(t) {
		return
	}
	etcd, won := borrowed(t), t.TempDir()+"/won"
	out, renewals, result := outage(t, etcd, "--on-win", "touch "+won, "--hook-timeout", "1m", "--health", "true", "--", "witness", "A", stubborn)
	require.NotContains(t, out.String(), `"started"`)
	require.NoFileExists(t, won, "--on-win was not to run, either")
	renewals.on.Store(false)
	pid := int(told(t, out, "started")["pid"].(float64))
	text := out.String()
	require.Less(t, strings.Index(text, `"delayed"`), strings.Index(text, `"hook"`))
	require.FileExists(t, won)
	etcd.lives("A")
	require.NoError(t, handle(t, pid).Kill())
	end, ok := clitest.Awaited(result)
	require.True(t, ok, "the round does not end")
	require.NoError(t, end.err)
	require.False(t, etcd.told("A", syscall.SIGTERM))
	require.Empty(t, etcd.keys())
}

// The keeper kills --on-win at its deadline, and eldest, which was stopped meanwhile, finds the result and
// the end of the job at once. The result counts: the program has not run, so this is no success.
//
// Fails if select chooses between the two.
func TestRunHasTheResultOfAKilledHook(t *testing.T) {
	if !etcdtest.Alone(t) {
		return
	}
	spec := job.Spec{Hooks: map[string]job.Command{onWin: job.Shell("sleep 1000", time.Hour)}, Env: os.Environ()}
	j, err := job.Start([]string{"eldest", keeperCommand, "--", "svc"}, spec, nil, nil, nil)
	require.NoError(t, err)
	defer j.Close()
	result := j.Run(onWin)
	o := &tenure{round: &round{runner: &runner{signals: &runSignals{}}}, job: j}
	for range 50 { // nor does it choose between an answer and the end of the patience
		late, answer := make(chan time.Time, 1), make(chan error, 1)
		late <- time.Now()
		answer <- nil
		o.late = late
		_, ok := await(t.Context(), o, answer)
		require.True(t, ok, "the answer is dropped")
	}
	o.late = nil
	j.SetDeadline(job.Deadline{Term: job.Now(), Kill: job.Now()})
	_, ok := clitest.Awaited(j.Over())
	require.True(t, ok)
	end := <-result
	require.Error(t, end.Failure())
	for range 50 {
		again := make(chan job.HookResult, 1)
		again <- end
		_, ok := await(t.Context(), o, again)
		require.True(t, ok, "the result is dropped")
	}
	_, ok = await[struct{}](t.Context(), o, nil)
	require.False(t, ok)
}

// A run that waits for a renewal is still notified of a loss.
func TestRunLearnsOfALossWhileItRenewsFirst(t *testing.T) {
	if !etcdtest.Alone(t) {
		return
	}
	etcd, ran := borrowed(t), t.TempDir()+"/ran"
	out, _, result := outage(t, etcd, "--", "touch", ran)
	etcd.delete(told(t, out, "leader")["key"].(string))
	end, ok := clitest.Awaited(result)
	require.True(t, ok, "the round does not end")
	require.True(t, lost(end.err))
	told(t, out, "lost")
	require.NoFileExists(t, ran)
}

// Regression 36: the program hangs while network and eldest work. With heartbeats, too, the run then
// loses its leadership and is not only suspended: another run may do better.
//
// Fails when renewals do not depend on the program's health, and when the run goes on leading.
func TestRunRegression36StuckProgram(t *testing.T) {
	t.Parallel()
	eachTerm(t, func(t *testing.T, etcd *etcd, flags []string) {
		dir := t.TempDir()
		well, checked := filepath.Join(dir, "well"), filepath.Join(dir, "checked")
		require.NoError(t, os.WriteFile(well, nil, 0o600))
		check := "test -e " + well + " && kill -0 $ELDEST_PID && test -n $ELDEST_TOKEN && touch " + checked
		a := etcd.run(append(flags, "--health", check, "--health-every", "1s", "--", "witness", "A", stubborn, parent)...)
		won := a.Told("leader")
		b := etcd.run(append(flags, "--restart", "never", "--", "witness", "B")...)
		b.Told("waiting")
		etcd.lives("A-away")
		a.Eventually(func() bool {
			_, err := os.Stat(checked)
			return err == nil
		}, "INVALID: it was never well")
		require.NotContains(t, a.Errors(), `"lost"`)

		require.NoError(t, os.Remove(well))
		require.NotEmpty(t, a.Told("unhealthy")["cause"])
		next := b.Told("leader")
		require.Greater(t, next["token"], won["token"])
		etcd.inTurn("A", "B", timeOf(t, next))
		require.NotContains(t, a.Errors(), `"resumed"`)
		if !slices.Contains(flags, "--restart") {
			a.Exits(cli.ExitLost)
		}
		require.Contains(t, a.Errors(), "the application was unresponsive")
		require.True(t, etcd.told("A", syscall.SIGTERM))
	})
}

// A program that is well leads on, longer than it would take to lose the lease. While another run waits
// there is nobody that it could ask for health.
func TestRunLeadsOnWhileItsProgramIsWell(t *testing.T) {
	t.Parallel()
	eachTerm(t, func(t *testing.T, etcd *etcd, flags []string) {
		a := etcd.run(append(flags, "--health", "kill -0 $ELDEST_PID && test -n $ELDEST_TOKEN", "--health-every", "1s", "--", "witness", "A", stubborn, parent)...)
		a.Told("leader")
		b := etcd.run(append(flags, "--restart", "never", "--health", "false", "--health-every", "1s", "--", "witness", "B")...)
		b.Told("waiting")
		etcd.livesFor("A-away", 12*time.Second)
		require.NotContains(t, a.Errors(), `"lost"`)
		for line := range strings.Lines(a.Errors()) {
			if o := parse[object](t, line); o["event"] == "unhealthy" { // on a busy machine a check may take too long; none fails
				require.Contains(t, o["cause"], "too long")
			}
		}
		require.NotContains(t, b.Errors(), "unhealthy")
	})
}

// A check of health that hangs is no success, and is killed.
func TestRunTakesAHangingCheckForAFailure(t *testing.T) {
	t.Parallel()
	eachTerm(t, func(t *testing.T, etcd *etcd, flags []string) {
		r := etcd.run(append(flags, "--restart", "never", "--health", "sleep 1000", "--health-every", "1s", "--", "witness", "A")...)
		require.Contains(t, r.Told("unhealthy")["cause"], "too long")
		r.Exits(cli.ExitLost)
	})
}

// eachTerm runs a test with a lease, and with heartbeats; flags are those of a run, and its election. Both are
// long enough for a busy machine.
func eachTerm(t *testing.T, test func(t *testing.T, etcd *etcd, flags []string)) {
	t.Helper()
	for name, flags := range map[string]string{"lease": "svc --ttl 10s --grace 1s", "heartbeats": "svc --ttl 1h --heartbeat 8s --restart on-failure"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, borrowed(t), slices.Clip(strings.Fields(flags)))
		})
	}
}
