package plays_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// binary builds the real command, once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "eldest-plays-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "eldest")
	out, err := exec.Command("go", "build", "-o", path, "../..").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// performance is a play that is going on.
type performance struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
	tmp string
	raw io.Closer
}

// limit bounds one performance.
const limit = 3 * time.Minute

// perform starts "eldest" with the name of a play and its flags.
func perform(t *testing.T, args ...string) *performance {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	p := &performance{t: t, tmp: t.TempDir()}
	p.cmd = exec.CommandContext(ctx, path, args...)
	// What a shell may have set must not reach the candidates.
	p.cmd.Env = append(os.Environ(), "TMPDIR="+p.tmp, "ETCDCTL_USER=nobody:nothing", "ELDEST_ENDPOINTS=127.0.0.1:1")
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.raw, p.out = stdout, bufio.NewScanner(stdout)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = p.cmd.Wait() // again, unless the test failed before
	})
	return p
}

// rest reads the output to its end.
func (p *performance) rest() (lines []string) {
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	return lines
}

// until reads JSON lines up to an event and act.
func (p *performance) until(event, act string) {
	p.t.Helper()
	for p.out.Scan() {
		var f struct{ Event, Act string }
		require.NoError(p.t, json.Unmarshal(p.out.Bytes(), &f))
		if f.Event == event && f.Act == act {
			return
		}
	}
	p.t.Fatalf("the output ended without %s %s", event, act)
}

// exit waits for the end and returns the exit code.
func (p *performance) exit() int {
	p.rest()
	_ = p.cmd.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode()
}

// left is what is still in the temporary directory.
func (p *performance) left() []string {
	names, err := filepath.Glob(filepath.Join(p.tmp, "*"))
	require.NoError(p.t, err)
	return names
}

// children are the processes that pid started and that still run.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	if len(stats) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("SKIPPED IN CI: no /proc to find processes in")
		}
		t.Skip("SKIPPED: no /proc to find processes in")
	}
	for _, path := range stats {
		if parent, child, ok := parse(path); ok && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// parse reads a process's parent. ok is false for one that is gone or only waits
// to be buried.
func parse(stat string) (parent, pid int, ok bool) {
	data, err := os.ReadFile(stat)
	if err != nil {
		return 0, 0, false
	}
	// pid (name, of any characters) state parent ...
	text := string(data)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	parent, err1 := strconv.Atoi(fields[1])
	first, _, _ := strings.Cut(text, " ")
	pid, err2 := strconv.Atoi(first)
	return parent, pid, err1 == nil && err2 == nil && fields[0] != "Z" && fields[0] != "X"
}

// requireGone waits until none of the processes runs.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			if _, _, runs := parse(fmt.Sprintf("/proc/%d/stat", pid)); runs {
				return false
			}
		}
		return true
	}, limit, 10*time.Millisecond, "processes %v are still there", pids)
}

func (p *performance) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}
