package election_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
)

type ctxKey struct{}

func TestLead(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	failure := errors.New("what the function returned")
	err := l.Lead(context.WithValue(s.ctx, ctxKey{}, "carried"), func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		require.Equal(t, "carried", ctx.Value(ctxKey{}))
		require.Equal(t, []string{c.Key()}, s.queue(), "the key is kept while it runs")
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.Empty(t, s.queue(), "it resigns")
	require.ErrorIs(t, s.over(l), eldest.ErrResigned)
	require.NoError(t, s.lead(c).Lead(s.ctx, func(context.Context) error { return nil }))
}

// The function's context ends with the caller's or with the tenure, with that
// one's cause; the key is kept until the function has returned.
func TestLeadEndsWithTheCallersContextOrTheTenure(t *testing.T) {
	why := errors.New("the program ends")
	for name, tc := range map[string]struct {
		end  func(s *stage, key string, cancel context.CancelCauseFunc)
		want error
		kept bool
	}{
		"context": {func(_ *stage, _ string, cancel context.CancelCauseFunc) { cancel(why) }, why, true},
		"deposed": {func(s *stage, key string, _ context.CancelCauseFunc) { s.remove(key) }, eldest.ErrDeposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c := s.candidate("v")
			l := s.lead(c)
			ctx, cancel := context.WithCancelCause(s.ctx)
			defer cancel(nil)
			var cause error
			var queue []string
			err := l.Lead(ctx, func(ctx context.Context) error {
				tc.end(s, c.Key(), cancel)
				get(s, ctx.Done())
				cause, queue = context.Cause(ctx), s.queue()
				return nil
			})
			require.NoError(t, err, "the end of the tenure alone is no error")
			require.ErrorIs(t, cause, tc.want)
			require.Equal(t, tc.kept, len(queue) == 1)
			require.Empty(t, s.queue())
		})
	}
}

// After its end a tenure is led no more; not even for a moment.
func TestLeadAfterTheEnd(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	for range 50 { // the wrong answer would be a matter of luck
		l := s.lead(c)
		require.NoError(t, l.Resign(s.ctx))
		err := l.Lead(s.ctx, func(context.Context) error {
			t.Error("the function was called")
			return nil
		})
		require.ErrorIs(t, err, eldest.ErrResigned)

		dead, cancel := context.WithCancel(s.ctx)
		cancel()
		l = s.lead(c)
		err = l.Lead(dead, func(context.Context) error {
			t.Error("the function was called")
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, s.queue(), "and it has resigned")
	}
}

// G7: an earlier function that ignores its context is waited for.
func TestLeadNeverOverlaps(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	var running atomic.Int32
	lead := func(ctx context.Context) error {
		if running.Add(1) > 1 {
			t.Error("two at once")
		}
		defer running.Add(-1)
		<-ctx.Done()
		return nil
	}
	stubborn, entered := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	l := s.lead(c)
	go func() {
		first <- l.Lead(s.ctx, func(ctx context.Context) error {
			close(entered)
			err := lead(ctx)
			running.Add(1)
			<-stubborn // long after its context has ended
			running.Add(-1)
			return err
		})
	}()
	get(s, entered)
	s.remove(c.Key())
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)

	// The next tenure waits; while it waits it can end.
	next := s.lead(c)
	second := make(chan error, 1)
	go func() { second <- next.Lead(s.ctx, lead) }()
	require.NoError(t, next.Resign(s.ctx))
	require.ErrorIs(t, get(s, second), eldest.ErrResigned)
	require.Empty(t, first)

	third := make(chan error, 1)
	last := s.lead(c)
	began := make(chan struct{})
	go func() {
		third <- last.Lead(s.ctx, func(ctx context.Context) error {
			close(began)
			return lead(ctx)
		})
	}()
	close(stubborn)
	require.NoError(t, get(s, first))
	get(s, began)
	require.NoError(t, last.Resign(s.ctx))
	require.NoError(t, get(s, third))
}

// A panic does not keep the key, and goes on to the caller.
func TestLeadResignsWhenItsFunctionPanics(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.PanicsWithValue(t, "oops", func() {
		_ = l.Lead(s.ctx, func(context.Context) error { panic("oops") })
	})
	require.Empty(t, s.queue())
	require.NoError(t, s.lead(c).Lead(s.ctx, func(context.Context) error { return nil }), "and not the place")

	// So does runtime.Goexit, which a failed assertion in a test is.
	gone := make(chan struct{})
	l = s.lead(c)
	go func() {
		defer close(gone)
		_ = l.Lead(s.ctx, func(context.Context) error { runtime.Goexit(); return nil })
	}()
	get(s, gone)
	require.Empty(t, s.queue())
}

// A context with another one's values ends with the tenure, and not at the other one's
// deadline, so it reports none: package context would trust that, and set no timers for
// its children.
func TestWithValuesHasNoDeadline(t *testing.T) {
	s := newStage(t)
	l, err := s.candidate("v").Campaign(s.ctx)
	require.NoError(t, err)
	of, cancel := context.WithTimeout(context.WithValue(s.ctx, valueKey{}, "value"), time.Nanosecond)
	defer cancel()
	ctx := l.WithValues(of)
	require.Equal(t, "value", ctx.Value(valueKey{}))
	_, ok := ctx.Deadline()
	require.False(t, ok)
	require.NoError(t, ctx.Err())
	child, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	<-child.Done()
	require.NoError(t, l.Resign(s.ctx))
	require.Error(t, ctx.Err())
	require.Nil(t, l.WithValues(nil).Value(valueKey{})) //nolint:staticcheck // nil on purpose
}

type valueKey struct{}
