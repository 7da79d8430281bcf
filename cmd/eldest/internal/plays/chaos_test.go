//go:build linux

package plays_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// verdict is what --json of chaos writes, as far as it is looked at here.
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

func TestChaosHolds(t *testing.T) {
	dir, object := t.TempDir(), filepath.Join(t.TempDir(), "x.json")
	p := perform(t, "chaos", "--seed", "3", "--rounds", "4", "--dir", dir, "--json", object)
	table := strings.Join(p.rest(), "\n")
	require.Zero(t, p.exit(), table)
	require.Contains(t, table, "everything held: 0 violations")
	text, err := os.ReadFile(object)
	require.NoError(t, err)
	v := readVerdict(t, string(text))
	require.Equal(t, "eldest chaos --seed 3 --rounds 4", v.Command)
	require.Equal(t, 4, v.Rounds)
	require.Positive(t, v.Tenures)
	require.Positive(t, v.Acked)
	require.Positive(t, v.Fenced)
	require.Empty(t, v.InvalidBecause)
	require.FileExists(t, filepath.Join(v.Series[0].Kept, "history.jsonl"))
	require.Empty(t, p.left())
}

// What is wrong is found, and the command says so.
func TestChaosFindsADefect(t *testing.T) {
	p := perform(t, "chaos", "--seed", "3", "--rounds", "2", "--faults", "revoke", "--participants", "3",
		"--participant-defect", "overstay", "--dir", t.TempDir(), "--json")
	v := readVerdict(t, strings.Join(p.rest(), "\n"))
	require.Equal(t, 1, p.exit())
	require.Positive(t, v.ByInvariant["leading"])
}

func TestChaosThatIsEndedLeavesNothing(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			p := perform(t, "chaos", "--rounds", "500", "--faults", "stop,member-stop,kill", "--json")
			var pids []int
			// Three members, five participants, the store, and who tidies up.
			require.Eventually(t, func() bool {
				pids = children(t, p.cmd.Process.Pid)
				return len(pids) >= 10
			}, limit, 10*time.Millisecond)
			require.Eventually(t, func() bool { return someStopped(pids) }, limit, time.Millisecond)
			p.signal(end)
			if end == syscall.SIGINT {
				require.True(t, readVerdict(t, strings.Join(p.rest(), "\n")).Interrupted)
				require.Equal(t, 130, p.exit())
			}
			p.exit()
			requireGone(t, pids)
			require.Empty(t, p.left())
		})
	}
}

// someStopped reports whether any of the processes stands still: the worst moment.
func someStopped(pids []int) bool {
	for _, pid := range pids {
		if state(pid) == 'T' {
			return true
		}
	}
	return false
}

// state is what the kernel says of a process: T for one that is stopped; 0 if it is gone.
func state(pid int) byte {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// pid (name) state ...; the name may contain anything.
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[0]
}
