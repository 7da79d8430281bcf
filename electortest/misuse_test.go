package electortest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/electortest"
)

// recorder is a test whose failure is recorded.
type recorder struct {
	testing.TB
	cleanups []func()
	failure  string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

// failure returns how a test fails that uses an election in a wrong way.
func failure(t *testing.T, test func(e *electortest.Election)) string {
	r := &recorder{TB: t}
	e, done := electortest.New(r), make(chan struct{})
	go func() {
		defer close(done)
		test(e)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r.failure
}

// Each wrong call ends the test, with its name and the reason.
func TestMisuse(t *testing.T) {
	start := func(e *electortest.Election, options ...elector.Option) { e.Start(untilOver, options...) }
	won := func(e *electortest.Election) { start(e); e.Win() }
	for text, test := range map[string]func(e *electortest.Election){
		"Start: the lead function is nil":          func(e *electortest.Election) { e.Start(nil) },
		"Start: the node has been started already": func(e *electortest.Election) { start(e); start(e) },
		"Start: eldest: ":                          func(e *electortest.Election) { start(e, elector.WithTTL(-1)) },
		"Win: call Start before":                   func(e *electortest.Election) { e.Win() },
		"Win: the node leads already":              func(e *electortest.Election) { won(e); e.Win() },
		"Win: the node is disconnected":            func(e *electortest.Election) { start(e); e.Disconnect(); e.Win() },
		"Win: the tenure is suspended": func(e *electortest.Election) {
			start(e, elector.WithHeartbeat(time.Second))
			e.Win()
			e.Suspend()
			e.Win()
		},
		"Lose: the node does not lead":           func(e *electortest.Election) { start(e); e.Lose(eldest.ErrDeposed) },
		"Lose: the cause is nil":                 func(e *electortest.Election) { won(e); e.Lose(nil) },
		"Lose: context canceled is neither":      func(e *electortest.Election) { won(e); e.Lose(context.Canceled) },
		"Lose: the node is disconnected":         func(e *electortest.Election) { won(e); e.Disconnect(); e.Lose(eldest.ErrDeposed) },
		"Wait: the function has not been called": func(e *electortest.Election) { start(e); _ = e.Wait() },
		"Suspend: tenures are only suspended":    func(e *electortest.Election) { won(e); e.Suspend() },
		"Reconnect: call Start before":           func(e *electortest.Election) { e.Reconnect() },
	} {
		synctest.Test(t, func(t *testing.T) {
			require.Contains(t, failure(t, test), "electortest: "+text)
		})
	}
	text := failure(t, func(e *electortest.Election) { e.Advance(time.Second) })
	require.Equal(t, "electortest: Advance: time can only be advanced in virtual time: call it inside testing/synctest.Test", text)
}

// A function that ignores the end of its context fails the test.
func TestStuck(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	text := failure(t, func(e *electortest.Election) {
		e.Start(func(context.Context, *elector.Leadership) error {
			<-release
			return nil
		}, func(c *elector.Config) { c.Drain = time.Millisecond })
		e.Win()
	})
	require.Contains(t, text, "electortest: the function does not return after the end of its context")
}
