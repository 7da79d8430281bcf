package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// asCommand in the environment makes the test binary the command itself.
const asCommand = "ELDEST_TEST_AS_COMMAND"

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// The commands run as real processes: this binary, started again. It ends with
// its parent, whose end of the pipe closes however the parent dies.
func init() {
	if os.Getenv(asCommand) == "" {
		return
	}
	// The keeper of "eldest run" has descriptors of its own there, and ends with its owner.
	if len(os.Args) < 2 || os.Args[1] != keeperCommand {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(3, "parent"))
			os.Exit(125)
		}()
	}
	main()
}

// process is a command that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *os.File
	lines  chan string // closed at the end of stdout
	done   chan struct{}
	stderr sheet
}

func (p *process) errors() string { return p.stderr.String() }

// start runs a command line; the process is killed when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, lines: make(chan string, 1000), done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stderr = &p.stderr
	parent, ours, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.ExtraFiles = []*os.File{parent}
	var stdout *os.File
	p.stdout, stdout, err = os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout = stdout
	require.NoError(t, p.cmd.Start())
	_, _ = parent.Close(), stdout.Close()
	alive.put(p, true)

	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(p.lines)
		for r := bufio.NewReader(p.stdout); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				p.lines <- line
			}
			if err != nil {
				return
			}
		}
	})
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
		alive.put(p, false)
		_ = ours.Close()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		reading.Wait()
		_ = p.stdout.Close()
		if t.Failed() {
			t.Logf("stderr of %q:\n%s", args, p.errors())
		}
	})
	return p
}

// line returns the next line of stdout; "" at its end.
func (p *process) line() string {
	p.t.Helper()
	line, ok := awaited(p.lines)
	if !ok {
		p.tellAll()
		p.t.Fatalf("no line of %q within %v", p.cmd.Args[1:], patience)
	}
	return line
}

// awaited receives from a channel, or gives up after the patience. That is counted in steps:
// when the whole machine stands still for a while, as virtual ones do, and the time is over
// for everybody at once when it goes on, that is one of them.
func awaited[T any](c <-chan T) (v T, ok bool) {
	const step = 50 * time.Millisecond
	for range patience / step {
		select {
		case v = <-c:
			return v, true
		case <-time.After(step):
		}
	}
	return v, false
}

// tellAll has a process that hangs, and all others of the test, end with the stacks of
// their goroutines in stderr: the one may wait for another. SIGABRT, because SIGQUIT is
// heeded by "eldest run".
func (p *process) tellAll() {
	told := alive.all()
	for _, other := range told {
		_ = other.cmd.Process.Signal(syscall.SIGABRT)
	}
	enough := time.After(5 * time.Second)
	for _, other := range told {
		select {
		case <-other.done:
		case <-enough:
			return
		}
	}
}

// alive has the processes that were started and have not ended.
var alive = processes{set: make(map[*process]bool)}

type processes struct {
	mu  sync.Mutex
	set map[*process]bool
}

func (s *processes) put(p *process, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set[p] = runs; !runs {
		delete(s.set, p)
	}
}

func (s *processes) all() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.set))
}

// object is a line of JSON.
type object map[string]any

// event returns the next line, which must be the named event. A machine that is
// overloaded may add a renewal that failed and one that succeeded.
func (p *process) event(name string) object {
	p.t.Helper()
	line := p.line()
	var o object
	require.NoError(p.t, json.Unmarshal([]byte(line), &o), "line %q", line)
	if got := o["event"]; got != name && (got == "jeopardy" || got == "recovered") {
		return p.event(name)
	}
	require.Equal(p.t, name, o["event"], line)
	at, err := time.Parse(time.RFC3339Nano, o["time"].(string))
	require.NoError(p.t, err)
	require.WithinDuration(p.t, time.Now(), at, patience)
	return o
}

// says waits until stderr contains the text.
func (p *process) says(text string) {
	p.t.Helper()
	p.eventually(func() bool { return strings.Contains(p.errors(), text) }, 5*time.Millisecond, text)
}

// eventually is require's, with the stacks of what hangs.
func (p *process) eventually(condition func() bool, tick time.Duration, what ...any) {
	p.t.Helper()
	if !assert.Eventually(p.t, condition, patience, tick, what...) {
		p.tellAll()
		p.t.FailNow()
	}
}

// over waits for the end.
func (p *process) over() {
	p.t.Helper()
	if _, ok := awaited(p.done); !ok {
		p.tellAll()
		p.t.Fatalf("%q does not end", p.cmd.Args[1:])
	}
}

// exits waits for the end, after which stdout must hold nothing more.
func (p *process) exits(code int) {
	p.t.Helper()
	p.over()
	require.Equal(p.t, code, p.cmd.ProcessState.ExitCode(), p.errors())
	for line := range p.lines {
		p.t.Errorf("one more line of %q: %q", p.cmd.Args[1:], line)
	}
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// etcdProcess is an etcd that can be stopped and killed.
type etcdProcess struct {
	*process
	endpoint string
	port     string
	client   *clientv3.Client
}

// startEtcdProcess runs "eldest etcd" and sets the environment so that commands of
// this test find it. A port of 0 is a free one.
func startEtcdProcess(t *testing.T, port string) *etcdProcess {
	t.Helper()
	// An etcd that is killed leaves its data behind.
	t.Setenv("TMPDIR", t.TempDir())
	args := []string{"etcd", "--json"}
	if port != "0" {
		args = append(args, "--client-port", port)
	}
	e := &etcdProcess{process: start(t, args...)}
	var up struct{ Endpoints []string }
	require.NoError(t, json.Unmarshal([]byte(e.line()), &up))
	e.endpoint = up.Endpoints[0]
	t.Setenv("ELDEST_ENDPOINTS", e.endpoint)
	t.Setenv("ELDEST_COMMAND_TIMEOUT", patience.String()) // a busy machine needs its time
	_, port, err := net.SplitHostPort(strings.TrimPrefix(e.endpoint, "http://"))
	require.NoError(t, err)
	e.port = port
	e.client, err = clientv3.New(clientv3.Config{Endpoints: up.Endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.client.Close() })
	return e
}

// halt stops etcd without closing its connections, and waits until it is silent.
func (e *etcdProcess) halt() {
	e.t.Helper()
	e.signal(syscall.SIGSTOP)
	require.Eventually(e.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := e.client.Get(ctx, "x")
		return err != nil
	}, patience, time.Millisecond)
}

// keys returns all keys of etcd.
func (e *etcdProcess) keys() []string {
	e.t.Helper()
	resp, err := e.client.Get(e.bounded(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(e.t, err)
	keys := []string{}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// standing is keys without mailboxes.
func (e *etcdProcess) standing() []string {
	e.t.Helper()
	return slices.DeleteFunc(e.keys(), func(key string) bool { return strings.Contains(key, "/eldest/ask/") })
}

func (e *etcdProcess) leases() int {
	e.t.Helper()
	resp, err := e.client.Leases(e.bounded())
	require.NoError(e.t, err)
	return len(resp.Leases)
}

func (e *etcdProcess) delete(key string) {
	e.t.Helper()
	resp, err := e.client.Delete(e.bounded(), key)
	require.NoError(e.t, err)
	require.EqualValues(e.t, 1, resp.Deleted, key)
}

func (e *etcdProcess) bounded() context.Context { return bounded(e.t) }

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// freePort returns a port at which nobody listens. It lies below the range from which
// systems take the ports of outgoing connections, so that none of those takes it before it
// is used, and beside those of package devcluster.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(30_000 + rand.IntN(2_700))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

// candidate starts a campaign and returns it with its first event. Its lease is one that a
// busy machine does not lose.
func candidate(t *testing.T, election string, more ...string) (*process, object) {
	t.Helper()
	p := start(t, append([]string{"campaign", election, "--json", "--ttl", "30s"}, more...)...)
	return p, p.event("registered")
}

// leading starts a campaign and returns it with its win.
func leading(t *testing.T, election string, more ...string) (*process, object) {
	t.Helper()
	p, _ := candidate(t, election, more...)
	return p, p.event("leader")
}

// waiting starts a campaign and returns it with its waiting.
func waiting(t *testing.T, election string, more ...string) (*process, object) {
	t.Helper()
	p, _ := candidate(t, election, more...)
	return p, p.event("waiting")
}

// sheet is what is written, for tests that look at it meanwhile.
type sheet struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *sheet) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(data)
}

func (s *sheet) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}
