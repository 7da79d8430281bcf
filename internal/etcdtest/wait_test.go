package etcdtest_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// failing is a test that keeps the reason for which it ended.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs a wait in virtual time. It returns why the test ended ("" if it went on) and when.
func outcome(t *testing.T, wait func(testing.TB)) (why string, after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begun, f, done := time.Now(), &failing{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			wait(f)
		}()
		<-done
		why, after = f.why, time.Since(begun)
	})
	return why, after
}

// Each wait returns as soon as it can, and ends the test where and when it must.
func TestWaits(t *testing.T) {
	in := func(d time.Duration) func() bool {
		var at time.Time
		return func() bool {
			if at.IsZero() {
				at = time.Now().Add(d)
			}
			return !time.Now().Before(at)
		}
	}
	const never = 1000 * time.Hour
	full, closed := make(chan int, 1), make(chan int)
	full <- 7
	close(closed)
	for name, c := range map[string]struct {
		wait  func(testing.TB)
		why   string
		after time.Duration
	}{
		"a value":     {func(t testing.TB) { require.Equal(t, 7, etcdtest.Take(t, full, "seven")) }, "", 0},
		"closed":      {func(t testing.TB) { require.Zero(t, etcdtest.Take(t, closed, "the end")) }, "", 0},
		"no value":    {func(t testing.TB) { etcdtest.Take(t, make(chan int), "it") }, "not in time: it", etcdtest.Patience},
		"holds":       {func(t testing.TB) { etcdtest.Eventually(t, in(0), "it") }, "", 0},
		"holds later": {func(t testing.TB) { etcdtest.Eventually(t, in(time.Second), "it") }, "", time.Second},
		"holds not": {
			func(t testing.TB) { etcdtest.Eventually(t, in(never), "%d of %s", 1, "it") },
			"not in time: 1 of it", etcdtest.Patience,
		},
		"holds not soon": {
			func(t testing.TB) { etcdtest.EventuallyFor(t, time.Second, in(never), "it") },
			"not in time: it", time.Second,
		},
		"is never":      {func(t testing.TB) { etcdtest.Never(t, in(never), time.Second, "it") }, "", time.Second},
		"is after that": {func(t testing.TB) { etcdtest.Never(t, in(time.Second), time.Second, "it") }, "", time.Second},
		"is sometimes": {
			func(t testing.TB) { etcdtest.Never(t, in(500*time.Millisecond), time.Second, "%s", "it") },
			"it must not be: it", 500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a value" || name == "closed" {
				c.wait(t) // their channels belong to no synctest bubble
				return
			}
			why, after := outcome(t, c.wait)
			require.Equal(t, c.why, why)
			require.GreaterOrEqual(t, after, c.after)
			require.LessOrEqual(t, after, c.after+20*time.Millisecond)
		})
	}
}

// A context outlives the test's own context: a clean-up can use it. It ends in time, or with the
// test.
func TestContextOfAWait(t *testing.T) {
	ctx, ended := etcdtest.Context(t), etcdtest.ContextFor(t, 0)
	require.Error(t, ended.Err())
	left, ok := ctx.Deadline()
	require.True(t, ok)
	require.InDelta(t, etcdtest.Patience, time.Until(left), float64(time.Second))
	t.Run("with the test", func(t *testing.T) {
		inner := etcdtest.Context(t)
		t.Cleanup(func() {
			require.Error(t, t.Context().Err())
			require.NoError(t, inner.Err())
		})
		ctx = inner
	})
	require.Error(t, ctx.Err())
}

func TestElectionsDiffer(t *testing.T) {
	t.Run("a/b", func(t *testing.T) {
		a, b := etcdtest.Election(t), etcdtest.Election(t)
		require.NotEqual(t, a, b)
		require.NotContains(t, a, "/")
	})
}

func TestProgram(t *testing.T) {
	p := etcdtest.Run(t, exec.Command("sh", "-c", `echo one >&2; while read -r word; do echo "got $word"; done; exit 3`))
	p.Signal(syscall.SIGSTOP)
	p.Send("a")
	p.Signal(syscall.SIGCONT)
	p.Send("b")
	require.Equal(t, []string{"got b", "b"}, p.Line(`^got ([^a])$`))
	p.CloseInput()
	require.Equal(t, 3, p.End())
	require.ElementsMatch(t, []string{"one", "got a", "got b"}, strings.Split(strings.TrimSpace(p.Said()), "\n"))
}
