package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// testTime bounds what a test waits for.
const testTime = 2 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

// testWorker starts one, in a process of its own.
func testWorker(t *testing.T) *remote {
	h, err := spawn(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// stand has a new candidate campaign on a host.
func stand(t *testing.T, h Host, name, election string, ttl time.Duration) (Session, Candidate, <-chan outcome) {
	s, err := h.Open(testContext(t), name, ttl)
	require.NoError(t, err)
	c, err := s.Candidate(election, "v")
	require.NoError(t, err)
	return s, c, campaign(testContext(t), c)
}

// stands waits until so many candidates stand.
func stands(t *testing.T, election string, n int64) {
	t.Helper()
	cli := etcdtest.Shared(t).Client(t)
	require.Eventually(t, func() bool {
		got, err := cli.Get(t.Context(), election+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && got.Count == n
	}, testTime, time.Millisecond)
}

// A worker does for each contender what a host in this process does.
func TestWorkerHostsEveryContender(t *testing.T) {
	h := testWorker(t)
	ctx := testContext(t)
	cli := etcdtest.Shared(t).Client(t)
	for _, name := range contender.Names() {
		t.Run(name, func(t *testing.T) {
			election := "worker-" + name
			first, leader, won := stand(t, h, name, election, time.Minute)
			before := time.Now()
			o := <-won
			require.NoError(t, o.err)
			require.WithinDuration(t, before, o.at, testTime)
			got, err := cli.Get(ctx, leader.Key(), clientv3.WithCountOnly())
			require.NoError(t, err)
			require.Equal(t, int64(1), got.Count, "the key is %q", leader.Key())
			require.NoError(t, leader.Put(ctx, election+"-note", "x"))
			got, err = cli.Get(ctx, election+"-note")
			require.NoError(t, err)
			require.NotZero(t, got.Kvs[0].Lease, "it goes with the session")

			second, _, next := stand(t, h, name, election, time.Minute)
			lost := leader.Lost()
			require.NoError(t, leader.Resign(ctx))
			o = <-next
			require.NoError(t, o.err)
			require.NoError(t, first.Close(ctx))
			require.NoError(t, second.Close(ctx))
			got, err = cli.Get(ctx, election, clientv3.WithPrefix(), clientv3.WithCountOnly())
			require.NoError(t, err)
			require.Zero(t, got.Count)
			if lost != nil {
				select {
				case <-lost:
				case <-ctx.Done():
					require.Fail(t, "the loss was not told")
				}
			}
		})
	}
	before, err := h.Wire(ctx)
	require.NoError(t, err)
	require.NoError(t, h.Shift(ctx, 2))
	w, err := h.Wire(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2), w.Minus(before).Reads)
	require.Positive(t, w.Writes)
	require.Positive(t, w.Watches)
}

// The end of the caller's context ends the campaign in the worker, which takes its key
// back.
func TestWorkerCallsEndWithTheirContext(t *testing.T) {
	h := testWorker(t)
	ctx := testContext(t)
	const election = "worker-canceled"
	first, _, won := stand(t, h, "eldest", election, time.Minute)
	require.NoError(t, (<-won).err)
	s, err := h.Open(ctx, "eldest", time.Minute)
	require.NoError(t, err)
	c, err := s.Candidate(election, "")
	require.NoError(t, err)
	short, cancel := context.WithCancelCause(ctx)
	lost := campaign(short, c)
	stands(t, election, 2)
	enough := errors.New("enough")
	cancel(enough)
	require.ErrorIs(t, (<-lost).err, enough)
	stands(t, election, 1)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, first.Close(ctx))
}

// What is under way in a worker when it is killed fails at once, and so does whatever
// comes after.
func TestKilledWorker(t *testing.T) {
	h := testWorker(t)
	ctx := testContext(t)
	election := fmt.Sprintf("worker-killed-%x", rand.Uint64()) // its keys outlive the worker
	_, _, won := stand(t, h, "concurrency", election, time.Minute)
	require.NoError(t, (<-won).err)
	_, waiter, next := stand(t, h, "concurrency", election, time.Minute)
	require.NoError(t, h.Kill())
	require.NoError(t, h.Kill())
	require.ErrorIs(t, (<-next).err, errWorkerGone)
	require.ErrorIs(t, waiter.Resign(ctx), errWorkerGone)
	_, err := h.Wire(ctx)
	require.ErrorIs(t, err, errWorkerGone)
}

// The end of its input ends a worker, and what it was left with is taken out of etcd.
func TestWorkerEndsWithItsInput(t *testing.T) {
	ctx := testContext(t)
	cluster := etcdtest.Shared(t)
	cli := cluster.Client(t)
	calls, in := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Work(ctx, siteAt(cluster.Endpoints()), calls, answers)
		_ = answers.Close()
	}()
	site := Site{Spawn: func(context.Context) (*Spawned, error) {
		return &Spawned{In: in, Out: out, Kill: in.Close}, nil
	}}
	h, err := spawn(ctx, site)
	require.NoError(t, err)
	_, leader, won := stand(t, h, "herd", "worker-input", time.Minute)
	require.NoError(t, (<-won).err)
	_, _, waiting := stand(t, h, "herd", "worker-input", time.Minute)
	stands(t, "worker-input", 2)
	require.NoError(t, h.Close())
	require.NoError(t, <-ended)
	require.ErrorIs(t, (<-waiting).err, errWorkerGone)
	got, err := cli.Get(ctx, leader.Key(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.Zero(t, got.Count)
}

// Why a worker ended by itself is in the errors of what was asked of it.
func TestWorkerThatFails(t *testing.T) {
	in, calls := io.Pipe()
	answers, out := io.Pipe()
	reason := errors.New("exit code 3")
	h, err := spawn(testContext(t), Site{Spawn: func(context.Context) (*Spawned, error) {
		return &Spawned{In: calls, Out: answers, Kill: in.Close}, nil
	}})
	require.NoError(t, err)
	go func() {
		_, _ = in.Read(make([]byte, 1))
		_ = in.Close()
		_ = out.CloseWithError(reason)
	}()
	require.Eventually(t, func() bool {
		_, err = h.Wire(testContext(t))
		return errors.Is(err, reason)
	}, testTime, time.Millisecond)
	require.ErrorIs(t, err, errWorkerGone)
	require.NoError(t, h.Close())
}

// A worker says what is wrong with a call, and goes on; with its input it does not.
func TestWorkerRefuses(t *testing.T) {
	h := testWorker(t)
	ctx := testContext(t)
	_, err := h.Open(ctx, "nobody", time.Minute)
	require.ErrorContains(t, err, `no contender "nobody"`)
	_, err = h.call(ctx, "Sing", workCall{})
	require.Error(t, err)
	_, err = h.call(ctx, "Resign", workCall{Of: 77})
	require.ErrorContains(t, err, "77")
	_, err = h.Observe(ctx, "floor", "worker-floor", CrowdSize{Observers: 1})
	require.ErrorIs(t, err, errors.ErrUnsupported, "that much of an error survives")
	_, err = h.Wire(ctx)
	require.NoError(t, err)

	site := siteAt(etcdtest.Shared(t).Endpoints())
	require.Error(t, Work(ctx, site, strings.NewReader("{}\nnonsense\n"), io.Discard))
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, Work(over, site, strings.NewReader(""), io.Discard), context.Canceled)
}
