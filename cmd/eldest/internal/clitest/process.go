package clitest

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience bounds every wait of these tests.
const Patience = 20 * time.Second

// Object is a line of JSON.
type Object = map[string]any

// Process is a command that runs.
type Process struct {
	*exec.Cmd
	T         testing.TB
	Out       *os.File      // the read end of stdout, unless the command has another one
	Done      chan struct{} // closed when the process has ended
	out, errs Sheet
	reading   chan struct{} // closed at the end of stdout
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
	if stdout != nil {
		_ = stdout.Close()
		p.Read()
	}
	go func() {
		defer close(p.Done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.Done
		if p.Out != nil {
			<-p.reading
			_ = p.Out.Close()
		}
		if t.Failed() {
			t.Logf("stderr of %q:\n%s", cmd.Args, p.Errors())
		}
	})
	return p
}

// Read reads stdout, from where it stopped. It ends with an error of Out: at the end of Out, or at
// its deadline.
func (p *Process) Read() {
	reading := make(chan struct{})
	p.reading = reading
	go func() {
		defer close(reading)
		_, _ = io.Copy(&p.out, p.Out)
	}()
}

// Errors returns what the process has written to stderr.
func (p *Process) Errors() string { return p.errs.String() }

// next returns a line of stdout that is there, or "" at its end; ok is false while there is neither.
func (p *Process) next() (line string, ok bool) {
	select {
	case <-p.reading:
		line, _ = p.out.next(true)
		return line, true
	default:
		return p.out.next(false)
	}
}

// Line returns the next line of stdout; "" at its end.
func (p *Process) Line() (line string) {
	p.T.Helper()
	p.Eventually(func() (ok bool) { line, ok = p.next(); return ok }, "no line of %q", p.Args)
	return line
}

// Lines returns the lines of stdout, as they come, up to its end.
func (p *Process) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			line, ok := p.next()
			if !ok {
				time.Sleep(5 * time.Millisecond)
			} else if line == "" || !yield(line) {
				return
			}
		}
	}
}

// Rest returns what is left of stdout, at its end.
func (p *Process) Rest() (lines []string) {
	for line := range p.Lines() {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// Event returns the next line of stdout, which must be the named event. It skips what an overloaded
// machine may add: a renewal or heartbeats that failed, and what succeeded after them.
func (p *Process) Event(name string) (o Object) {
	p.T.Helper()
	line := p.Line()
	require.NoError(p.T, json.Unmarshal([]byte(line), &o), "line %q", line)
	if got := o["event"]; got != name && (got == "at-risk" || got == "recovered" || got == "suspended" || got == "resumed") {
		return p.Event(name)
	}
	require.Equal(p.T, name, o["event"], line)
	at, err := time.Parse(time.RFC3339Nano, o["time"].(string))
	require.NoError(p.T, err)
	require.WithinDuration(p.T, time.Now(), at, Patience)
	return o
}

// Told waits for the next event of that name on stderr, and skips everything else.
func (p *Process) Told(name string) (o Object) {
	p.T.Helper()
	p.Eventually(func() bool {
		for line, ok := p.errs.next(false); ok; line, ok = p.errs.next(false) {
			if o = nil; json.Unmarshal([]byte(line), &o) == nil && o["event"] == name {
				return true
			}
		}
		return false
	}, "no event %s of %q", name, p.Args[1:])
	return o
}

// Rewind makes Told start again from the beginning.
func (p *Process) Rewind() { p.errs.rewind() }

// Says waits until stderr contains the text.
func (p *Process) Says(text string) {
	p.T.Helper()
	p.Eventually(func() bool { return strings.Contains(p.Errors(), text) }, "%q does not say %s", p.Args[1:], text)
}

// Eventually waits until a condition holds, for Patience, which is counted in steps: a pause of the
// whole machine, as virtual ones have, counts as one step. The steps grow: what takes long is not asked
// for often. A process that hangs ends with the stacks
// of its goroutines on stderr. The signal is SIGABRT, because "eldest run" handles SIGQUIT.
func (p *Process) Eventually(holds func() bool, what string, args ...any) {
	p.T.Helper()
	for step, waited := 2*time.Millisecond, time.Duration(0); waited < Patience; step = min(step+step/8, 20*time.Millisecond) {
		if holds() {
			return
		}
		time.Sleep(step)
		waited += step
	}
	_ = p.Process.Signal(syscall.SIGABRT)
	select {
	case <-p.Done:
	case <-time.After(5 * time.Second):
	}
	p.T.Fatalf(what, args...)
}

// Over waits for the end.
func (p *Process) Over() {
	p.T.Helper()
	p.Eventually(func() bool {
		select {
		case <-p.Done:
			return true
		default:
			return false
		}
	}, "%q does not end", p.Args)
}

// Exits waits for the end, after which stdout must hold nothing more.
func (p *Process) Exits(code int) {
	p.T.Helper()
	p.Over()
	require.Equal(p.T, code, p.ProcessState.ExitCode(), p.Errors())
	if p.Out != nil {
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

// Awaited receives from a channel, or gives up after Patience, which is counted as in Eventually.
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

// Sheet collects what is written, for tests that read it meanwhile.
type Sheet struct {
	mu   sync.Mutex
	out  bytes.Buffer
	read int
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

// next returns the next line that is not empty, if all of it, or the last part, is there.
func (s *Sheet) next(last bool) (line string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.out.Bytes()[s.read:]
	for len(rest) > 0 && rest[0] == '\n' { // tests fill pipes with these
		s.read++
		rest = rest[1:]
	}
	end := bytes.IndexByte(rest, '\n') + 1
	if end == 0 && last {
		end = len(rest)
	}
	s.read += end
	return string(rest[:end]), end > 0
}

func (s *Sheet) rewind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = 0
}

// EndWithParent makes this process end soon after its parent has, however that ends.
func EndWithParent() {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(50 * time.Millisecond)
		}
		os.Exit(125)
	}()
}
