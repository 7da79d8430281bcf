package clitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Patience bounds every wait of these tests.
const Patience = 20 * time.Second

// Object is a line of JSON.
type Object = map[string]any

// Process is a command that runs.
type Process struct {
	*exec.Cmd
	T     testing.TB
	Out   *os.File      // the read end of stdout, unless the command has another one
	Lines chan string   // of stdout; closed at its end
	Done  chan struct{} // closed when the process has ended
	errs  Sheet
}

// Start starts a command. Its process is killed when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, T: t, Done: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.errs
	}
	var stdout *os.File
	if cmd.Stdout == nil {
		var err error
		p.Out, stdout, err = os.Pipe()
		require.NoError(t, err)
		cmd.Stdout = stdout
	}
	require.NoError(t, cmd.Start())
	running.put(p, true)
	var stop func()
	if stdout != nil {
		_ = stdout.Close()
		stop = p.Read()
	}
	go func() {
		defer close(p.Done)
		_ = cmd.Wait()
		running.put(p, false)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.Done
		if stop != nil {
			stop()
		}
		if t.Failed() {
			t.Logf("stderr of %q:\n%s", cmd.Args, p.Errors())
		}
	})
	return p
}

// Read reads stdout into Lines, from where it was left. stop waits for the end of stdout.
func (p *Process) Read() (stop func()) {
	lines, done := make(chan string, 10_000), make(chan struct{})
	p.Lines = lines
	go func() {
		defer close(done)
		defer close(lines)
		for r := bufio.NewReader(p.Out); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return func() {
		go func() {
			for range lines { // nobody reads them any more
			}
		}()
		<-done
		_ = p.Out.Close()
	}
}

// Errors is what the process has written to stderr.
func (p *Process) Errors() string { return p.errs.String() }

// Line returns the next line of stdout; "" at its end.
func (p *Process) Line() string {
	p.T.Helper()
	line, ok := Awaited(p.Lines)
	if !ok {
		p.dump()
		p.T.Fatalf("no line of %q within %v", p.Args, Patience)
	}
	return line
}

// Rest returns what is left of stdout, at its end.
func (p *Process) Rest() (lines []string) {
	for line := range p.Lines {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// Event returns the next line, which must be the named event. A machine that is overloaded
// may add a renewal or heartbeats that failed, and what succeeded after them.
func (p *Process) Event(name string) Object {
	p.T.Helper()
	line := p.Line()
	var o Object
	require.NoError(p.T, json.Unmarshal([]byte(line), &o), "line %q", line)
	if got := o["event"]; got != name && (got == "jeopardy" || got == "recovered" || got == "suspended" || got == "resumed") {
		return p.Event(name)
	}
	require.Equal(p.T, name, o["event"], line)
	at, err := time.Parse(time.RFC3339Nano, o["time"].(string))
	require.NoError(p.T, err)
	require.WithinDuration(p.T, time.Now(), at, Patience)
	return o
}

// Says waits until stderr contains the text.
func (p *Process) Says(text string) {
	p.T.Helper()
	p.Eventually(func() bool { return strings.Contains(p.Errors(), text) }, 5*time.Millisecond, text)
}

// Eventually is require's, and shows where the processes of the test hang.
func (p *Process) Eventually(condition func() bool, tick time.Duration, what ...any) {
	p.T.Helper()
	if !assert.Eventually(p.T, condition, Patience, tick, what...) {
		p.dump()
		p.T.FailNow()
	}
}

// Over waits for the end.
func (p *Process) Over() {
	p.T.Helper()
	if _, ok := Awaited(p.Done); !ok {
		p.dump()
		p.T.Fatalf("%q does not end", p.Args)
	}
}

// Exits waits for the end, after which stdout must hold nothing more.
func (p *Process) Exits(code int) {
	p.T.Helper()
	p.Over()
	require.Equal(p.T, code, p.ProcessState.ExitCode(), p.Errors())
	if p.Lines != nil {
		require.Empty(p.T, p.Rest(), "more lines of %q", p.Args)
	}
}

// Ends waits for the end, whatever the process still writes to stdout.
func (p *Process) Ends(code int) {
	p.T.Helper()
	p.Over()
	p.Rest()
	p.Exits(code)
}

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) {
	p.T.Helper()
	require.NoError(p.T, p.Process.Signal(sig))
}

// dump has a process that hangs, and all others of its test, end with the stacks of their
// goroutines on stderr: the one may wait for another. SIGABRT, because "eldest run" handles
// SIGQUIT.
func (p *Process) dump() {
	all := running.of(p.T)
	for _, other := range all {
		_ = other.Process.Signal(syscall.SIGABRT)
	}
	enough := time.After(5 * time.Second)
	for _, other := range all {
		select {
		case <-other.Done:
		case <-enough:
			return
		}
	}
}

// Awaited receives from a channel, or gives up after Patience. That is counted in steps: when
// the whole machine stands still for a while, as virtual ones do, and the time is over for
// everybody at once when it goes on, that is one of them.
func Awaited[T any](c <-chan T) (v T, ok bool) {
	const step = 50 * time.Millisecond
	for range Patience / step {
		select {
		case v = <-c:
			return v, true
		case <-time.After(step):
		}
	}
	return v, false
}

// running has the processes that were started and have not ended.
var running = processes{set: make(map[*Process]bool)}

type processes struct {
	mu  sync.Mutex
	set map[*Process]bool
}

func (s *processes) put(p *Process, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set[p] = runs; !runs {
		delete(s.set, p)
	}
}

// of returns those that a test and its subtests have started.
func (s *processes) of(t testing.TB) []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.set)), func(p *Process) bool { return Top(p.T) != Top(t) })
}

// Top is the name of a test of which t is a part.
func Top(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// Sheet is what is written, for tests that look at it meanwhile.
type Sheet struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *Sheet) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(data)
}

func (s *Sheet) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// EndWithParent has this process end soon after its parent has, however that ends.
func EndWithParent() {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(50 * time.Millisecond)
		}
		os.Exit(125)
	}()
}

// Build builds the command "eldest" from this repository and returns its path. root is the
// directory of the command, dir where the result is put.
func Build(root, dir string, flags ...string) (path string, err error) {
	path = dir + "/eldest"
	out, err := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), root)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building eldest: %w: %s", err, out)
	}
	return path, nil
}
