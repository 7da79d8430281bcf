//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// fault is a stage on which one run leads, with a program and its children, another one
// waits, and something happens to the first.
type fault struct {
	t    *testing.T
	name string // of the election
	*etcd
	// host is how the first reaches etcd.
	host   *etcdtest.Host
	diary  diary
	first  *running
	second *running
	key    string
	// keeper and program are the first's.
	keeper, program *os.Process
	began           time.Time
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

func (f *fault) eldest() *os.Process { return f.first.Cmd.Process }

// cut drops everything between the first and etcd, and sees to it that something was.
func (f *fault) cut(d etcdtest.Direction) {
	f.t.Helper()
	before := f.host.Stats()
	f.host.Drop(d)
	require.Eventually(f.t, func() bool { return f.host.Stats().Dropped != before.Dropped }, patience, time.Millisecond, "INVALID: nothing was dropped")
}

// TestRunIsDeadBeforeAnotherLeads is the promise of "eldest run", fault by fault: no sign
// of life of the program or of its children after another one has won, or begun to work.
// Exit codes and what else is promised are asked after that.
//
// Fails when the keeper is not told of the deadline, when it does not kill at the deadline
// or at the end of its pipe, when a lost lease is given back before the program is dead.
func TestRunIsDeadBeforeAnotherLeads(t *testing.T) {
	if !alone(t) {
		return
	}
	// This process adopts orphans, as the first process of a container does. Elsewhere the
	// kernel wakes a keeper that is stopped when its owner dies; here nobody does but ours.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	faults := map[string]struct {
		how  []string // of the program
		ttl  string
		more []string // flags
		// heartbeat is of both; "" is none.
		heartbeat string
		do        func(*fault)
		code      int // of the first; -1 is killed
		// then is asked at the end.
		then func(f *fault, last, win time.Time)
	}{
		"eldest killed": {
			how: []string{stubborn, parent}, ttl: "60s", code: -1,
			do: func(f *fault) { f.kill(f.eldest(), syscall.SIGKILL) },
			then: func(f *fault, last, win time.Time) {
				// The last renewal was a quarter of the TTL before, at most: the deadline was further away.
				require.Less(f.t, last.Sub(f.began), 3*time.Second, "it lived on until the deadline")
				require.Less(f.t, win.Sub(f.began), 30*time.Second, "its keeper left the lease to expire")
			},
		},
		// etcd cannot be told that it is dead, and its lease expires.
		"eldest cut off, then killed": {
			how: []string{stubborn, parent}, code: -1,
			do: func(f *fault) {
				f.cut(etcdtest.BothWays)
				f.kill(f.eldest(), syscall.SIGKILL)
			},
		},
		"eldest stopped": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do: func(f *fault) { f.kill(f.eldest(), syscall.SIGSTOP) },
			then: func(f *fault, last, _ time.Time) {
				require.True(f.t, f.diary.told("A", syscall.SIGTERM), "no SIGTERM before the SIGKILL")
				require.Greater(f.t, last.Sub(f.began), 500*time.Millisecond, "it was not left alone until the deadline was near")
			},
		},
		// Its lease would outlive the test.
		"eldest stopped, with heartbeats": {
			how: []string{stubborn, parent}, ttl: "1h", heartbeat: "4s", code: cli.ExitLost,
			do: func(f *fault) { f.kill(f.eldest(), syscall.SIGSTOP) },
			then: func(f *fault, _, _ time.Time) {
				require.True(f.t, f.diary.told("A", syscall.SIGTERM), "no SIGTERM before the SIGKILL")
			},
		},
		"cut off, with heartbeats": {
			how: []string{stubborn, parent}, ttl: "1h", heartbeat: "4s", code: cli.ExitLost,
			do: func(f *fault) { f.cut(etcdtest.BothWays) },
			then: func(f *fault, _, _ time.Time) {
				require.Contains(f.t, f.first.event("exited")["cause"], "SIGKILL")
			},
		},
		"keeper stopped, then cut off, with heartbeats": {
			how: []string{stubborn, parent}, ttl: "1h", heartbeat: "4s", code: cli.ExitLost,
			do: func(f *fault) {
				f.kill(f.keeper, syscall.SIGSTOP)
				f.diary.livesFor("A-away", 4500*time.Millisecond)
				f.cut(etcdtest.BothWays)
			},
		},
		"eldest stopped, without a grace": {
			how: []string{stubborn, parent}, code: cli.ExitLost, more: []string{"--grace", "0s"},
			do: func(f *fault) { f.kill(f.eldest(), syscall.SIGSTOP) },
			then: func(f *fault, _, _ time.Time) {
				require.False(f.t, f.diary.told("A", syscall.SIGTERM))
			},
		},
		"keeper killed": {
			how: []string{stubborn, parent}, ttl: "60s", code: cli.ExitFailed,
			do: func(f *fault) { f.kill(f.keeper, syscall.SIGKILL) },
			then: func(f *fault, _, _ time.Time) {
				why := fmt.Sprintf("the keeper of the program is gone: process %d, killed by SIGKILL", f.keeper.Pid)
				for _, event := range []string{"exited", "resigned", "failed"} {
					require.Contains(f.t, f.first.event(event)["cause"], why, event)
				}
			},
		},
		"keeper stopped, then cut off": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do: func(f *fault) {
				f.kill(f.keeper, syscall.SIGSTOP)
				// Renewals go on, and so does the program, past the deadline that the keeper knows.
				f.diary.livesFor("A-away", 6500*time.Millisecond)
				f.cut(etcdtest.BothWays)
			},
		},
		"keeper stopped, then eldest killed": {
			how: []string{stubborn, parent}, code: -1,
			do: func(f *fault) {
				f.kill(f.keeper, syscall.SIGSTOP)
				f.kill(f.eldest(), syscall.SIGKILL)
			},
		},
		"keeper stopped, and nobody to ask for health": {
			// The lease is lost while etcd can be reached: it could be given back at once,
			// and one child of the program is out of reach until the keeper is dealt with.
			how: []string{stubborn, parent}, code: cli.ExitLost, more: []string{"--health", "true", "--health-every", "1s"},
			do: func(f *fault) { f.kill(f.keeper, syscall.SIGSTOP) },
		},
		"program killed": {
			how: []string{stubborn, parent}, ttl: "60s", code: cli.ExitFailed,
			do: func(f *fault) { f.kill(f.program, syscall.SIGKILL) },
		},
		"program stopped, then cut off": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do: func(f *fault) {
				f.kill(f.program, syscall.SIGSTOP)
				f.cut(etcdtest.BothWays)
			},
			then: func(f *fault, _, _ time.Time) {
				require.True(f.t, f.diary.told("A", syscall.SIGTERM), "a program that stands still is woken for SIGTERM")
			},
		},
		"cut off": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do:   func(f *fault) { f.cut(etcdtest.BothWays) },
			then: func(f *fault, _, _ time.Time) { require.True(f.t, f.diary.told("A", syscall.SIGTERM)) },
		},
		"cut off, a program that obeys": {
			more: []string{"--grace", "2500ms"}, code: cli.ExitLost,
			do: func(f *fault) { f.cut(etcdtest.BothWays) },
			then: func(f *fault, _, _ time.Time) {
				require.True(f.t, f.diary.told("A", syscall.SIGTERM))
				require.Contains(f.t, f.first.Errors(), `"exit_code":0`, "it was not given the time to end by itself")
			},
		},
		"replies cut off": {
			how: []string{stubborn}, code: cli.ExitLost,
			do: func(f *fault) { f.cut(etcdtest.Outbound) },
		},
		"key deleted": {
			how: []string{stubborn, parent}, ttl: "60s", code: cli.ExitLost,
			do: func(f *fault) {
				f.delete(f.key)
			},
		},
		"etcd stopped": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do: func(f *fault) {
				require.NoError(f.t, f.Member(0).Stop())
				f.first.event("lost")
				f.diary.nobodyOf(f.t, "A")
				require.NoError(f.t, f.Member(0).Cont())
			},
		},
		"etcd killed": {
			how: []string{stubborn, parent}, code: cli.ExitLost,
			do: func(f *fault) {
				require.NoError(f.t, f.Member(0).Kill())
				f.first.event("lost")
				f.diary.nobodyOf(f.t, "A")
				require.NoError(f.t, f.Member(0).Restart(bounded(f.t)))
			},
		},
	}
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := borrowed
			if strings.HasPrefix(name, "etcd ") {
				etcd = own
			}
			f := &fault{t: t, name: "svc " + name, etcd: etcd(t), diary: newDiary(t)}
			f.host = f.Host(t)
			ttl := c.ttl
			if ttl == "" {
				ttl = "6s"
			}
			flags := []string{f.name, "--grace", "1s", "--ttl", ttl, "--endpoints"}
			if c.heartbeat != "" {
				flags = slices.Insert(flags, 1, "--heartbeat", c.heartbeat)
			}
			first := append(append(slices.Clone(flags), strings.Join(f.host.Endpoints(), ",")), c.more...)
			f.first = f.run(append(append(first, "--"), f.diary.program("A", c.how...)...)...)
			f.key = f.first.event("leader")["key"].(string)
			f.program = handle(t, f.first.pid())
			f.keeper = handle(t, clitest.Parent(t, f.program.Pid))
			require.Equal(t, f.eldest().Pid, clitest.Parent(t, f.keeper.Pid), "INVALID: no keeper")
			// The second one outlasts etcd's absence, by its TTL or standing again.
			f.second = f.run(append(append(flags, f.endpoint, "--restart", "on-failure", "--ttl", "20s", "--"), f.diary.program("B")...)...)
			f.second.event("waiting")
			f.diary.lives("A")
			if len(c.how) > 1 {
				f.diary.lives("A-near")
				f.diary.lives("A-away")
			}

			f.began = time.Now()
			c.do(f)
			win := timeOf(t, f.second.event("leader"))
			f.diary.lives("B")
			var last time.Time
			if name == "key deleted" {
				// Another leads in the moment of the deletion: what is promised is that the
				// program is dead as soon as the news is here, and not only by the deadline.
				f.first.event("exited")
			} else {
				last = f.diary.inTurn("A", "B", win)
			}
			_ = f.eldest().Signal(syscall.SIGCONT)
			f.first.Exits(c.code)
			f.diary.nobodyOf(t, "A")
			if c.then != nil {
				c.then(f, last, win)
			}

			f.second.Signal(syscall.SIGTERM)
			f.second.Exits(cli.ExitOK)
			f.diary.nobody(f.name)
			require.Empty(t, f.standing(), "a key is left")
		})
	}
}
