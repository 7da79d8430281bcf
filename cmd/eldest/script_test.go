package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// TestScript runs the scripts of testdata/script, each on an etcd of its own. Beside the commands
// of testscript there are these:
//
//	exits CODE ARG...       run "eldest ARG...", which must end with the exit code
//	start NAME ARG...       start "eldest ARG..."
//	event NAME EVENT        read the next line of stdout, which must be the event; its fields
//	                        key, lease and token become $NAME_key and so on, in upper case
//	                        $NAME_KEY
//	line NAME               read the next line of stdout
//	says NAME TEXT          wait until stderr has the text
//	signal NAME SIGNAL      send TERM or INT
//	ended NAME CODE         wait for the end, with nothing more on stdout
//	stand NAME ELECTION VALUE FLAG...   start a campaign and read up to "leader" or "waiting"
//	partakes ELECTION N     wait until N candidates take part in transfers
//	objects                 each line of stdout is a JSON object
//	keys N                  etcd has N keys, beside those through which candidates are asked
//	leases N                etcd has N leases
//
// What the commands read is matched by stdout and stderr.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			s := &script{borrowed(env.T().(testing.TB)), make(map[string]*clitest.Process)}
			env.Vars = append(append(env.Vars, s.env...), "B=B\xfe")
			env.Values[key{}] = s
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
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
				fmt.Fprint(ts.Stdout(), of(ts).processes[args[0]].Line())
			},
			"says": func(ts *testscript.TestScript, _ bool, args []string) { of(ts).processes[args[0]].Says(args[1]) },
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				of(ts).processes[args[0]].Signal(map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}[args[1]])
			},
			"ended": func(ts *testscript.TestScript, _ bool, args []string) {
				p := of(ts).processes[args[0]]
				p.Exits(number(ts, args[1]))
				fmt.Fprint(ts.Stderr(), p.Errors())
			},
			"partakes": func(ts *testscript.TestScript, _ bool, args []string) {
				of(ts).partakes(args[0], number(ts, args[1]))
			},
			"objects": func(ts *testscript.TestScript, _ bool, _ []string) {
				for line := range strings.Lines(ts.ReadFile("stdout")) {
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
		},
	})
}

// script is what the commands of a script share.
type script struct {
	*etcd
	processes map[string]*clitest.Process
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
	for _, variable := range []string{"ELDEST_ENDPOINTS", "ELDEST_NAMESPACE", "ELDEST_USER", "ELDEST_PASSWORD"} {
		e.env = append(e.env, variable+"="+ts.Getenv(variable))
	}
	s.processes[name] = e.start(args...)
}

// event reads an event of a process.
func (s *script) event(ts *testscript.TestScript, name, event string) object {
	o := s.processes[name].Event(event)
	for _, field := range []string{"key", "lease", "token"} {
		if value, ok := o[field]; ok {
			ts.Setenv(name+"_"+field, fmt.Sprint(value))
			ts.Setenv(name+"_"+strings.ToUpper(field), strings.ToUpper(fmt.Sprint(value)))
		}
	}
	line, err := json.Marshal(o)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", line)
	return o
}
