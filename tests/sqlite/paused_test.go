package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 19, in a database: a leader is stopped between its last check and its write, for
// longer than its lease. The next one leads and writes. The first one continues and writes: SQLite
// refuses it. Without the fence SQLite accepts the write, and the counter goes back: this shows
// that the fence is needed.
func TestRequirement19PausedLeader(t *testing.T) {
	program := build(t)
	etcd := etcdtest.Start(t, etcdtest.Config{})
	for name, fenced := range map[string]bool{"fenced": true, "not fenced": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "a file?#%.db")
			election := "counting, " + name
			node := func(id string, more ...string) *etcdtest.Program {
				return etcdtest.Run(t, exec.Command(program, append([]string{
					"--election", election, "--node", id, "--db", file, "--ttl", "6s", "--every", "10ms",
					"--endpoints", strings.Join(etcd.Endpoints(), ","), "--fence=" + strconv.FormatBool(fenced),
				}, more...)...))
			}
			a := node("a", "--step")
			older := a.Line(`^a leads with token (\d+) and continues from 0$`)[1]
			a.Line(`^a has checked that it leads; press Enter, and it writes (1)$`)
			a.Send("")
			a.Line(`^a wrote (1)$`)
			a.Line(`^a has checked that it leads; press Enter, and it writes (2)$`)
			a.Signal(syscall.SIGSTOP)

			b := node("b", "--ttl", "30s") // no fault happens to this node
			newer := b.Line(`^b leads with token (\d+) and continues from 1$`)[1]
			b.Line(`^b wrote (3)$`)
			a.Send("")
			a.Signal(syscall.SIGCONT)
			if fenced {
				require.Equal(t, newer, a.Line(`^a was refused: eldest: fence election "counting, fenced": not leading: token ` + older + ` is older than (\d+), the newest seen$`)[1])
			} else {
				a.Line(`^a wrote (2)$`)
			}
			a.CloseInput()
			a.Signal(syscall.SIGTERM)
			require.Zero(t, a.End())
			b.Signal(syscall.SIGTERM)
			require.Zero(t, b.End())

			trail := open(t, file, fenced).trail(t)
			require.GreaterOrEqual(t, len(trail), 3)
			require.Equal(t, entry{"a", number(t, older), 1}, trail[0])
			back := []entry{}
			for i, e := range trail[1:] {
				if e.n != trail[i].n+1 || e.token < trail[i].token {
					back = append(back, e)
				}
			}
			if fenced {
				require.Empty(t, back, "each number was written once, in order")
			} else {
				require.Contains(t, back, entry{"a", number(t, older), 2}, "b had written 2 and 3")
			}
		})
	}
	t.Run("bad flags", func(t *testing.T) {
		for _, args := range [][]string{nil, {"--node", "a"}, {"--db", "x"}, {"--node", "a", "--db", "x", "more"}, {"--unknown"}} {
			require.Equal(t, 2, etcdtest.Run(t, exec.Command(program, args...)).End())
		}
	})
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
