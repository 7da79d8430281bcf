package clitest

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// asAlone in the environment names the test for which this process was started.
const asAlone = "ELDEST_TEST_ALONE"

// Alone makes a test run in a process of its own, which is this binary again, and reports whether
// this is that process: there the test goes on, elsewhere it returns at once. It is for tests that kill
// all children of their process, which could be the processes of other tests. The process runs beside the
// other tests. It ends with this one.
func Alone(t *testing.T) (here bool) {
	t.Helper()
	if name := os.Getenv(asAlone); name != "" {
		return name == t.Name() // no other test runs here, or starts a process of its own
	}
	t.Parallel()
	levels := strings.Split(t.Name(), "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run="+strings.Join(levels, "/"))
	cmd.Args[0] = os.Args[0] // a test, and not the command
	cmd.Env = append(os.Environ(), asAlone+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the kernel sends the death signal when this thread ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "--- SKIP: "+t.Name()+" ") {
		t.Skipf("%s", out)
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name()+" ", "it did not run")
	return false
}
