package release

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// place is the directory and the environment in which commands run.
type place struct {
	dir string
	env []string
}

// run runs a command to its end and returns both of its streams. It must succeed.
func (p place) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := p.try(t, name, args...)
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
	return out
}

// try runs a command to its end, and returns its error if it fails.
func (p place) try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the first time everything is compiled
	defer cancel()
	out, err := p.command(ctx, name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (p place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// start runs a command beside the test.
func (p place) start(t *testing.T, name string, args ...string) *etcdtest.Program {
	t.Helper()
	return etcdtest.Run(t, p.command(context.Background(), name, args...))
}

// interrupt ends a program as Ctrl-C does. It must succeed.
func interrupt(t *testing.T, program *etcdtest.Program) {
	t.Helper()
	program.Signal(os.Interrupt)
	require.Zero(t, program.End())
}
