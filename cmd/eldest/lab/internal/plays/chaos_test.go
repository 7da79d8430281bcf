//go:build linux

package plays_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// verdict is the part of chaos's --json output that the tests check.
type verdict struct {
	Command, Contender string
	Rounds, Tenures    int
	Acked, Fenced      int
	Interrupted        bool
	InvalidBecause     []string       `json:"invalid_because"`
	ByInvariant        map[string]int `json:"by_invariant"`
	Series             []struct{ Kept string }
}

func readVerdict(t *testing.T, text string) verdict {
	t.Helper()
	var v verdict
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// series runs chaos to its end. A run in which a fault took no effect, as on a machine that is busy
// with other tests, proves nothing, reports that, and is repeated.
func series(t *testing.T, args ...string) (p *performance, out string) {
	t.Helper()
	for range 3 {
		p = perform(t, append(args, "--dir", t.TempDir())...)
		out = strings.Join(p.Rest(), "\n")
		if p.exit() != cli.ExitProvesNothing {
			break
		}
	}
	return p, out
}

func TestChaosHolds(t *testing.T) {
	t.Parallel()
	object := filepath.Join(t.TempDir(), "x.json")
	p, table := series(t, "chaos", "--seed", "3", "--rounds", "4", "--participants", "3", "--json", object)
	require.Zero(t, p.exit(), table)
	require.Contains(t, table, "everything held: 0 violations")
	text, err := os.ReadFile(object)
	require.NoError(t, err)
	v := readVerdict(t, string(text))
	require.Equal(t, "eldest chaos --seed 3 --rounds 4 --participants 3", v.Command)
	require.Equal(t, 4, v.Rounds)
	require.Positive(t, v.Tenures)
	require.Positive(t, v.Acked)
	require.Positive(t, v.Fenced)
	require.Empty(t, v.InvalidBecause)
	require.FileExists(t, filepath.Join(v.Series[0].Kept, "history.jsonl"))
	require.Empty(t, p.left())
}

// A violation is found, and the command reports it.
func TestChaosFindsAMissingRule(t *testing.T) {
	t.Parallel()
	p, text := series(t, "chaos", "--seed", "3", "--rounds", "2", "--faults", "revoke", "--members", "1", "--participants", "3",
		"--without-rule", "deadline", "--json")
	v := readVerdict(t, text)
	require.Equal(t, 1, p.exit())
	require.Positive(t, v.ByInvariant["leading"])
}

func TestChaosThatIsEndedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			p := perform(t, "chaos", "--rounds", "500", "--faults", "stop,member-stop,kill", "--json")
			// Three members, five participants, and the process that removes the data.
			require.Eventually(t, func() bool {
				pids := clitest.Children(p.Cmd.Process.Pid)
				return len(pids) >= 9 && someStopped(pids)
			}, limit, 10*time.Millisecond)
			const least = 8 // one of the participants may be killed at that moment
			if end == syscall.SIGINT {
				p.leavesNothing(least, func() {
					p.Signal(end)
					require.True(t, readVerdict(t, strings.Join(p.Rest(), "\n")).Interrupted)
				}, 130)
				return
			}
			p.leavesNothing(least, func() { p.Signal(end) }, -1)
		})
	}
}

// someStopped reports whether any of the processes is stopped: the worst moment to end.
func someStopped(pids []int) bool {
	for _, pid := range pids {
		if state, _, _ := clitest.Stat(pid); state == 'T' {
			return true
		}
	}
	return false
}
