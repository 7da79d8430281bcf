//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// fault is a test environment in which one run leads, with a program and its children, another run
// waits, and something happens to the first run.
type fault struct {
	t    *testing.T
	name string // of the election
	*etcd
	// host is how the first reaches etcd.
	host          *etcdtest.Host
	first, second *clitest.Process
	key           string
	// These are the first's.
	eldest, keeper, program *os.Process
	began                   time.Time
}

// kill sends a signal to a process of the first.
func (f *fault) kill(p *os.Process, sig syscall.Signal) {
	f.t.Helper()
	if sig == syscall.SIGSTOP {
		clitest.Halt(f.t, p)
		return
	}
	require.NoError(f.t, p.Signal(sig))
}

// cut drops everything between the first and etcd, and waits until something was dropped.
func (f *fault) cut(d etcdtest.Direction) {
	f.t.Helper()
	before := f.host.Stats()
	f.host.Drop(d)
	require.Eventually(f.t, func() bool { return f.host.Stats().Dropped != before.Dropped }, patience, time.Millisecond, "INVALID: nothing was dropped")
}

// warned requires that the program was, or was not, sent SIGTERM before it was killed.
func (f *fault) warned(want bool) {
	f.t.Helper()
	require.Equal(f.t, want, f.told("A", syscall.SIGTERM), "SIGTERM before SIGKILL")
}

func init() {
	adoptOrphans = func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
}

const longer = 6500 * time.Millisecond // than the TTL of these tests

// faults are what happens to the first run. Its program ignores SIGTERM and has two children, unless
// obeys is set. By default the TTL is 6 s and the first run ends with cli.ExitLost.
var faults = map[string]struct {
	ttl       string
	heartbeat string // of both; "" is none
	flags     string
	obeys     bool
	do        func(*fault)
	code      int                                 // of the first; -1 is killed
	then      func(f *fault, last, win time.Time) // what else is promised
}{
	"eldest killed": {
		ttl: "60s", code: -1,
		do: func(f *fault) { f.kill(f.eldest, syscall.SIGKILL) },
		then: func(f *fault, last, win time.Time) {
			// The last renewal was a quarter of the TTL before, at most: the deadline was 40 s away, or more.
			require.Less(f.t, last.Sub(f.began), 10*time.Second, "it lived on until the deadline")
			require.Less(f.t, win.Sub(f.began), 30*time.Second, "its keeper left the lease to expire")
		},
	},
	// The keeper cannot reach etcd, and the lease expires.
	"eldest cut off, then killed": {
		code: -1,
		do: func(f *fault) {
			f.cut(etcdtest.BothWays)
			f.kill(f.eldest, syscall.SIGKILL)
		},
	},
	"eldest stopped": {
		do: func(f *fault) { f.kill(f.eldest, syscall.SIGSTOP) },
		then: func(f *fault, last, _ time.Time) {
			f.warned(true)
			require.Greater(f.t, last.Sub(f.began), 500*time.Millisecond, "it was not left alone until the deadline was near")
		},
	},
	// With heartbeats the lease would outlive the test.
	"eldest stopped, with heartbeats": {
		ttl: "1h", heartbeat: "4s",
		do:   func(f *fault) { f.kill(f.eldest, syscall.SIGSTOP) },
		then: func(f *fault, _, _ time.Time) { f.warned(true) },
	},
	"cut off, with heartbeats": {
		ttl: "1h", heartbeat: "4s", flags: "--command-timeout 2s",
		do:   func(f *fault) { f.cut(etcdtest.BothWays) },
		then: func(f *fault, _, _ time.Time) { require.Contains(f.t, f.first.Told("exited")["cause"], "SIGKILL") },
	},
	"keeper stopped, then cut off, with heartbeats": {
		ttl: "1h", heartbeat: "4s", flags: "--command-timeout 2s",
		do: func(f *fault) {
			f.kill(f.keeper, syscall.SIGSTOP)
			f.livesFor("A-away", 4500*time.Millisecond)
			f.cut(etcdtest.BothWays)
		},
	},
	"eldest stopped, without a grace": {
		flags: "--grace 0s",
		do:    func(f *fault) { f.kill(f.eldest, syscall.SIGSTOP) },
		then:  func(f *fault, _, _ time.Time) { f.warned(false) },
	},
	"keeper killed": {
		ttl: "60s", code: cli.ExitFailed,
		do: func(f *fault) { f.kill(f.keeper, syscall.SIGKILL) },
		then: func(f *fault, _, _ time.Time) {
			why := fmt.Sprintf("the keeper of the program has ended: process %d, killed by SIGKILL", f.keeper.Pid)
			for _, event := range []string{"exited", "resigned", "failed"} {
				require.Contains(f.t, f.first.Told(event)["cause"], why, event)
			}
		},
	},
	"keeper stopped, then cut off": {
		do: func(f *fault) {
			f.kill(f.keeper, syscall.SIGSTOP)
			// Renewals go on, and so does the program, past the deadline that the keeper has.
			f.livesFor("A-away", longer)
			f.cut(etcdtest.BothWays)
		},
	},
	"keeper stopped, then eldest killed": {
		code: -1,
		do: func(f *fault) {
			f.kill(f.keeper, syscall.SIGSTOP)
			f.kill(f.eldest, syscall.SIGKILL)
		},
	},
	// Only eldest notices the program's end, and the keeper cannot reach its children.
	"keeper stopped, then program killed": {
		ttl: "60s", code: cli.ExitFailed,
		do: func(f *fault) {
			f.kill(f.keeper, syscall.SIGSTOP)
			f.kill(f.program, syscall.SIGKILL)
		},
		then: func(f *fault, _, _ time.Time) {
			require.EqualValues(f.t, 137, f.first.Told("exited")["exit_code"])
			require.Contains(f.t, f.first.Told("resigned")["cause"], "it did not respond, and was killed")
		},
	},
	// The lease is lost while etcd can be reached: it could be revoked at once, and one child of the
	// program cannot be reached until the keeper is dealt with.
	"keeper stopped, and nobody to ask for health": {
		flags: "--health true --health-every 1s",
		do:    func(f *fault) { f.kill(f.keeper, syscall.SIGSTOP) },
	},
	"program killed": {
		ttl: "60s", code: cli.ExitFailed,
		do: func(f *fault) { f.kill(f.program, syscall.SIGKILL) },
	},
	"program stopped, then cut off": {
		do: func(f *fault) {
			f.kill(f.program, syscall.SIGSTOP)
			f.cut(etcdtest.BothWays)
		},
		then: func(f *fault, _, _ time.Time) { f.warned(true) }, // it is continued for that
	},
	"cut off": {
		do:   func(f *fault) { f.cut(etcdtest.BothWays) },
		then: func(f *fault, _, _ time.Time) { f.warned(true) },
	},
	"cut off, a program that obeys": {
		flags: "--grace 2500ms", obeys: true,
		do: func(f *fault) { f.cut(etcdtest.BothWays) },
		then: func(f *fault, _, _ time.Time) {
			f.warned(true)
			require.Contains(f.t, f.first.Errors(), `"exit_code":0`, "it was not given the time to end by itself")
		},
	},
	"replies cut off": {do: func(f *fault) { f.cut(etcdtest.Outbound) }},
	// Another candidate leads at the moment of the deletion. The guarantee is that the program is
	// dead as soon as the deletion is noticed, and not only by the deadline.
	"key deleted": {ttl: "60s", do: func(f *fault) { f.delete(f.key) }},
	"etcd stopped": {
		do: func(f *fault) {
			require.NoError(f.t, f.Member(0).Stop())
			f.first.Told("lost")
			f.dead("A")
			require.NoError(f.t, f.Member(0).Cont())
		},
	},
	"etcd killed": {
		do: func(f *fault) {
			require.NoError(f.t, f.Member(0).Kill())
			f.first.Told("lost")
			f.dead("A")
			require.NoError(f.t, f.Member(0).Restart(bounded(f.t)))
		},
	},
	// The lease and the key are kept while the program has its grace, which is half of the TTL:
	// without renewals the grace would be cut short.
	"eldest told to end": {
		ttl: "10s", flags: "--grace 5s", code: orderly,
		do: func(f *fault) { f.kill(f.eldest, syscall.SIGTERM) },
		then: func(f *fault, last, _ time.Time) {
			f.warned(true)
			require.Greater(f.t, last.Sub(f.began), 4*time.Second, "it did not have its grace")
		},
	},
}

// orderly is the exit code in the table for a run that was asked to end: 0 is cli.ExitLost there.
const orderly = -2

// essential are the faults that are always tried: one for each way in which a program dies in time. Its
// keeper sees the end of eldest, and the deadline, that of heartbeats as well; eldest sees the end of the
// keeper and of the program, the loss of the lease and that of the key; and it is asked to end. Mutants of
// tests/mutants name four of them.
var essential = []string{
	"eldest killed", "eldest stopped", "eldest stopped, with heartbeats", "keeper killed", "keeper stopped, then program killed", "cut off", "key deleted", "eldest told to end",
}

// tried returns the faults that are tried: the essential ones, and a third of the others.
func tried(t *testing.T) []string {
	t.Helper()
	names := slices.Sorted(maps.Keys(faults))
	require.Subset(t, names, essential)
	others := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(essential, name) })
	return append(etcdtest.Share(t, (len(others)+2)/3, others...), essential...)
}

// TestRunIsDeadBeforeAnotherLeads is the guarantee of "eldest run", fault by fault: no sign of life
// of the program or of its children after another candidate has won, or its program has begun to
// work. Exit codes and other guarantees are checked after that. An ordinary run tries a share of the faults.
//
// Fails when the keeper does not receive the deadline, when it does not kill at the deadline or at
// the end of its pipe, when a lost lease is revoked before the program is dead.
func TestRunIsDeadBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	var adopts int32
	require.NoError(t, unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&adopts)), 0, 0, 0))
	require.NotZero(t, adopts, "INVALID: see adoptOrphans")
	for _, name := range tried(t) {
		c := faults[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := borrowed(t)
			etcd.spoiled = strings.HasPrefix(name, "etcd ")
			f := &fault{t: t, name: "svc " + name, etcd: etcd}
			f.host = f.Host(t)
			here := t.TempDir()
			f.etcd = f.changed(func(cmd *exec.Cmd) { cmd.Dir = here })
			for _, variable := range []string{"TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
				f.etcd = f.with(variable + "=" + here)
			}
			ttl, code, how := c.ttl, c.code, []string{stubborn, parent}
			if ttl == "" {
				ttl = "6s"
			}
			switch code {
			case 0:
				code = cli.ExitLost
			case orderly:
				code = cli.ExitOK
			}
			if c.obeys {
				how = nil
			}
			flags := []string{f.name, "--grace", "1s", "--http", "0", "--ttl", ttl}
			if c.heartbeat != "" {
				flags = append(flags, "--heartbeat", c.heartbeat)
			}
			first := slices.Concat(flags, []string{"--endpoints", strings.Join(f.host.Endpoints(), ","), "--on-win", "true"}, strings.Fields(c.flags))
			f.first = f.run(slices.Concat(first, []string{"--", "witness", "A"}, how)...)
			f.key = f.first.Told("leader")["key"].(string)
			f.eldest = f.first.Process
			f.program, f.keeper = program(f.first)
			require.Equal(t, f.eldest.Pid, clitest.Parent(t, f.keeper.Pid), "INVALID: no keeper")
			// The second run survives the outage of etcd, by its TTL or by being a candidate again.
			f.second = f.run(append(flags, "--restart", "on-failure", "--ttl", "20s", "--", "witness", "B")...)
			f.second.Told("waiting")
			f.lives("A")
			if !c.obeys {
				f.lives("A-near", "A-away")
			}

			f.began = time.Now()
			c.do(f)
			win := timeOf(t, f.second.Told("leader"))
			var last time.Time
			if name == "key deleted" {
				f.lives("B")
				f.first.Told("exited")
			} else {
				last = f.inTurn("A", "B", win)
			}
			_ = f.eldest.Signal(syscall.SIGCONT)
			f.first.Exits(code)
			f.dead("A")
			if c.then != nil {
				c.then(f, last, win)
			}
			resigned(f.second)
			require.Empty(t, f.candidates(), "a key is left")
			noProcess(t, mark(t))
			left, err := os.ReadDir(here)
			require.NoError(t, err)
			require.Empty(t, left, "something is left on disk: where it was started, at home, or where temporary files go")
		})
	}
}

// The table of faults of docs/run.md has a row for each one that is tried, and no other.
func TestRunDocumentHasTheFaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/run.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "`TestRunIsDeadBeforeAnotherLeads/…` |")
	var rows []string
	for _, m := range regexp.MustCompile("\\| `([a-z, ]+)` \\|\n").FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(faults)), rows)
}
