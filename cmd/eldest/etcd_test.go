package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
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

// etcd is an etcd of a test, and how its commands are started: with its address in their
// environment.
type etcd struct {
	*etcdtest.Cluster
	t        testing.TB
	client   *clientv3.Client
	endpoint string
	env      []string
	attr     func(*exec.Cmd) // changes commands before they start
	spoiled  bool            // no other test can use it
}

// idle has the etcds that no test uses. A test has one for itself, so that it sees no keys and
// no leases but its own, and the next one gets it empty.
var idle struct {
	sync.Mutex
	clusters []*etcdtest.Cluster
}

// borrowed is an etcd for a test that neither stops nor kills it, and changes nothing of it but
// keys and leases.
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
		c, err = etcdtest.New(bounded(t), etcdtest.Config{})
		require.NoError(t, err)
	}
	var e *etcd
	t.Cleanup(func() { // the processes of the test have ended by now
		if t.Failed() || e.spoiled || empty(c) != nil {
			_ = c.Close()
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.clusters = append(idle.clusters, c)
	})
	e = at(t, c)
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

// closeIdle stops the etcds that no test uses.
func closeIdle() {
	for _, c := range idle.clusters {
		_ = c.Close()
	}
}

// own is an etcd for a test that stops or kills it, or changes how it works.
func own(t testing.TB) *etcd { return at(t, etcdtest.Start(t, etcdtest.Config{})) }

func at(t testing.TB, c *etcdtest.Cluster) *etcd {
	e := to(t, c.Endpoints()[0])
	e.Cluster, e.client = c, c.Client(t)
	return e
}

// later is an etcd that does not run yet.
func later(t testing.TB) *etcd {
	e := own(t)
	require.NoError(t, e.Member(0).Kill())
	return e
}

// restart lets an etcd run again, or for the first time.
func (e *etcd) restart() {
	e.t.Helper()
	require.NoError(e.t, e.Member(0).Restart(e.bounded()))
}

// nowhere is no etcd: nobody listens there.
func nowhere(t testing.TB) *etcd { return to(t, "127.0.0.1:1") }

func to(t testing.TB, endpoint string) *etcd {
	return &etcd{t: t, endpoint: endpoint, env: []string{
		"ELDEST_ENDPOINTS=" + endpoint,
		"ELDEST_COMMAND_TIMEOUT=" + patience.String(), // a busy machine needs its time
		ofTests + "=" + mark(t),
	}}
}

// ofTests in the environment of a process says which test has started it: that and other tests
// run at the same time on the same machine.
const ofTests = "ELDEST_TEST_OF"

func mark(t testing.TB) string { return strconv.Itoa(os.Getpid()) + "/" + clitest.Top(t) }

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

// line runs a command line of one that connects to etcd, in this process, to its end.
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

// does is line of a command that succeeds.
func (e *etcd) does(args ...string) (stdout string) {
	e.t.Helper()
	code, stdout, stderr := e.line(args...)
	require.Equal(e.t, cli.ExitOK, code, stderr)
	return stdout
}

// resigns ends a leader as a signal does.
func resigns(p *clitest.Process) {
	p.T.Helper()
	p.Signal(syscall.SIGTERM)
	p.Event("resigned")
	p.Exits(cli.ExitOK)
}

// candidate starts a campaign and returns it with its first event. Its lease is one that a
// busy machine does not lose.
func (e *etcd) candidate(election string, more ...string) (*clitest.Process, object) {
	e.t.Helper()
	p := e.start(append([]string{"campaign", election, "--json", "--ttl", "30s"}, more...)...)
	return p, p.Event("registered")
}

// leading starts a campaign and returns it with its win.
func (e *etcd) leading(election string, more ...string) (*clitest.Process, object) {
	e.t.Helper()
	p, _ := e.candidate(election, more...)
	return p, p.Event("leader")
}

// waiting starts a campaign and returns it with its waiting.
func (e *etcd) waiting(election string, more ...string) (*clitest.Process, object) {
	e.t.Helper()
	p, _ := e.candidate(election, more...)
	return p, p.Event("waiting")
}

// partakes waits until all that stand in the election can be asked.
func (e *etcd) partakes(election string, n int) []object {
	e.t.Helper()
	var rows []object
	require.Eventually(e.t, func() bool {
		code, stdout, _ := e.line("list", election, "--json")
		if code != cli.ExitOK {
			return false
		}
		rows = parse[[]object](e.t, stdout)
		asks := 0
		for _, row := range rows {
			if row["asks"] == true {
				asks++
			}
		}
		return asks == n
	}, patience, 20*time.Millisecond)
	return rows
}

// halt stops etcd without closing its connections.
func (e *etcd) halt() {
	e.t.Helper()
	require.NoError(e.t, e.Member(0).Stop())
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

// standing is keys without mailboxes and pointers.
func (e *etcd) standing() []string {
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

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// running is an "eldest run".
type running struct {
	*clitest.Process
	seen int // of its stderr
}

// run runs "eldest run" with a witness, or whatever the arguments say. Where the arguments do
// not say otherwise its lease is one that a busy machine does not lose.
func (e *etcd) run(args ...string) *running {
	e.t.Helper()
	return &running{Process: e.start(append([]string{"run", "--json", "--ttl", "30s", "--grace", "500ms"}, args...)...)}
}

// event waits for the next event of that name, and passes over others.
func (r *running) event(name string) object {
	r.T.Helper()
	var found object
	r.Eventually(func() bool {
		rest := r.Errors()[r.seen:]
		for {
			line, more, ok := strings.Cut(rest, "\n")
			if !ok {
				return false
			}
			r.seen += len(line) + 1
			rest = more
			var o object
			if json.Unmarshal([]byte(line), &o) == nil && o["event"] == name {
				found = o
				return true
			}
		}
	}, 2*time.Millisecond, "no event %s of %q", name, r.Args[1:])
	return found
}

// pid waits for the program.
func (r *running) pid() int { return int(r.event("started")["pid"].(float64)) }

// keepersEnd waits until no keeper that the test has started for an election is left.
func keepersEnd(t testing.TB, election string) {
	t.Helper()
	ours := []byte(ofTests + "=" + mark(t) + "\x00")
	none(t, func(environ, cmdline []byte) bool {
		return bytes.Contains(environ, ours) && bytes.Contains(cmdline, []byte("\x00"+keeperCommand+"\x00--\x00"+election+"\x00"))
	})
}

// none waits until there is no such process, by its environment and command line.
func none(t testing.TB, such func(environ, cmdline []byte) bool) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		left = nil
		for _, dir := range glob("/proc/[0-9]*") {
			environ, _ := os.ReadFile(dir + "/environ")
			cmdline, _ := os.ReadFile(dir + "/cmdline")
			if such(environ, cmdline) {
				left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
			}
		}
		return len(left) == 0
	}, patience, 10*time.Millisecond, "left: %v", left)
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}
