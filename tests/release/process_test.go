package release

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// process is a command that runs in parallel with the test.
type process struct {
	lines <-chan string
	stop  func() error
}

// start runs a command until stop interrupts it, or the test ends. It is killed if it does not end
// then.
func (p place) start(t *testing.T, name string, args ...string) process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := p.command(ctx, name, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	lines, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		ended <- cmd.Wait()
	}()
	stop := sync.OnceValue(func() error {
		defer cancel()
		_ = cmd.Process.Signal(os.Interrupt)
		defer time.AfterFunc(time.Minute, cancel).Stop()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return process{lines, stop}
}

// wait returns the first line that matches.
func (p process) wait(t *testing.T, pattern string) string {
	t.Helper()
	expression, late := regexp.MustCompile(pattern), time.After(time.Minute)
	var seen []string
	for {
		select {
		case line, open := <-p.lines:
			require.True(t, open, "it ended without a line %s: %q", pattern, seen)
			if seen = append(seen, line); expression.MatchString(line) {
				return line
			}
		case <-late:
			require.Fail(t, "no line "+pattern, "%q", seen)
		}
	}
}
