package etcdtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Patience is how long a test waits for a condition, on a machine that is busy with other work. No
// correct run takes a tenth of it. Tests that are to fail (tests/mutants) wait less: the
// environment variable ELDEST_PATIENCE is their duration.
var Patience = func() time.Duration {
	d, err := time.ParseDuration(cmp.Or(os.Getenv("ELDEST_PATIENCE"), "1m"))
	if err != nil {
		panic(fmt.Errorf("etcdtest: ELDEST_PATIENCE: %w", err))
	}
	return d
}()

// Context is a context for a wait: it ends after Patience, or with the test. It outlives t.Context,
// so that a clean-up can use it.
func Context(t testing.TB) context.Context { return ContextFor(t, Patience) }

// ContextFor is Context with another time than Patience. For 0 it has already ended.
func ContextFor(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// Take waits for a value, or for the channel to be closed, and ends the test after Patience.
func Take[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("not in time: %s", what)
		panic("unreachable")
	}
}

// Eventually waits until a condition holds, and ends the test after Patience. It evaluates the
// condition on the test's own goroutine, so that the condition may end the test and no evaluation
// outlives it; a condition that blocks needs a limit of its own.
func Eventually(t testing.TB, holds func() bool, what string, args ...any) {
	t.Helper()
	EventuallyFor(t, Patience, holds, what, args...)
}

// EventuallyFor is Eventually with another time than Patience.
func EventuallyFor(t testing.TB, d time.Duration, holds func() bool, what string, args ...any) {
	t.Helper()
	for begin := time.Now(); !holds(); {
		waited := time.Since(begin)
		if waited > d {
			t.Fatalf("not in time: "+what, args...)
		}
		// For a wait of seconds, such as the end of a lease, milliseconds do not matter, and each
		// evaluation takes processor time that other tests need.
		time.Sleep(min(2*time.Millisecond+waited/50, 20*time.Millisecond))
	}
}

// Never requires that a condition does not hold for a while. It evaluates the condition on the
// test's own goroutine, as Eventually does.
func Never(t testing.TB, holds func() bool, during time.Duration, what string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			t.Fatalf("it must not be: "+what, args...)
		}
	}
}

// elections counts the names, so that a test that runs again on a shared cluster (go test -count)
// does not find the keys that its first run has left on purpose.
var elections atomic.Int64

// Election returns the name of an election, or of any key, that no other test has.
func Election(t testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), elections.Add(1))
}

// Err is the error of a call that has another result as well.
func Err[T any](_ T, err error) error { return err }

// Go calls f in the background, and delivers what it returns.
func Go[T any](f func() T) <-chan T {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return result
}
