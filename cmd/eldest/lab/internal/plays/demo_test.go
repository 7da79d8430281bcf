package plays_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/demo"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// unhurried is a TTL half of which, the bound on a hand-over that waits for no lease, is long for a
// machine that is busy with other tests: such a hand-over takes milliseconds. The bound itself
// cannot be longer: see TestToldIsShorterThanWhatALeaseHasLeft.
const unhurried = "6s"

// output is one of the forms of a command's output.
type output struct {
	line  string // the command line
	check func(*testing.T, *performance)
}

// The service takes longer than all other commands, and therefore begins before these. It is carried out
// once, with its output in one of the forms.
func TestService(t *testing.T) {
	var running []*performance
	forms := etcdtest.Share(t, 1, output{"service --seed 7 --ttl " + unhurried, serviceForPeople}, output{"service --seed 1 --rounds 1 --json --ttl " + unhurried, serviceForPrograms})
	for _, form := range forms {
		running = append(running, perform(t, strings.Fields(form.line)...))
	}
	t.Parallel()
	for i, form := range forms {
		form.check(t, running[i])
	}
}

// The same with the demo.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, form := range etcdtest.Share(t, 1, output{"demo --members 1 --candidates 3 --ttl " + unhurried, demoForPeople}, output{"demo --json --ttl " + unhurried, demoForPrograms}) {
		form.check(t, perform(t, strings.Fields(form.line)...))
	}
}

// requireText checks that a command succeeds, and that its output has all parts.
func requireText(t *testing.T, p *performance, parts ...string) {
	t.Helper()
	text := strings.Join(p.Rest(), "\n")
	require.Zero(t, p.exit(), text)
	for _, part := range append(parts, "All checks passed.") {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "\x1b", "colours, though this is no terminal")
	require.NotContains(t, text, "FAILED")
	require.Empty(t, p.left())
}

func demoForPeople(t *testing.T, p *performance) {
	t.Helper()
	requireText(t, p,
		"c1        LEADS with token 2",
		"c3        waits for c2's key",
		"queue: c1(leader, token 2) <- c2 <- c3\n",
		"sends SIGKILL to c2, the leader",
		"writes as c1, with token 2: REFUSED by etcd",
		"hand-over: c1 -> c2, ",
		`Skipped: "The leader's member is partitioned" requires 3 members`,
		"ok     one leader at any time",
		"ok     tokens rise")
}

func serviceForPeople(t *testing.T, p *performance) {
	t.Helper()
	requireText(t, p,
		"each step once, seed 7",
		"n1      LEADS with token 2",
		"n3      follows n1, token 2",
		"sends SIGTERM to n1, the leader",
		"sends SIGKILL to n",
		"sent m", "no answer",
		"sends SIGSTOP to n", "sends SIGCONT to n",
		"the outcome is unknown",
		"the leader stayed",
		"ok     no acknowledged write is lost",
		"ok     every fault took effect         1 stop, 1 kill, 1 suspension, 1 leader and 1 follower partitioned")
}

// programs returns all lines of a command with --json: JSON objects, the last one the summary.
func programs(t *testing.T, p *performance, summary any) []string {
	t.Helper()
	lines := p.Rest()
	require.Zero(t, p.exit(), strings.Join(lines, "\n"))
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), summary))
	require.Empty(t, p.left())
	return lines
}

func demoForPrograms(t *testing.T, p *performance) {
	t.Helper()
	var sum demo.Summary
	programs(t, p, &sum)
	require.Equal(t, "summary", sum.Event)
	require.True(t, sum.OK)
	require.Len(t, sum.Checks, 9)
	var actions []scenario.Action
	for _, h := range sum.Handovers {
		actions = append(actions, h.Action)
		require.Positive(t, h.TookMS)
		require.Greater(t, h.NewToken, h.OldToken)
	}
	require.Equal(t, []scenario.Action{scenario.Resign, scenario.Kill, scenario.Silence, scenario.Delete, scenario.Cut}, actions)
	// The partitioned leader had stopped before the next one began.
	partition := sum.Handovers[4]
	require.Positive(t, partition.NeitherMS)
	require.Greater(t, partition.TookMS, partition.NeitherMS)
}

// --duration continues with the next round, and begins no step after it. On a busy machine one round may
// take longer.
func TestDemoDuration(t *testing.T) {
	t.Parallel()
	const duration, round = 9 * time.Second, 5 // steps
	const slack = 2 * time.Second              // the demo counts from some time before the first candidate registers
	var sum demo.Summary
	p := perform(t, "demo", "--json", "--members", "1", "--candidates", "4", "--ttl", "4s", "--duration", duration.String())
	lines := programs(t, p, &sum)
	var registered, settled time.Time // the first candidate, the newest step
	steps := 0
	for _, line := range lines {
		var f scenario.Fact
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		switch {
		case registered.IsZero():
			registered = f.At
		case f.Kind == scenario.Settled && f.Token > 0:
			steps++
			settled = f.At
		case f.Kind == scenario.Acted && f.Action != scenario.Leave:
			require.Less(t, f.At.Sub(registered), duration+slack, "a step begins too late")
		}
	}
	require.True(t, steps > 1+round || settled.Sub(registered) >= duration-slack, "%d steps in %v", steps, settled.Sub(registered))
}

func serviceForPrograms(t *testing.T, p *performance) {
	t.Helper()
	var sum service.Summary
	lines := programs(t, p, &sum)
	require.Equal(t, "summary", sum.Event)
	require.True(t, sum.OK, "%v %s", story.Failed(sum.Checks), sum.Broken)
	require.Len(t, sum.Checks, 12)
	require.Equal(t, uint64(1), sum.Seed)
	actions := make(map[scenario.Action]int)
	for i, f := range sum.Faults {
		actions[f.Action]++
		require.Positive(t, f.Done)
		if f.Action == scenario.CutFollower {
			require.Zero(t, f.NewToken)
			continue
		}
		require.Greater(t, f.NewToken, f.OldToken)
		if i > 0 {
			require.GreaterOrEqual(t, f.OldToken, sum.Faults[i-1].OldToken)
		}
	}
	require.Equal(t, map[scenario.Action]int{scenario.Resign: 1, scenario.Kill: 1, scenario.Suspend: 1, scenario.Cut: 1, scenario.CutFollower: 1}, actions)
	attempts := 0
	for _, line := range lines {
		var a service.Attempt
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		if a.Event == "attempt" {
			attempts++
			require.NotEmpty(t, a.Outcome)
			require.True(t, a.Begin.Before(a.At))
		}
	}
	require.Greater(t, attempts, 100)
}

// ending is the end of a demo that is not completed.
type ending struct {
	line   string
	action string // during which it is ended; "": during its start
	least  int    // the least number of its processes then
	end    syscall.Signal
	code   int
}

// A demo that is ended leaves neither a process nor data, at any time: by a signal, by a kill, or
// because its output is not read, as in "eldest demo | head".
func TestADemoThatIsEndedLeavesNothing(t *testing.T) {
	t.Parallel()
	const nobodyReads = syscall.Signal(0)
	always := []ending{
		// A leader has crashed, and all wait for its lease; some calls would wait for sixteen seconds more.
		{"service --ttl 8s", "kill", 2, syscall.SIGINT, 130},
		{"demo --ttl 8s --members 1", "kill", 4, syscall.SIGKILL, -1},
	}
	for _, c := range append(always, etcdtest.Share(t, 4, []ending{
		{"demo --ttl 8s", "kill", 4, syscall.SIGINT, 130},
		{"demo --ttl 8s", "kill", 4, syscall.SIGTERM, 130},
		{"demo --ttl 8s --members 1", "resign", 1, nobodyReads, 1},
		{"demo", "", 0, syscall.SIGINT, 130},
		{"service --ttl 4s", "cut", 2, syscall.SIGTERM, 130},
		{"service --ttl 4s", "resign", 2, syscall.SIGKILL, -1},
		{"service --ttl 4s", "resign", 1, nobodyReads, 1},
		{"service", "", 0, syscall.SIGINT, 130},
	}...)...) {
		t.Run(c.line+" "+c.action+" "+c.end.String(), func(t *testing.T) {
			t.Parallel()
			p := perform(t, append(strings.Fields(c.line), "--json")...)
			if c.action == "" {
				require.Eventually(t, func() bool { return len(p.left()) > 0 }, limit, time.Millisecond)
			} else {
				p.until("action", c.action)
			}
			require.NotEmpty(t, p.left())
			took := p.leavesNothing(c.least, func() {
				if c.end == nobodyReads {
					require.NoError(t, p.Out.Close())
					return
				}
				p.Signal(c.end)
			}, c.code)
			require.Less(t, took, 15*time.Second)
		})
	}
}
