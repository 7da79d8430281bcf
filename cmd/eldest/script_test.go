package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// TestScript runs the scripts of testdata/script, each on an etcd of its own. Beside the commands
// of testscript there are these:
//
//	usage REASON ARG...     "eldest ARG..." must be refused as bad usage, for the reason
//	exits CODE ARG...       run "eldest ARG...", which must end with the exit code
//	start NAME ARG...       start "eldest ARG..."; its process ID is $NAME_pid
//	event NAME EVENT...     read the next line of stdout, which must be the event; its fields
//	                        become $NAME_key and so on, in upper case $NAME_KEY. Of several
//	                        events, read until all have come, in any order
//	told NAME EVENT         read stderr up to the event, whose fields become variables as well
//	becomes NAME ROLE       read the events of a node up to the status with the role
//	line NAME [TEXT]        read the next line of stdout, or the lines up to one with the text
//	says NAME TEXT          wait until stderr has the text
//	signal NAME SIGNAL      send TERM, INT, HUP, QUIT, KILL, STOP or CONT; after STOP it has stopped
//	ended NAME CODE         wait for the end, with nothing more on stdout
//	ends NAME CODE          wait for the end, whatever is left on stdout
//	stand NAME ELECTION VALUE FLAG...   start a campaign and read up to "leader" or "waiting"
//	get NAME CODE PATH      ask what --http serves; the body becomes stdout, $NAME_http is where
//	post CODE URL BODY      send an HTTP POST; the body of the answer becomes stdout
//	shows NAME PATH TEXT... ask until the body has all of the texts
//	silent NAME             nothing listens any more where --http served
//	keeper NAME             wait until an "eldest run" has a keeper; its process ID is $NAME_keeper
//	halt PID                stop a process
//	lives WHO...            wait until witnesses live (see runwitness_test.go), from now on
//	received WHO SIGNAL     wait until a witness has received the signal
//	spared WHO SIGNAL       a witness has not received the signal
//	sequel A B TIME         B, which won at the time, lives, and A has not lived since before that
//	dead WHO                wait until no process of a witness is left
//	hangup NAME             the reader of its stdout closes the pipe
//	stall NAME              its stdout is not read any more, and is full; on Linux
//	readon NAME             its stdout is read again, behind what fills it; on Linux
//	partakes ELECTION N [ALL]   wait until N candidates, of ALL, take part in transfers
//	capture VARIABLE,... PATTERN    what the groups of the pattern match in stdout
//	objects stdout|stderr   each line is a JSON object
//	keys N                  etcd has N keys of candidates
//	leases N                etcd has N leases
//	nothing                 etcd has no keys and no leases
//	etcd WHAT ARG...        do something to etcd, see administration
//
// stdout and stderr match what these commands have read. $HOST is the name of the machine, $CACHE the
// user's cache directory, $ESC an escape character, $B a text that is not UTF-8. At the end no process
// is left.
func TestScript(t *testing.T) {
	t.Parallel()
	heedHangups(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output() // for scripts that build
	require.NoError(t, err)
	gocache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(env *testscript.Env) error {
			s := &script{borrowed(env.T().(testing.TB)), make(map[string]*clitest.Process)}
			env.Vars = append(append(env.Vars, s.env...), "B=B\xfe", "ESC=\x1b", "HOST="+host, "CACHE="+cache, "GOCACHE="+gocache, "GOMODCACHE="+modules)
			env.Values[key{}] = s
			return nil
		},
		Cmds: commands(),
	})
}

// late are the scripts that end last, because they wait.
var late = []string{"run-standby", "run-hang", "away", "etcd", "observe-all", "run-wait", "run-again", "run-health", "silent", "heartbeat", "bench-peers"}

// scripts are all scripts. Those that wait are the last ones, of which package testing starts most first.
func scripts(t *testing.T) []string {
	t.Helper()
	all := glob("testdata/script/*.txtar")
	waits := func(path string) int {
		return slices.Index(late, strings.TrimSuffix(filepath.Base(path), ".txtar"))
	}
	for i, name := range late {
		require.True(t, slices.ContainsFunc(all, func(path string) bool { return waits(path) == i }), "there is no script %s", name)
	}
	slices.SortStableFunc(all, func(a, b string) int { return waits(a) - waits(b) })
	return all
}

// script is what the commands of a script share.
type script struct {
	*etcd
	processes map[string]*clitest.Process
}

// key is the key of the script among testscript's values.
type key struct{}

// commands returns all commands of a script.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := make(map[string]func(*testscript.TestScript, bool, []string))
	for name, command := range scriptCommands {
		all[name] = func(ts *testscript.TestScript, negated bool, args []string) {
			positive(ts, negated)
			command(ts, ts.Value(key{}).(*script), args)
		}
	}
	for name, command := range processCommands {
		all[name] = func(ts *testscript.TestScript, negated bool, args []string) {
			positive(ts, negated)
			command(ts, ts.Value(key{}).(*script).processes[args[0]], args[1:])
		}
	}
	return all
}

// positive fails if a command has "!" before it, which none of them supports.
func positive(ts *testscript.TestScript, negated bool) {
	if negated {
		ts.Fatalf("this command cannot be negated")
	}
}

// scriptCommands are those that concern etcd, or start something.
var scriptCommands = map[string]func(*testscript.TestScript, *script, []string){
	"usage": func(_ *testscript.TestScript, s *script, args []string) { requireUsage(s.t, args[0], args[1:]...) },
	"exits": func(ts *testscript.TestScript, _ *script, args []string) {
		code, err := 0, ts.Exec("eldest", args[1:]...)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if code != number(ts, args[0]) {
			ts.Fatalf("exit code %d", code)
		}
	},
	"start": func(ts *testscript.TestScript, s *script, args []string) { s.begin(ts, args[0], args[1:]...) },
	"stand": func(ts *testscript.TestScript, s *script, args []string) {
		p := s.begin(ts, args[0], append([]string{"campaign", args[1], args[2], "--json", "--ttl", "30s"}, args[3:]...)...)
		if first := p.Event("registered"); first["queue"] == 1.0 {
			note(ts, args[0], p.Event("leader"))
		} else {
			note(ts, args[0], first, p.Event("waiting"))
		}
	},
	"event": func(ts *testscript.TestScript, s *script, args []string) {
		p, missing := s.processes[args[0]], args[1:]
		if len(missing) == 1 {
			note(ts, args[0], p.Event(missing[0]))
			return
		}
		for missing = slices.Clone(missing); len(missing) > 0; {
			line := p.Line()
			require.NotEmpty(p.T, line, "no %v", missing)
			o := parse[object](p.T, line)
			missing = slices.DeleteFunc(missing, func(name string) bool { return o["event"] == name })
			note(ts, args[0], o)
		}
	},
	"told": func(ts *testscript.TestScript, s *script, args []string) {
		note(ts, args[0], s.processes[args[0]].Told(args[1]))
	},
	"becomes": func(ts *testscript.TestScript, s *script, args []string) {
		o := s.processes[args[0]].Event("status")
		for o["role"] != args[1] { // those in between may be skipped or written
			o = s.processes[args[0]].Event("status")
		}
		note(ts, args[0], o)
	},
	"get": func(ts *testscript.TestScript, s *script, args []string) {
		at := served(s.processes[args[0]])
		ts.Setenv(args[0]+"_http", at)
		code, body := get(s.t, at+args[2])
		if code != number(ts, args[1]) {
			ts.Fatalf("%d: %s", code, body)
		}
		fmt.Fprint(ts.Stdout(), body)
	},
	"post": func(ts *testscript.TestScript, s *script, args []string) {
		code, body := send(s.t, http.MethodPost, args[1], args[2])
		if code != number(ts, args[0]) {
			ts.Fatalf("%d: %s", code, body)
		}
		fmt.Fprint(ts.Stdout(), body)
	},
	"partakes": func(ts *testscript.TestScript, s *script, args []string) {
		rows := s.partakes(args[0], number(ts, args[1]))
		for end := time.Now().Add(patience); len(args) > 2 && len(rows) != number(ts, args[2]); {
			if time.Now().After(end) {
				ts.Fatalf("%d candidates", len(rows))
			}
			rows = s.partakes(args[0], number(ts, args[1]))
		}
	},
	"capture": func(ts *testscript.TestScript, _ *script, args []string) {
		found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
		for i, variable := range strings.Split(args[0], ",") {
			if i+1 >= len(found) {
				ts.Fatalf("no match")
			}
			ts.Setenv(variable, found[i+1])
		}
	},
	"objects": func(ts *testscript.TestScript, _ *script, args []string) {
		for line := range strings.Lines(ts.ReadFile(args[0])) {
			ts.Check(json.Unmarshal([]byte(line), new(object)))
		}
	},
	"keys": func(ts *testscript.TestScript, s *script, args []string) {
		require.Len(s.t, s.candidates(), number(ts, args[0]))
	},
	"leases": func(ts *testscript.TestScript, s *script, args []string) {
		require.Equal(s.t, number(ts, args[0]), s.leases())
	},
	"nothing": func(_ *testscript.TestScript, s *script, _ []string) {
		require.Empty(s.t, s.keys())
		require.Zero(s.t, s.leases())
	},
	"etcd": func(ts *testscript.TestScript, s *script, args []string) {
		ts.Check(administration[args[0]](s.etcd, args[1:]))
	},
}

// processCommands are those that concern a process.
var processCommands = map[string]func(*testscript.TestScript, *clitest.Process, []string){
	"line": func(ts *testscript.TestScript, p *clitest.Process, args []string) {
		for more := true; more; {
			line := p.Line()
			more = len(args) > 0 && line != "" && !strings.Contains(line, args[0])
			fmt.Fprint(ts.Stdout(), line)
		}
	},
	"says": func(_ *testscript.TestScript, p *clitest.Process, args []string) { p.Says(args[0]) },
	"signal": func(_ *testscript.TestScript, p *clitest.Process, args []string) {
		if args[0] == "STOP" {
			clitest.Halt(p.T, p.Process)
			return
		}
		p.Signal(signals[args[0]])
	},
	"ended": func(ts *testscript.TestScript, p *clitest.Process, args []string) {
		p.Exits(number(ts, args[0]))
		fmt.Fprint(ts.Stderr(), p.Errors())
	},
	"ends": func(ts *testscript.TestScript, p *clitest.Process, args []string) {
		p.Ends(number(ts, args[0]))
		fmt.Fprint(ts.Stderr(), p.Errors())
	},
	"shows": func(_ *testscript.TestScript, p *clitest.Process, args []string) {
		p.Eventually(func() bool {
			_, body := get(p.T, served(p)+args[0])
			return !slices.ContainsFunc(args[1:], func(text string) bool { return !strings.Contains(body, text) })
		}, "%s does not show %q", args[0], args[1:])
	},
	"silent": func(ts *testscript.TestScript, p *clitest.Process, _ []string) {
		if _, err := net.Dial("tcp", strings.TrimPrefix(served(p), "http://")); err == nil {
			ts.Fatalf("it listens")
		}
	},
	"hangup": func(_ *testscript.TestScript, p *clitest.Process, _ []string) {
		// The reader in this process holds the pipe open; a deadline ends it.
		require.NoError(p.T, p.Out.SetReadDeadline(time.Now()))
		require.Empty(p.T, p.Rest())
		require.NoError(p.T, p.Out.Close())
	},
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL, "CONT": syscall.SIGCONT,
}

// administration is what scripts do to their etcd.
var administration = map[string]func(e *etcd, args []string) error{
	// put KEY VALUE [LEASE]
	"put": func(e *etcd, args []string) error {
		var options []clientv3.OpOption
		if len(args) > 2 {
			options = append(options, clientv3.WithLease(leaseID(args[2])))
		}
		_, err := e.client.Put(e.bounded(), args[0], args[1], options...)
		return err
	},
	"delete": func(e *etcd, args []string) error { e.delete(args[0]); return nil },
	"revoke": func(e *etcd, args []string) error {
		_, err := e.client.Revoke(e.bounded(), leaseID(args[0]))
		return err
	},
	"kill":  func(e *etcd, _ []string) error { e.spoiled = true; return e.Member(0).Kill() },
	"start": func(e *etcd, _ []string) error { return e.Member(0).Restart(e.bounded()) },
	"stop":  func(e *etcd, _ []string) error { e.spoiled = true; return e.Member(0).Stop() },
	"cont":  func(e *etcd, _ []string) error { return e.Member(0).Cont() },
	// corrupt on|off: etcd answers, and refuses everything
	"corrupt": func(e *etcd, args []string) error {
		e.spoiled = true
		action := map[string]pb.AlarmRequest_AlarmAction{"on": pb.AlarmRequest_ACTIVATE, "off": pb.AlarmRequest_DEACTIVATE}[args[0]]
		_, err := pb.NewMaintenanceClient(e.client.ActiveConnection()).Alarm(e.bounded(), &pb.AlarmRequest{
			Action: action, MemberID: e.Member(0).ID(), Alarm: pb.AlarmType_CORRUPT,
		})
		return err
	},
	// role NAME PREFIX
	"role": func(e *etcd, args []string) error {
		_, err := e.client.RoleAdd(e.bounded(), args[0])
		if err == nil {
			_, err = e.client.RoleGrantPermission(e.bounded(), args[0], args[1], clientv3.GetPrefixRangeEnd(args[1]), clientv3.PermissionType(clientv3.PermReadWrite))
		}
		return err
	},
	// user NAME PASSWORD [ROLE]
	"user": func(e *etcd, args []string) error {
		_, err := e.client.UserAdd(e.bounded(), args[0], args[1])
		if err == nil && len(args) > 2 {
			_, err = e.client.UserGrantRole(e.bounded(), args[0], args[2])
		}
		return err
	},
	"authenticate": func(e *etcd, _ []string) error {
		e.spoiled = true
		_, err := e.client.AuthEnable(e.bounded())
		return err
	},
}

// leaseID reads a lease as it is shown; 0 is none.
func leaseID(hex string) clientv3.LeaseID {
	id, _ := strconv.ParseInt(hex, 16, 64)
	return clientv3.LeaseID(id)
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// begin starts a command with the script's environment.
func (s *script) begin(ts *testscript.TestScript, name string, args ...string) *clitest.Process {
	e := s.changed(func(cmd *exec.Cmd) { cmd.Dir = ts.Getenv("WORK") })
	e.env = slices.Clip(e.env)
	for _, variable := range []string{"ELDEST_ENDPOINTS", "ELDEST_NAMESPACE", "ELDEST_USER", "ELDEST_PASSWORD", "ELDEST_DIAL_TIMEOUT", "ELDEST_COMMAND_TIMEOUT", "ELDEST_TOKEN", "ELDEST_CAUSE", "TMPDIR", "MINE", signsIn} {
		e.env = append(e.env, variable+"="+ts.Getenv(variable))
	}
	p := e.start(args...)
	s.processes[name] = p
	ts.Setenv(name+"_pid", strconv.Itoa(p.Process.Pid))
	return p
}

// note makes variables of the fields of events, and prints the events.
func note(ts *testscript.TestScript, name string, events ...object) {
	fields := make(object)
	for _, o := range events {
		maps.Copy(fields, o)
		line, err := json.Marshal(o)
		ts.Check(err)
		fmt.Fprintf(ts.Stdout(), "%s\n", line)
	}
	for field, value := range fields {
		text := fmt.Sprint(value)
		if number, ok := value.(float64); ok {
			text = strconv.FormatFloat(number, 'f', -1, 64)
		}
		ts.Setenv(name+"_"+field, text)
		ts.Setenv(name+"_"+strings.ToUpper(field), strings.ToUpper(text))
	}
}

// served returns the address at which a process serves.
func served(p *clitest.Process) string {
	p.T.Helper()
	var found []string
	where := regexp.MustCompile(`serving (http://127\.0\.0\.1:\d+)/metrics`)
	p.Eventually(func() bool {
		found = where.FindStringSubmatch(p.Errors())
		return found != nil
	}, "%q never said where it serves", p.Args[1:])
	return found[1]
}

// get sends an HTTP GET, and returns the code and the body.
func get(t testing.TB, url string) (int, string) {
	t.Helper()
	return send(t, http.MethodGet, url, "")
}

func send(t testing.TB, method, url, body string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}
