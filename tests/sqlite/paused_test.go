package main

import (
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
			node := func(id string, more ...string) *process {
				return start(t, program, append([]string{
					"--election", election, "--node", id, "--db", file, "--ttl", "6s", "--every", "10ms",
					"--endpoints", strings.Join(etcd.Endpoints(), ","), "--fence=" + strconv.FormatBool(fenced),
				}, more...)...)
			}
			a := node("a", "--step")
			older := a.until(`^a leads with token (\d+) and continues from 0$`)
			a.until(`^a has checked that it leads; press Enter, and it writes (1)$`)
			a.enter()
			a.until(`^a wrote (1)$`)
			a.until(`^a has checked that it leads; press Enter, and it writes (2)$`)
			a.stop()

			b := node("b", "--ttl", "30s") // no fault happens to this node
			newer := b.until(`^b leads with token (\d+) and continues from 1$`)
			b.until(`^b wrote (3)$`)
			a.enter()
			a.signal(syscall.SIGCONT)
			if fenced {
				require.Equal(t, newer, a.until(`^a was refused: eldest: fence election "counting, fenced": not leading: token `+older+` is older than (\d+), the newest seen$`))
			} else {
				a.until(`^a wrote (2)$`)
			}
			require.NoError(t, a.stdin.Close())
			a.signal(syscall.SIGTERM)
			a.ends(0)
			b.signal(syscall.SIGTERM)
			b.ends(0)

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
			start(t, program, args...).ends(2)
		}
	})
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
