package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// etcd is the etcd of a test. It starts the test's commands, with its address in their environment.
type etcd struct {
	*etcdtest.Cluster
	*diary
	t        testing.TB
	client   *clientv3.Client
	endpoint string
	env      []string
	attr     func(*exec.Cmd) // changes commands before they start
	spoiled  bool            // no other test can use it
}

// idle has the etcds that no test uses. A test has one for itself, so that it sees only its own keys
// and leases, and the next test gets it empty.
var idle struct {
	sync.Mutex
	clusters []*etcdtest.Cluster
}

// borrowed returns an etcd for a test. The test must not stop or kill it without setting spoiled, and
// may change only keys and leases. At the end no process of the test may be left.
func borrowed(t testing.TB) *etcd {
	t.Helper()
	idle.Lock()
	var c *etcdtest.Cluster
	if n := len(idle.clusters); n > 0 {
		c, idle.clusters = idle.clusters[n-1], idle.clusters[:n-1]
	}
	idle.Unlock()
	if c == nil {
		var err error
		c, err = etcdtest.New(bounded(t), etcdtest.Config{Heartbeat: 30 * time.Millisecond}) // there are many at a time
		require.NoError(t, err)
	}
	e := &etcd{Cluster: c, diary: &diary{t: t, path: t.TempDir() + "/signs"}, t: t, endpoint: c.Endpoints()[0]}
	e.env = []string{
		"ELDEST_ENDPOINTS=" + e.endpoint,
		"ELDEST_COMMAND_TIMEOUT=" + patience.String(), // a busy machine needs its time
		mark(t), signsIn + "=" + e.path,
	}
	t.Cleanup(func() { // the processes of the test have ended by now, or been killed
		if !t.Failed() {
			noProcess(t, mark(t))
		}
		if t.Failed() || e.spoiled || empty(c) != nil {
			_ = c.Close()
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.clusters = append(idle.clusters, c)
	})
	e.client = c.Client(t)
	return e
}

// empty removes all keys and leases from an etcd.
func empty(c *etcdtest.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := c.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Delete(ctx, "", clientv3.WithPrefix()); err != nil {
		return err
	}
	leases, err := client.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases.Leases {
		_, _ = client.Revoke(ctx, l.ID) // it may expire meanwhile
	}
	return nil
}

// ofTests in the environment of a process names the test that has started it: other tests run at the
// same time on the same machine.
const ofTests = "ELDEST_TEST_OF"

func mark(t testing.TB) string { return ofTests + "=" + strconv.Itoa(os.Getpid()) + "/" + t.Name() }

// of is the etcd for a subtest.
func (e *etcd) of(t testing.TB) *etcd {
	part := *e
	part.t = t
	return &part
}

// with is the etcd for commands that have more in their environment.
func (e *etcd) with(env ...string) *etcd {
	more := *e
	more.env = slices.Concat(e.env, env)
	return &more
}

// changed is the etcd for commands that are started in another way.
func (e *etcd) changed(attr func(*exec.Cmd)) *etcd {
	other := *e
	other.attr = attr
	return &other
}

// command is a command line of eldest: this binary, started again.
func (e *etcd) command(args ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{"eldest"}, args...), Env: append(os.Environ(), e.env...)}
	if e.attr != nil {
		e.attr(cmd)
	}
	return cmd
}

// start runs a command line; the process is killed when the test ends.
func (e *etcd) start(args ...string) *clitest.Process {
	e.t.Helper()
	return clitest.Start(e.t, e.command(args...))
}

// line runs a command line that connects to etcd, in this process, to its end.
func (e *etcd) line(args ...string) (code int, stdout, stderr string) {
	e.t.Helper()
	given := strings.Join(args, " ")
	for flag, value := range map[string]string{"--endpoints": e.endpoint, "--command-timeout": patience.String()} {
		if !strings.Contains(given, flag) {
			args = append(args, flag, value)
		}
	}
	return runLine(e.t, args...)
}

// does runs a command line that must succeed.
func (e *etcd) does(args ...string) {
	e.t.Helper()
	code, _, stderr := e.line(args...)
	require.Equal(e.t, cli.ExitOK, code, stderr)
}

// campaign starts a candidate and returns it with its second event. The TTL is so long that a busy
// machine does not lose the lease.
func (e *etcd) campaign(event, election string, more ...string) (*clitest.Process, object) {
	e.t.Helper()
	p := e.start(append([]string{"campaign", election, "--json", "--ttl", "30s"}, more...)...)
	p.Event("registered")
	return p, p.Event(event)
}

// run runs "eldest run" with the arguments. Unless they set another TTL, it is so long that a busy
// machine does not lose the lease.
func (e *etcd) run(args ...string) *clitest.Process {
	e.t.Helper()
	return e.start(append([]string{"run", "--json", "--ttl", "30s", "--grace", "500ms"}, args...)...)
}

// partakes waits until n candidates take part in transfers, and returns all candidates in the queue.
func (e *etcd) partakes(election string, n int) (rows []object) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		code, stdout, _ := e.line("list", election, "--json")
		if code != cli.ExitOK {
			return false
		}
		rows = parse[[]object](e.t, stdout)
		part := 0
		for _, row := range rows {
			if row["transfer"] == true {
				part++
			}
		}
		return part == n
	}, patience, 20*time.Millisecond)
	return rows
}

// keys returns all keys of etcd.
func (e *etcd) keys() []string {
	e.t.Helper()
	resp, err := e.client.Get(e.bounded(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(e.t, err)
	keys := []string{}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// candidates returns the keys of the candidates, without the other keys of the protocol.
func (e *etcd) candidates() []string {
	e.t.Helper()
	return slices.DeleteFunc(e.keys(), func(key string) bool { return strings.Contains(key, "/eldest/") })
}

func (e *etcd) leases() int {
	e.t.Helper()
	resp, err := e.client.Leases(e.bounded())
	require.NoError(e.t, err)
	return len(resp.Leases)
}

func (e *etcd) delete(key string) {
	e.t.Helper()
	resp, err := e.client.Delete(e.bounded(), key)
	require.NoError(e.t, err)
	require.EqualValues(e.t, 1, resp.Deleted, key)
}

func (e *etcd) bounded() context.Context { return bounded(e.t) }

func bounded(t testing.TB) context.Context { return etcdtest.ContextFor(t, patience) }

func parse[T any](t testing.TB, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// noProcess waits until there is no process with the variable in its environment and, if argument is
// given, a first argument with that prefix.
func noProcess(t testing.TB, variable string, argument ...string) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		left = nil
		processes, _ := os.ReadDir("/proc")
		for _, process := range processes {
			environ, _ := os.ReadFile("/proc/" + process.Name() + "/environ")
			if !bytes.Contains(environ, []byte(variable+"\x00")) {
				continue
			}
			cmdline, _ := os.ReadFile("/proc/" + process.Name() + "/cmdline")
			words := strings.Split(string(cmdline), "\x00")
			if len(argument) == 0 || len(words) > 1 && strings.HasPrefix(words[1], argument[0]) {
				left = append(left, process.Name()+" "+strings.Join(words, " "))
			}
		}
		return len(left) == 0
	}, patience, 30*time.Millisecond, "left: %v", left)
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

// heedHangups makes the processes of a test receive SIGHUP even if the tests run under nohup: child
// processes inherit that a signal is ignored, but not that it is caught.
func heedHangups(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
}

// handle returns the process with an ID. The handle does not refer to another process that gets the
// ID after the first one has ended: no signal must reach that one.
func handle(t testing.TB, pid int) *os.Process {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Release() })
	return p
}
