package election_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

type ctxKey struct{}

func TestLead(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	failure := errors.New("what the function returned")
	err := l.Lead(context.WithValue(s.Ctx, ctxKey{}, "carried"), func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		require.Equal(t, "carried", ctx.Value(ctxKey{}))
		require.Equal(t, []string{c.Key()}, s.Queue(), "the key is kept while it runs")
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.Empty(t, s.Queue(), "it resigns")
	require.ErrorIs(t, s.over(l), eldest.ErrResigned)
	require.NoError(t, s.lead(c).Lead(s.Ctx, func(context.Context) error { return nil }))
}

// The first Lead of a candidate, which makes its turn, beside a request of another goroutine: for the
// race detector.
func TestLeadBesideProclaim(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("v"))
	proclaimed := etcdtest.Go(func() error { return l.Proclaim(s.Ctx, []byte("w")) })
	require.NoError(t, l.Lead(s.Ctx, func(context.Context) error { return get(s, proclaimed) }))
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
		"deposed": {func(s *stage, key string, _ context.CancelCauseFunc) { s.Remove(key) }, eldest.ErrDeposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c := s.candidate("v")
			l := s.lead(c)
			ctx, cancel := context.WithCancelCause(s.Ctx)
			defer cancel(nil)
			var cause error
			var queue []string
			err := l.Lead(ctx, func(ctx context.Context) error {
				tc.end(s, c.Key(), cancel)
				get(s, ctx.Done())
				cause, queue = context.Cause(ctx), s.Queue()
				return nil
			})
			require.NoError(t, err, "the end of the tenure alone is no error")
			require.ErrorIs(t, cause, tc.want)
			require.Equal(t, tc.kept, len(queue) == 1)
			require.Empty(t, s.Queue())
		})
	}
}

// After its end a tenure is led no more; not even for a moment.
func TestLeadAfterTheEnd(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	for range 50 { // the wrong answer would be a matter of luck
		l := s.lead(c)
		require.NoError(t, l.Resign(s.Ctx))
		err := l.Lead(s.Ctx, func(context.Context) error {
			t.Error("the function was called")
			return nil
		})
		require.ErrorIs(t, err, eldest.ErrResigned)

		dead, cancel := context.WithCancel(s.Ctx)
		cancel()
		l = s.lead(c)
		err = l.Lead(dead, func(context.Context) error {
			t.Error("the function was called")
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, s.Queue(), "and it has resigned")
	}
}

// A panic does not keep the key, and goes on to the caller.
func TestLeadResignsWhenItsFunctionPanics(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.PanicsWithValue(t, "oops", func() {
		_ = l.Lead(s.Ctx, func(context.Context) error { panic("oops") })
	})
	require.Empty(t, s.Queue())
	require.NoError(t, s.lead(c).Lead(s.Ctx, func(context.Context) error { return nil }), "and not the place")

	// So does runtime.Goexit, which a failed assertion in a test is.
	gone := make(chan struct{})
	l = s.lead(c)
	go func() {
		defer close(gone)
		_ = l.Lead(s.Ctx, func(context.Context) error { runtime.Goexit(); return nil })
	}()
	get(s, gone)
	require.Empty(t, s.Queue())
}

// A context with another one's values ends with the tenure, and not at the other one's
// deadline, so it reports none: package context would trust that, and set no timers for
// its children.
func TestWithValuesHasNoDeadline(t *testing.T) {
	s := newStage(t)
	l, err := s.candidate("v").Campaign(s.Ctx)
	require.NoError(t, err)
	of, cancel := context.WithTimeout(context.WithValue(s.Ctx, valueKey{}, "value"), time.Nanosecond)
	defer cancel()
	ctx := l.WithValues(of)
	require.Equal(t, "value", ctx.Value(valueKey{}))
	_, ok := ctx.Deadline()
	require.False(t, ok)
	require.NoError(t, ctx.Err())
	child, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	<-child.Done()
	require.NoError(t, l.Resign(s.Ctx))
	require.Error(t, ctx.Err())
	require.Nil(t, l.WithValues(nil).Value(valueKey{})) //nolint:staticcheck // nil on purpose
}

type valueKey struct{}
