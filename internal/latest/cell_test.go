package latest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/latest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOver = errors.New("over")

// TestFirstReadThenOnlyNewer: a reader gets the present value first, and then only newer ones. A
// slow reader skips the values that it missed. A wait ends with its context, but a value that is
// there is returned even if the context has ended.
func TestFirstReadThenOnlyNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c latest.Cell[int]
		_, ok := c.Get()
		require.False(t, ok)
		dead, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errOver) })
		_, err := c.Reader().Next(dead)
		require.ErrorIs(t, err, errOver)
		c.Set(0)
		for range 100 {
			v, err := c.Reader().Next(dead)
			require.NoError(t, err)
			require.Zero(t, v, "the zero value is a value")
		}

		c.Set(1)
		c.Set(2)
		r := c.Reader()
		v, err := r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, v)

		time.AfterFunc(time.Second, func() { c.Set(2) }) // equal, and yet newer
		begun := time.Now()
		v, err = r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, v)
		require.Equal(t, time.Second, time.Since(begun))

		for i := range 10_000 {
			c.Set(i)
		}
		v, err = r.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 9_999, v)
		late := c.Reader()
		v, err = late.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 9_999, v)
	})
}

func TestNextWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c latest.Cell[int]
		even := func(v int) bool { return v%2 == 0 }
		r := c.Reader()
		c.Set(1)
		for i := range 4 {
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { c.Set(3 + 2*i + i/3) })
		}
		begun := time.Now()
		v, err := r.NextWhere(t.Context(), even) // 1, 3, 5, 7 are skipped
		require.NoError(t, err)
		require.Equal(t, 10, v)
		require.Equal(t, 4*time.Second, time.Since(begun))

		c.Set(11)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = r.NextWhere(ctx, even)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = r.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "what was skipped has been seen")
		v, err = c.Reader().Next(ctx)
		require.NoError(t, err)
		require.Equal(t, 11, v, "but not by others")
	})
}

// TestFilterMayDoAnything: want runs without a lock.
func TestFilterMayDoAnything(t *testing.T) {
	var c latest.Cell[int]
	c.Set(1)
	r := c.Reader()
	require.Panics(t, func() { _, _ = r.NextWhere(t.Context(), func(int) bool { panic("a bug") }) })
	c.Set(2)
	v, err := r.NextWhere(t.Context(), func(v int) bool {
		if v < 5 {
			c.Set(v + 1)
		}
		return v == 5
	})
	require.NoError(t, err)
	require.Equal(t, 5, v)
}

// TestClose: all readers get the last value, and then always the error of Close.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var empty, c latest.Cell[int]
		empty.Close(errOver)
		_, ok := empty.Get()
		require.False(t, ok)
		_, err := empty.Reader().Next(t.Context())
		require.Equal(t, errOver, err)

		c.Set(1)
		seen, unseen := c.Reader(), c.Reader()
		_, err = seen.Next(t.Context())
		require.NoError(t, err)
		blocked := make(chan error, 1)
		go func() {
			_, err := seen.Next(context.Background())
			blocked <- err
		}()
		synctest.Wait()
		c.Close(errOver)
		require.ErrorIs(t, <-blocked, errOver)

		c.Close(errors.New("a second reason"))
		c.Set(2)
		v, ok := c.Get()
		require.True(t, ok)
		require.Equal(t, 1, v)
		v, err = unseen.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, v)
		for range 2 {
			v, err = unseen.Next(t.Context())
			require.Equal(t, errOver, err)
			require.Zero(t, v)
		}
		_, err = c.Reader().NextWhere(t.Context(), func(int) bool { return false })
		require.Equal(t, errOver, err)
	})
}

// TestCellConcurrentSafe: a writer, many readers, and Close. Each reader sees rising values, and
// the last one.
func TestCellConcurrentSafe(t *testing.T) {
	var c latest.Cell[int]
	const last = 5000
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r, newest := c.Reader(), -1
			for {
				v, err := r.Next(t.Context())
				if err != nil {
					if !errors.Is(err, errOver) || newest != last {
						t.Errorf("ended with %v after %d", err, newest)
					}
					return
				}
				if v <= newest {
					t.Errorf("%d after %d", v, newest)
				}
				newest = v
			}
		})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, _ = c.Reader().NextWhere(ctx, func(v int) bool { return v == last })
			c.Get()
		})
	}
	for i := range last + 1 {
		c.Set(i)
	}
	c.Close(errOver)
	all.Wait()
}
