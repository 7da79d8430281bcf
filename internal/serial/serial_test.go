package serial_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/serial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInOrderOneAtATime(t *testing.T) {
	var q serial.Queue
	q.Do(nil)
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, q.Wait(dead), "there was nothing to wait for")
	var got []int // unguarded: the race detector reports two callbacks at a time
	for i := range 1000 {
		q.Do(func() { got = append(got, i) })
	}
	require.NoError(t, q.Wait(t.Context()))
	require.Len(t, got, 1000)
	for i, v := range got {
		require.Equal(t, i, v)
	}
	require.Zero(t, q.Dropped())
}

// TestDoNeverBlocks: Do does not block behind a callback that blocks, nor in a callback.
func TestDoNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q serial.Queue
		release := make(chan struct{})
		var order []string
		q.Do(func() { <-release; order = append(order, "first") })
		q.Do(func() {
			q.Do(func() { order = append(order, "third") })
			order = append(order, "second")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, q.Wait(ctx), context.DeadlineExceeded)
		close(release)
		require.NoError(t, q.Wait(t.Context()))
		require.Equal(t, []string{"first", "second", "third"}, order)
	})
}

// TestWaitInACallback: Wait in a callback does not deadlock, but ends with its context.
func TestWaitInACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q serial.Queue
		got := make(chan error, 1)
		q.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			got <- q.Wait(ctx)
		})
		require.ErrorIs(t, <-got, context.DeadlineExceeded)
		require.NoError(t, q.Wait(t.Context()))
	})
}

// TestDropsWhatIsTooMuch: behind a callback that blocks, memory is bounded. The oldest callbacks
// are kept, and the dropped ones are counted.
func TestDropsWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q serial.Queue
		release := make(chan struct{})
		q.Do(func() { <-release })
		synctest.Wait() // it runs, and does not count as waiting
		var got []int
		for i := range serial.Limit + 5 {
			q.Do(func() { got = append(got, i) })
		}
		require.Equal(t, 5, q.Dropped())
		close(release)
		require.NoError(t, q.Wait(t.Context()))
		require.Len(t, got, serial.Limit)
		require.Equal(t, serial.Limit-1, got[len(got)-1])
		q.Do(func() { got = append(got, -1) })
		require.NoError(t, q.Wait(t.Context()))
		require.Equal(t, -1, got[len(got)-1], "the queue is of use afterwards")
	})
}

func TestQueueConcurrentSafe(t *testing.T) {
	var q serial.Queue
	var all sync.WaitGroup
	ran := make([]int, 16) // each element is written by callbacks only
	for g := range 16 {
		all.Go(func() {
			for i := range 50 {
				q.Do(func() {
					if ran[g] != i {
						t.Errorf("goroutine %d: %d ran after %d others", g, i, ran[g])
					}
					ran[g]++
				})
				if i%10 == 0 {
					if err := q.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				}
				q.Dropped()
			}
		})
	}
	all.Wait()
	require.NoError(t, q.Wait(t.Context()))
	for _, n := range ran {
		require.Equal(t, 50, n)
	}
}

// A callback that ends its goroutine, as a failed check in a test does, does not end the queue.
//
// Fails if the others wait for a goroutine that has ended.
func TestCallbackThatEndsItsGoroutine(t *testing.T) {
	var q serial.Queue
	ran := make(chan struct{})
	q.Do(runtime.Goexit)
	q.Do(func() { close(ran) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, q.Wait(ctx))
	select {
	case <-ran:
	default:
		t.Fatal("the next callback was not called")
	}
}
