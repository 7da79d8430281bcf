package plays_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Parallel(8) // each keeps a third of a CPU busy
	cleanup := func(code int) {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // it is in the temporary directory
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(cleanup))
}

// binary is the real command, built once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "eldest-plays-test-")
	if err != nil {
		return "", err
	}
	return clitest.Build("../../..", dir)
})

// performance is a running command.
type performance struct {
	*clitest.Process
	tmp string
}

// limit bounds the run of one command.
const limit = 3 * time.Minute

// perform starts "eldest" with these arguments.
func perform(t *testing.T, args ...string) *performance {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd, tmp := exec.CommandContext(ctx, path, args...), t.TempDir()
	// Variables that a shell may have set must not reach the participants.
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "ETCDCTL_USER=nobody:nothing", "ELDEST_ENDPOINTS=127.0.0.1:1")
	return &performance{clitest.Start(t, cmd), tmp}
}

// leavesNothing ends a command that has at least so many processes, and checks that it exits with
// the code, and that neither a process nor data is left. It returns how long the end took.
func (p *performance) leavesNothing(least int, end func(), code int) (took time.Duration) {
	p.T.Helper()
	pids := clitest.Children(p.Cmd.Process.Pid)
	require.GreaterOrEqual(p.T, len(pids), least)
	end()
	begun := time.Now()
	require.Equal(p.T, code, p.exit())
	took = time.Since(begun)
	clitest.RequireGone(p.T, pids)
	require.Empty(p.T, p.left(), "one of the processes removes the data")
	return took
}

// until reads JSON lines up to an event and action.
func (p *performance) until(event, action string) {
	p.T.Helper()
	for line := range p.Lines() {
		var f struct{ Event, Action string }
		require.NoError(p.T, json.Unmarshal([]byte(line), &f))
		if f.Event == event && f.Action == action {
			return
		}
	}
	require.Fail(p.T, "the output ended", "without %s %s: %s", event, action, p.Errors())
}

// exit waits until the output and the process have ended, and returns the exit code.
func (p *performance) exit() int {
	p.Rest()
	<-p.Done
	return p.ProcessState.ExitCode()
}

// left returns what is still in the temporary directory.
func (p *performance) left() []string {
	names, err := filepath.Glob(filepath.Join(p.tmp, "*"))
	require.NoError(p.T, err)
	return names
}
