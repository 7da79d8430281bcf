//go:build linux

package keeper_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// leader is a process of TestMain that leads.
type leader struct {
	*exec.Cmd
	token  eldest.Token
	lease  clientv3.LeaseID
	keeper int // its process ID
}

// lead starts a process that leads an election.
func lead(t *testing.T, etcd, name string, env ...string) *leader {
	t.Helper()
	l := &leader{Cmd: exec.Command("/proc/self/exe")}
	l.Env = append(append(os.Environ(), endpoints+"="+etcd, inElection+"="+name), env...)
	l.Stderr = os.Stderr
	in, err := l.StdinPipe()
	require.NoError(t, err)
	out, err := l.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, l.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = l.Process.Kill()
		_ = l.Wait()
		if l.keeper > 0 {
			ended(t, l.keeper) // while etcd runs
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, line)
	_, err = fmt.Sscanf(line, "leads %d %x %d", &l.token, &l.lease, &l.keeper)
	require.NoError(t, err, line)
	return l
}

// lives reports whether a lease exists.
func lives(t *testing.T, cli *clientv3.Client, id clientv3.LeaseID) bool {
	t.Helper()
	answer, err := cli.TimeToLive(etcdtest.Context(t), id)
	require.NoError(t, err)
	return answer.TTL > 0
}

func gone(t *testing.T, cli *clientv3.Client, id clientv3.LeaseID) {
	t.Helper()
	require.Eventually(t, func() bool { return !lives(t, cli, id) }, etcdtest.Patience, 5*time.Millisecond, "the lease of a dead process")
}

// ended waits until a process that is not a child of this one has ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, etcdtest.Patience, 5*time.Millisecond, "the keeper goes on")
}

// TestCrash: the process of a leader is killed, and the next candidate leads, long before the lease
// expires.
func TestCrash(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	cli, name := etcd.Client(t), etcdtest.Election(t)
	first := lead(t, strings.Join(etcd.Endpoints(), ","), name)
	ctx := etcdtest.Context(t)
	s, err := lease.Open(ctx, lease.Config{Lease: cli})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	next, err := election.New(election.Config{Election: name, Session: s, KV: cli, Watcher: cli})
	require.NoError(t, err)
	_, err = next.Register(ctx)
	require.NoError(t, err)
	require.NoError(t, first.Process.Kill())
	l, err := next.Await(ctx)
	require.NoError(t, err)
	require.Greater(t, l.Token(), first.token)
	require.False(t, lives(t, cli, first.lease))
	ended(t, first.keeper)
}

// TestAlive: no lease is revoked of a process that is stopped, has become another program, has
// abandoned its session, or whose keeper was killed.
func TestAlive(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	cli, at := etcd.Client(t), strings.Join(etcd.Endpoints(), ",")
	stays := func(t *testing.T, l *leader) {
		t.Helper()
		etcdtest.Never(t, func() bool { return !lives(t, cli, l.lease) }, time.Second, "the lease of a process that lives was revoked")
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		l := lead(t, at, etcdtest.Election(t))
		require.NoError(t, l.Process.Signal(syscall.SIGSTOP))
		stays(t, l)
		require.NoError(t, l.Process.Kill())
		gone(t, cli, l.lease)
	})
	t.Run("another program", func(t *testing.T) {
		t.Parallel()
		l := lead(t, at, etcdtest.Election(t), then+"=becomes another program")
		stays(t, l)
	})
	t.Run("abandoned", func(t *testing.T) {
		t.Parallel()
		l := lead(t, at, etcdtest.Election(t), then+"=abandon")
		require.NoError(t, l.Process.Kill())
		ended(t, l.keeper)
		require.True(t, lives(t, cli, l.lease), "an abandoned lease lives on")
	})
	t.Run("without its keeper", func(t *testing.T) {
		t.Parallel()
		l := lead(t, at, etcdtest.Election(t))
		require.NoError(t, syscall.Kill(l.keeper, syscall.SIGKILL))
		stays(t, l)
	})
}

// TestTwoSessionsOfOneLease: a lease is held until its last session in the process has ended.
//
// Fails if the end of the first session drops it.
func TestTwoSessionsOfOneLease(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	l := lead(t, strings.Join(etcd.Endpoints(), ","), etcdtest.Election(t), then+"=abandon one of two sessions")
	require.NoError(t, l.Process.Kill())
	gone(t, etcd.Client(t), l.lease)
}

// TestSignals: the keeper survives signals that are meant for its process. A child with all files
// of that process does not delay it.
func TestSignals(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	cli := etcd.Client(t)
	l := lead(t, strings.Join(etcd.Endpoints(), ","), etcdtest.Election(t), then+"=has a child with all its files")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, syscall.Kill(l.keeper, s))
	}
	require.NoError(t, l.Process.Kill())
	gone(t, cli, l.lease)
	ended(t, l.keeper)
}

// TestOrder: a process that ends in order leaves no keeper and no lease.
func TestOrder(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	l := lead(t, strings.Join(etcd.Endpoints(), ","), etcdtest.Election(t), then+"=close")
	require.NoError(t, l.Wait())
	ended(t, l.keeper)
	require.False(t, lives(t, etcd.Client(t), l.lease))
}

// TestEtcdAway: a keeper that has no client yet when its process dies continues until it has one.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Shared(t)
	cli := etcd.Client(t)
	file := filepath.Join(t.TempDir(), "now")
	l := lead(t, strings.Join(etcd.Endpoints(), ","), etcdtest.Election(t), dialsAfter+"="+file)
	require.NoError(t, l.Process.Kill())
	_ = l.Wait()
	require.True(t, lives(t, cli, l.lease))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	gone(t, cli, l.lease)
	ended(t, l.keeper)
}

// TestNotServed: Start fails if Serve was not called, because the keeper would be the whole program
// again.
func TestNotServed(t *testing.T) {
	t.Parallel()
	program := exec.Command("/proc/self/exe")
	program.Env = append(os.Environ(), then+"=start without Serve")
	said, err := program.Output()
	require.NoError(t, err)
	require.Equal(t, "true start keeper: invalid input: call keeper.Serve first in main\n", string(said))
}

// TestNoFreeFiles: a process without free descriptors is not a system without pidfd, on which a
// program does without a keeper.
func TestNoFreeFiles(t *testing.T) {
	t.Parallel()
	program := exec.Command("/proc/self/exe")
	program.Env = append(os.Environ(), then+"=start without free files")
	said, err := program.Output()
	require.NoError(t, err)
	require.Equal(t, "true false\n", string(said))
}

// TestDialsNothing: a dial without a client and without an error has failed, and is repeated with
// pauses.
func TestDialsNothing(t *testing.T) {
	t.Parallel()
	program := exec.Command("/proc/self/exe")
	program.Env = append(os.Environ(), then+"=dial nothing")
	said, err := program.Output()
	require.NoError(t, err)
	require.Equal(t, "true\n", string(said))
}

// TestNoContext: without a context no process is started.
func TestNoContext(t *testing.T) {
	t.Parallel()
	var none context.Context
	_, err := keeper.Start(none, nil)
	require.ErrorIs(t, err, eldest.ErrInvalid)
}

// TestTooMuch: the argument for dial is limited, because it goes through a pipe, and into memory.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	_, err := keeper.Start(etcdtest.Context(t), make([]byte, 1<<20+1))
	require.ErrorIs(t, err, eldest.ErrInvalid)
	k, err := keeper.Start(etcdtest.Context(t), make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, k.Close(etcdtest.Context(t)))
	require.NoError(t, k.Err())
}

// TestShared: the keeper must not revoke a lease that other sessions renew as well.
func TestShared(t *testing.T) {
	t.Parallel()
	cfg := lease.Config{Lease: etcdtest.Shared(t).Client(t), Options: lease.Options{Keeper: new(keeper.Keeper), Shared: true}}
	_, err := lease.Open(etcdtest.Context(t), cfg)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	_, err = lease.Resume(etcdtest.Context(t), cfg, 7)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorIs(t, cfg.Check(), eldest.ErrInvalid)
}

// TestSignalsAtOnce: signals do not end the keeper from the moment at which Start has returned.
//
// Fails in some of the rounds when the keeper reports that it is ready before it ignores them.
func TestSignalsAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		k, err := keeper.Start(etcdtest.Context(t), nil)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(k.Pid(), syscall.SIGTERM))
		select {
		case <-k.Done():
		case <-time.After(20 * time.Millisecond):
		}
		require.NoError(t, k.Err())
		require.NoError(t, k.Close(etcdtest.Context(t)))
	}
}
