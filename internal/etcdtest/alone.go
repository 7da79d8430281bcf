package etcdtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asAlone in the environment names the test for which this process was started.
const asAlone = "ELDEST_TEST_ALONE"

// Alone makes a test run in a process of its own, which is this binary again, and reports whether
// this is that process: there the test goes on, elsewhere it returns at once. It is for tests that measure
// their process, or look at all of its children or kill them: these could be those of other tests. The
// process runs beside the other tests, for at most two minutes. It ends with this one.
func Alone(t *testing.T) (here bool) {
	t.Helper()
	return AloneInOneOf(t, 1)
}

// AloneInOneOf is Alone for a test that passes if one of n such processes, one after another, does.
func AloneInOneOf(t *testing.T, n int) (here bool) {
	t.Helper()
	if name := os.Getenv(asAlone); name != "" {
		return name == t.Name() // no other test runs here, or starts a process of its own
	}
	t.Parallel()
	for try := 1; ; try++ {
		out, err := alone(t)
		switch {
		case err == nil && strings.Contains(out, "--- SKIP: "+t.Name()+" "):
			t.Skip(out)
		case err == nil && strings.Contains(out, "--- PASS: "+t.Name()+" "):
			return false
		case err == nil:
			t.Fatalf("it did not run: %s", out)
		case try == n:
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("again: %v: %s", err, out)
	}
}

// alone runs the test in a process of its own.
func alone(t *testing.T) (out string, err error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this binary: %w", err)
	}
	levels := strings.Split(t.Name(), "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	cmd := exec.CommandContext(ContextFor(t, 2*time.Minute), executable, "-test.v", "-test.run="+strings.Join(levels, "/"))
	cmd.Args[0] = os.Args[0] // a binary may do different things by different names
	cmd.Env = append(os.Environ(), asAlone+"="+t.Name())
	cmd.SysProcAttr = childAttr()
	runtime.LockOSThread() // the kernel ends the child when this thread ends
	defer runtime.UnlockOSThread()
	all, err := cmd.CombinedOutput()
	return string(all), err
}
