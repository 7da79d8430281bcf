package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestScript runs the scripts of testdata/script, each on an etcd of its own. Beside the commands
// of testscript there are these:
//
//	usage REASON ARG...     "eldest ARG..." must be refused as bad usage, for the reason
//	exits CODE ARG...       run "eldest ARG...", which must end with the exit code
//	start NAME ARG...       start "eldest ARG..."; its process ID is $NAME_pid
//	event NAME EVENT        read the next line of stdout, which must be the event; its fields
//	                        become $NAME_key and so on, in upper case $NAME_KEY
//	told NAME EVENT         read stderr up to the event, whose fields become variables as well
//	becomes NAME ROLE       read the events of a node up to the status with the role
//	line NAME [TEXT]        read the next line of stdout, or the lines up to one with the text
//	says NAME TEXT          wait until stderr has the text
//	signal NAME SIGNAL      send TERM, INT, KILL, STOP or CONT
//	ended NAME CODE         wait for the end, with nothing more on stdout
//	ends NAME CODE          wait for the end, whatever is left on stdout
//	stand NAME ELECTION VALUE FLAG...   start a campaign and read up to "leader" or "waiting"
//	get NAME CODE PATH      ask what --http serves; the body becomes stdout, $NAME_http is where
//	shows NAME PATH TEXT... ask until the body has all of the texts
//	silent NAME             nobody listens any more where --http served
//	stall NAME              nobody reads its stdout any more, and it is full; on Linux
//	readon NAME             somebody reads again, behind what fills it; on Linux
//	partakes ELECTION N [ALL]   wait until N candidates, of ALL, take part in transfers
//	capture VARIABLE PATTERN    what the first group of the pattern matches in stdout
//	objects stdout|stderr   each line is a JSON object
//	left ELECTION           wait until no keeper of "eldest run" is left
//	keys N                  etcd has N keys, beside those through which candidates are asked
//	leases N                etcd has N leases
//	nothing                 etcd has no keys and no leases
//	etcd WHAT ARG...        do something to etcd, see administration
//
// What the commands read is matched by stdout and stderr. $HOST is the name of the machine, $ESC
// an escape character, $B a text that is not UTF-8.
func TestScript(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			s := &script{borrowed(env.T().(testing.TB)), make(map[string]*running)}
			env.Vars = append(append(env.Vars, s.env...), "B=B\xfe", "ESC=\x1b", "HOST="+host)
			env.Values[key{}] = s
			return nil
		},
		Cmds: merged(systemCommands, map[string]func(*testscript.TestScript, bool, []string){
			"usage": func(ts *testscript.TestScript, _ bool, args []string) {
				requireUsage(of(ts).t, args[0], args[1:]...)
			},
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				code, err := 0, ts.Exec("eldest", args[1:]...)
				if exit := new(exec.ExitError); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if strconv.Itoa(code) != args[0] {
					ts.Fatalf("exit code %d", code)
				}
			},
			"start": func(ts *testscript.TestScript, _ bool, args []string) { of(ts).begin(ts, args[0], args[1:]...) },
			"event": func(ts *testscript.TestScript, _ bool, args []string) { of(ts).event(ts, args[0], args[1]) },
			"told": func(ts *testscript.TestScript, _ bool, args []string) {
				note(ts, args[0], of(ts).processes[args[0]].event(args[1]))
			},
			"becomes": func(ts *testscript.TestScript, _ bool, args []string) {
				for of(ts).event(ts, args[0], "status")["role"] != args[1] { // those in between may be skipped, or be told
				}
			},
			"stand": func(ts *testscript.TestScript, _ bool, args []string) {
				s, name := of(ts), args[0]
				s.begin(ts, name, append([]string{"campaign", args[1], args[2], "--json", "--ttl", "30s"}, args[3:]...)...)
				if first := s.event(ts, name, "registered"); first["queue"] == 1.0 {
					s.event(ts, name, "leader")
				} else {
					s.event(ts, name, "waiting")
				}
			},
			"line": func(ts *testscript.TestScript, _ bool, args []string) {
				for more := true; more; {
					line := of(ts).processes[args[0]].Line()
					more = len(args) > 1 && line != "" && !strings.Contains(line, args[1])
					fmt.Fprint(ts.Stdout(), line)
				}
			},
			"says": func(ts *testscript.TestScript, _ bool, args []string) { of(ts).processes[args[0]].Says(args[1]) },
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				of(ts).processes[args[0]].Signal(signals[args[1]])
			},
			"ended": func(ts *testscript.TestScript, _ bool, args []string) {
				p := of(ts).processes[args[0]]
				p.Exits(number(ts, args[1]))
				fmt.Fprint(ts.Stderr(), p.Errors())
			},
			"ends": func(ts *testscript.TestScript, _ bool, args []string) {
				p := of(ts).processes[args[0]]
				p.Ends(number(ts, args[1]))
				fmt.Fprint(ts.Stderr(), p.Errors())
			},
			"get": func(ts *testscript.TestScript, _ bool, args []string) {
				s := of(ts)
				at := served(s.processes[args[0]].Process)
				ts.Setenv(args[0]+"_http", at)
				code, body := get(s.t, at+args[2])
				if code != number(ts, args[1]) {
					ts.Fatalf("%d: %s", code, body)
				}
				fmt.Fprint(ts.Stdout(), body)
			},
			"shows": func(ts *testscript.TestScript, _ bool, args []string) {
				p := of(ts).processes[args[0]]
				p.Eventually(func() bool {
					_, body := get(p.T, served(p.Process)+args[1])
					return !slices.ContainsFunc(args[2:], func(text string) bool { return !strings.Contains(body, text) })
				}, 5*time.Millisecond, "%s does not show %q", args[1], args[2:])
			},
			"silent": func(ts *testscript.TestScript, _ bool, args []string) {
				if _, err := net.Dial("tcp", strings.TrimPrefix(served(of(ts).processes[args[0]].Process), "http://")); err == nil {
					ts.Fatalf("somebody listens")
				}
			},
			"partakes": func(ts *testscript.TestScript, _ bool, args []string) {
				rows := of(ts).partakes(args[0], number(ts, args[1]))
				for end := time.Now().Add(patience); len(args) > 2 && len(rows) != number(ts, args[2]); {
					if time.Now().After(end) {
						ts.Fatalf("%d candidates", len(rows))
					}
					rows = of(ts).partakes(args[0], number(ts, args[1]))
				}
			},
			"capture": func(ts *testscript.TestScript, _ bool, args []string) {
				found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
				if found == nil {
					ts.Fatalf("no match")
				}
				ts.Setenv(args[0], found[1])
			},
			"objects": func(ts *testscript.TestScript, _ bool, args []string) {
				for line := range strings.Lines(ts.ReadFile(args[0])) {
					ts.Check(json.Unmarshal([]byte(line), new(object)))
				}
			},
			"keys": func(ts *testscript.TestScript, _ bool, args []string) {
				if keys := of(ts).standing(); len(keys) != number(ts, args[0]) {
					ts.Fatalf("keys: %q", keys)
				}
			},
			"leases": func(ts *testscript.TestScript, _ bool, args []string) {
				if n := of(ts).leases(); n != number(ts, args[0]) {
					ts.Fatalf("%d leases", n)
				}
			},
			"nothing": func(ts *testscript.TestScript, _ bool, _ []string) {
				if keys, n := of(ts).keys(), of(ts).leases(); len(keys) > 0 || n > 0 {
					ts.Fatalf("keys: %q, %d leases", keys, n)
				}
			},
			"left": func(ts *testscript.TestScript, _ bool, args []string) { keepersEnd(of(ts).t, args[0]) },
			"etcd": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(administration[args[0]](of(ts).etcd, args[1:]))
			},
		}),
	})
}

// systemCommands are those that need Linux.
var systemCommands = map[string]func(*testscript.TestScript, bool, []string){}

func merged[K comparable, V any](more, all map[K]V) map[K]V {
	maps.Copy(all, more)
	return all
}

var signals = map[string]os.Signal{
	"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
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

// script is what the commands of a script share.
type script struct {
	*etcd
	processes map[string]*running
}

// key is where testscript has it.
type key struct{}

func of(ts *testscript.TestScript) *script { return ts.Value(key{}).(*script) }

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// begin starts a command with the script's environment.
func (s *script) begin(ts *testscript.TestScript, name string, args ...string) {
	e := s.with()
	for _, variable := range []string{"ENDPOINTS", "NAMESPACE", "USER", "PASSWORD", "DIAL_TIMEOUT", "COMMAND_TIMEOUT"} {
		e.env = append(e.env, "ELDEST_"+variable+"="+ts.Getenv("ELDEST_"+variable))
	}
	s.processes[name] = &running{Process: e.start(args...)}
	ts.Setenv(name+"_pid", strconv.Itoa(s.processes[name].Cmd.Process.Pid))
}

// event reads an event of a process.
func (s *script) event(ts *testscript.TestScript, name, event string) object {
	o := s.processes[name].Event(event)
	note(ts, name, o)
	return o
}

// note makes variables of an event, and shows it.
func note(ts *testscript.TestScript, name string, o object) {
	for field, value := range o {
		text := fmt.Sprint(value)
		if number, ok := value.(float64); ok {
			text = strconv.FormatFloat(number, 'f', -1, 64)
		}
		ts.Setenv(name+"_"+field, text)
		ts.Setenv(name+"_"+strings.ToUpper(field), strings.ToUpper(text))
	}
	line, err := json.Marshal(o)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", line)
}
