package examples_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait of these tests.
const patience = time.Minute

// build copies programs into a module of their own, outside of the repository, and
// builds them there, as a reader would. It returns the directory with the binaries.
func build(t *testing.T, programs ...string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	module, bin := t.TempDir(), t.TempDir()
	// The versions are the repository's, so that nothing is downloaded.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(mod), "\n")
	own := "module example.org/mine\n" + rest +
		"\nrequire github.com/eldest-io/eldest v0.0.0\n\nreplace github.com/eldest-io/eldest => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(own), 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), sum, 0o600))
	for _, program := range programs {
		require.NoError(t, os.CopyFS(filepath.Join(module, program), os.DirFS(program)))
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-ldflags=-w", "-o", bin+string(filepath.Separator), "./...")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// process is an example that is running.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	role string // the address at which a node reports its role
	done chan struct{}

	mu     sync.Mutex
	lines  []string // of stdout
	read   int      // how many of them the test has read
	more   chan struct{}
	stderr strings.Builder
}

// Write receives the process's output to stderr.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(data)
}

// start runs a program; it is killed when the test ends.
func (s stage) start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(filepath.Join(s.programs, program), args...), done: make(chan struct{}), more: make(chan struct{}, 1)}
	p.cmd.Stderr = p
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, scanner.Text())
			p.mu.Unlock()
			select {
			case p.more <- struct{}{}:
			default: // the test is notified already
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s %q said\n%s\nand to stderr\n%s", program, args, strings.Join(p.said(), "\n"), p.errors())
		}
	})
	return p
}

// until waits for a line of stdout that no earlier call has read and that matches. It returns the
// first group.
func (p *process) until(pattern string) string {
	p.t.Helper()
	expression, limit := regexp.MustCompile(pattern), time.After(patience)
	for over := false; ; {
		found := ""
		p.drain(func(line string) {
			if match := expression.FindStringSubmatch(line); match != nil && found == "" {
				found = match[1]
			}
		}, func() bool { return found != "" })
		switch {
		case found != "":
			return found
		case over:
			p.t.Fatalf("%s ended and did not say %q", p.cmd.Path, pattern)
		}
		select {
		case <-p.more:
		case <-p.done:
			over = true // read the last lines
		case <-limit:
			p.t.Fatalf("%s did not say %q within %v", p.cmd.Path, pattern, patience)
		}
	}
}

// drain calls see with the lines that no earlier call has read, until enough, if given, returns
// true.
func (p *process) drain(see func(line string), enough ...func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.read < len(p.lines) {
		see(p.lines[p.read])
		p.read++
		if len(enough) > 0 && enough[0]() {
			return
		}
	}
}

// said returns all lines so far.
func (p *process) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// ends waits for the end, and requires the exit code.
func (p *process) ends(code int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.cmd.Path)
	}
	require.Equal(p.t, code, p.cmd.ProcessState.ExitCode(), p.errors())
}

// status requests the node's role as a load balancer does.
func (p *process) status() int {
	p.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(p.role)
	require.NoError(p.t, err)
	require.NoError(p.t, resp.Body.Close())
	return resp.StatusCode
}
