package main

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// asAlone in the environment names the test for which this process was started.
const asAlone = "ELDEST_TEST_ALONE"

// alone has a test run in a process of its own, which is this binary once more, and reports
// whether this is that process: there it goes on, elsewhere it returns at once. It is for tests
// that adopt orphans, or kill what they have adopted: beside other tests those were theirs. The
// process runs beside the other tests. It ends with this one.
func alone(t *testing.T) (here bool) {
	t.Helper()
	if os.Getenv(asAlone) == t.Name() {
		return true
	}
	t.Parallel()
	run := "^" + t.Name() + "$"
	if _, part, some := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); some {
		run += "/" + part
	}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run="+run)
	cmd.Args[0] = os.Args[0] // a test, and not the command
	cmd.Env = append(os.Environ(), asAlone+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // whose end would be the death of the process, too
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\n--- PASS: "+t.Name()+" ", "it did not run")
	return false
}
