package bench

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// testHost starts a host on the shared etcd.
func testHost(t *testing.T, process bool) host {
	h, err := newHost(siteOf(etcdtest.Shared(t)), process)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.close()) })
	return h
}

// candidateOn makes a candidate with a session of its own.
func candidateOn(t *testing.T, h host, name, election string) (made, *candidate) {
	s, err := h.open(testContext(t), name, time.Minute)
	require.NoError(t, err)
	c, err := s.candidate(testContext(t), election)
	require.NoError(t, err)
	return s, c
}

// For each contender a worker does the same as a host in this process: tenures, their ends, guarded
// writes, and observers that see both leaders.
func TestHostsOfEveryContender(t *testing.T) {
	t.Parallel()
	for where, h := range map[string]host{"local": testHost(t, false), "worker": testHost(t, true)} {
		for _, name := range contender.Names() {
			t.Run(where+"/"+name, func(t *testing.T) {
				ctx, client := testContext(t), etcdtest.Shared(t).Client(t)
				election := "hosts-" + where + "-" + name
				first, leader := candidateOn(t, h, name, election)
				won, err := leader.campaign(ctx)
				require.NoError(t, err)
				require.WithinDuration(t, time.Now(), won, testTime)
				require.NoError(t, leader.put(ctx, election+"-note"))
				for _, key := range []string{leader.key, election + "-note"} {
					got, err := client.Get(ctx, key)
					require.NoError(t, err)
					require.Len(t, got.Kvs, 1, key)
					require.NotZero(t, got.Kvs[0].Lease, "it goes with the session")
				}
				seen, err := h.observe(ctx, name, election, 20, 5)
				if name == "floor" {
					require.ErrorIs(t, err, errors.ErrUnsupported)
				} else {
					require.NoError(t, err)
					_, _, err = seen.await(ctx, leader.key)
					require.NoError(t, err)
				}

				second, next := candidateOn(t, h, name, election)
				succeeded := start(ctx, next.campaign)
				awaitQueued(t, election, 2)
				begun := time.Now()
				require.NoError(t, leader.resign(ctx))
				require.NoError(t, (<-succeeded).err)
				if name != "floor" {
					require.ErrorContains(t, leader.put(ctx, election+"-note"), contender.ErrRefused.Error(), "the tenure is over")
				}
				if leader.notifies {
					_, err := leader.lost(ctx)
					require.NoError(t, err)
				}
				if name != "floor" {
					first, last, err := seen.await(ctx, next.key)
					require.NoError(t, err)
					require.False(t, first.Before(begun.Add(-time.Millisecond)))
					require.False(t, last.Before(first))
					require.NoError(t, seen.Close(ctx))
				}
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
				awaitQueued(t, election, 0)
			})
		}
		ctx := testContext(t)
		before, err := wires(ctx, h)
		require.NoError(t, err)
		require.NoError(t, h.rotate(ctx, 2))
		after, err := wires(ctx, h)
		require.NoError(t, err)
		require.Equal(t, int64(2), after.minus(before)[reads])
		require.Positive(t, after[writes])
		require.Positive(t, after[watches])
	}
}

// The end of the caller's context ends the campaign on the host, which removes its key.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for where, h := range map[string]host{"local": testHost(t, false), "worker": testHost(t, true)} {
		ctx, election, enough := testContext(t), "canceled-"+where, errors.New("enough")
		first, leader := candidateOn(t, h, "eldest", election)
		_, err := leader.campaign(ctx)
		require.NoError(t, err)
		second, waiter := candidateOn(t, h, "eldest", election)
		short, cancel := context.WithCancelCause(ctx)
		lost := start(short, waiter.campaign)
		awaitQueued(t, election, 2)
		cancel(enough)
		require.ErrorIs(t, (<-lost).err, enough)
		awaitQueued(t, election, 1)
		require.NoError(t, second.Close(ctx))
		require.NoError(t, first.Close(ctx))
	}
}

// Calls in progress in a worker fail at once when it is killed or closed, and so do all later ones. One that is closed,
// which is the end of its input, removes its keys from etcd.
func TestWorkerThatEnds(t *testing.T) {
	t.Parallel()
	for election, end := range map[string]func(host) error{
		"killed": func(h host) error { return errors.Join(h.kill(), h.kill()) }, "closed": func(h host) error { return h.close() },
	} {
		h, ctx := testHost(t, true), testContext(t)
		_, leader := candidateOn(t, h, "concurrency", election)
		_, err := leader.campaign(ctx)
		require.NoError(t, err)
		_, waiter := candidateOn(t, h, "concurrency", election)
		waiting := start(ctx, waiter.campaign)
		awaitQueued(t, election, 2)
		require.NoError(t, end(h))
		require.ErrorIs(t, (<-waiting).err, errWorkerEnded)
		require.ErrorIs(t, leader.resign(ctx), errWorkerEnded)
		require.Equal(t, errWorkerEnded, h.ended(), "it has not failed")
		if election == "closed" {
			awaitQueued(t, election, 0)
		}
	}
}

// If a worker ended by itself, the errors of calls to it contain the reason.
func TestWorkerThatFails(t *testing.T) {
	t.Parallel()
	h, err := newHost(siteAt([]string{"fail"}), true)
	require.NoError(t, err)
	for range 2 {
		_, err = wires(testContext(t), h)
		require.ErrorIs(t, err, errWorkerEnded)
		require.ErrorContains(t, err, "exit code 3: as it was told")
	}
	require.ErrorContains(t, h.ended(), "exit code 3")
	require.NoError(t, h.close())
	_, err = newHost(Site{Worker: func() *exec.Cmd { return exec.Command("/no/such/program") }}, true)
	require.Error(t, err)
}

// A worker returns an error for an invalid call and continues; input that is not from a run ends
// it.
func TestWorkerRefuses(t *testing.T) {
	t.Parallel()
	h, ctx := testHost(t, true), testContext(t)
	_, err := h.open(ctx, "nobody", time.Minute)
	require.ErrorContains(t, err, `no contender "nobody"`)
	_, err = h.do(ctx, call{Do: "sing"})
	require.Error(t, err)
	_, err = h.do(ctx, call{Do: "resign", Of: 77})
	require.ErrorContains(t, err, "77")
	_, err = wires(ctx, h)
	require.NoError(t, err)

	site := siteOf(etcdtest.Shared(t))
	require.Error(t, Work(ctx, site, strings.NewReader(strings.Repeat("nonsense\n", 100_000)), io.Discard))
	over, cancel := context.WithCancel(ctx)
	cancel()
	in, calls := io.Pipe()
	require.ErrorIs(t, Work(over, site, in, io.Discard), context.Canceled)
	require.NoError(t, calls.Close())
}

// script is a sight whose observers see what the test sends.
type script struct {
	feeds chan chan string
	err   error
}

func (s script) Feed(context.Context) (contender.Feed, error) {
	if s.err != nil {
		return nil, s.err
	}
	return scriptFeed(<-s.feeds), nil
}

func (s script) Close(context.Context) {}

type scriptFeed <-chan string

func (f scriptFeed) Next(ctx context.Context) (contender.Leader, error) {
	select {
	case key, ok := <-f:
		if !ok {
			return contender.Leader{}, errors.New("broken off")
		}
		return contender.Leader{Key: key}, nil
	case <-ctx.Done():
		return contender.Leader{}, context.Cause(ctx)
	}
}

// await waits for the last observer: an observer that has not seen the key delays it, one that sees
// the key twice counts once, and one that fails ends it.
func TestObserversWaitForTheLast(t *testing.T) {
	ctx := testContext(t)
	a, b, feeds := make(chan string, 3), make(chan string, 3), make(chan chan string, 2)
	a <- "A"
	b <- "A"
	feeds <- a
	feeds <- b
	o, err := observeSight(ctx, script{feeds: feeds}, 2, 0)
	require.NoError(t, err)
	defer o.close(ctx)
	_, _, err = o.await(ctx, "A")
	require.NoError(t, err)

	a <- "B"
	a <- ""
	a <- "B"
	require.Eventually(t, func() bool { return len(a) == 0 }, testTime, time.Millisecond, "the first one is noted by then")
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, _, err = o.await(short, "B")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1 of 2")
	b <- "B"
	_, _, err = o.await(ctx, "B")
	require.NoError(t, err)

	close(b)
	_, _, err = o.await(ctx, "C")
	require.ErrorContains(t, err, "broken off")

	broken := errors.New("broken")
	_, err = observeSight(ctx, script{err: broken}, 3, 0)
	require.ErrorIs(t, err, broken, "one that cannot begin fails all")
}

// The call spin keeps a worker's processor busy. It has more time where other processes have the processors.
func TestSpin(t *testing.T) {
	var used time.Duration
	for limit := 300 * time.Millisecond; used < 150*time.Millisecond; limit *= 2 {
		require.Less(t, limit, 30*time.Second, "the processor time is %v", used)
		h := testHost(t, true)
		ctx, cancel := context.WithTimeout(testContext(t), limit)
		h.spin(ctx)
		cancel()
		require.NoError(t, h.kill())
		used = h.place.(*worker).cmd.ProcessState.UserTime()
	}
}
