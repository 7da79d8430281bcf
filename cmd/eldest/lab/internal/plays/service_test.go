package plays_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// unhurried is a TTL half of which, the bound on a hand-over that waits for no lease, is long
// for a machine that is busy with other tests: such a hand-over takes milliseconds. The bound
// itself cannot be longer: see TestToldIsShorterThanWhatALeaseHasLeft.
const unhurried = "6s"

func TestServiceForPeople(t *testing.T) {
	t.Parallel()
	p := perform(t, "service", "--ttl", unhurried, "--seed", "7")
	text := strings.Join(p.Rest(), "\n")
	require.Zero(t, p.exit(), text)
	require.NotContains(t, text, "FAILED")
	for _, part := range []string{
		"each act once, seed 7",
		"n1      LEADS with token 2",
		"n3      follows n1, token 2",
		"sends SIGTERM to n1, the leader",
		"sends SIGKILL to n",
		"asked m", "no answer",
		"sends SIGSTOP to n", "sends SIGCONT to n",
		"whether it was done is open",
		"the leader stayed",
		"ok     no acknowledged write is lost",
		"ok     every fault took effect         1 stop, 1 kill, 1 suspension, 1 leader and 1 follower cut off",
		"All of it held.",
	} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "\x1b", "colours, though this is no terminal")
	require.Empty(t, p.left())
}

func TestServiceForPrograms(t *testing.T) {
	t.Parallel()
	p := perform(t, "service", "--ttl", unhurried, "--seed", "1", "--rounds", "1", "--json")
	lines := p.Rest()
	var sum service.Summary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum))
	require.Equal(t, "summary", sum.Event)
	require.Zero(t, p.exit(), "%v %s", story.Failed(sum.Checks), sum.Broken)
	require.True(t, sum.OK)
	require.Len(t, sum.Checks, 12)
	require.Equal(t, uint64(1), sum.Seed)

	acts := make(map[service.Act]int)
	for i, a := range sum.Acts {
		acts[a.Act]++
		require.Positive(t, a.Done)
		if a.Act == service.CutFollower {
			require.Zero(t, a.NewToken)
			continue
		}
		require.Greater(t, a.NewToken, a.OldToken)
		if i > 0 {
			require.GreaterOrEqual(t, a.OldToken, sum.Acts[i-1].OldToken)
		}
	}
	require.Equal(t, map[service.Act]int{service.Stop: 1, service.Kill: 1, service.Suspend: 1, service.CutLeader: 1, service.CutFollower: 1}, acts)

	attempts := 0
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
		var a service.Attempt
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		if a.Event == "attempt" {
			attempts++
			require.NotEmpty(t, a.Outcome)
			require.True(t, a.Begin.Before(a.At))
		}
	}
	require.Greater(t, attempts, 100)
	require.Empty(t, p.left())
}

func TestServiceASignalLeavesNothing(t *testing.T) {
	t.Parallel()
	for sig, act := range map[syscall.Signal]string{
		syscall.SIGINT:  "kill",       // a leader is dead, and everyone waits for its lease
		syscall.SIGTERM: "cut-leader", // a member is cut off
	} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			// Some requests would wait for sixteen seconds more.
			p := perform(t, "service", "--ttl", "8s", "--json")
			took := p.leavesNothing(act, 2, func() { p.Signal(sig) }, 130)
			require.Less(t, took, 15*time.Second)
		})
	}
}

func TestServiceASignalDuringTheStartLeavesNothing(t *testing.T) {
	t.Parallel()
	endsDuringTheStart(t, "service")
}

// A play that is killed takes its nodes with it, and its data.
func TestServiceSIGKILLLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := perform(t, "service", "--ttl", "4s", "--json")
	p.leavesNothing("stop", 2, func() { p.Signal(syscall.SIGKILL) }, -1)
}

// As in "eldest service | head".
func TestServiceAReaderThatGoesAwayEndsIt(t *testing.T) {
	t.Parallel()
	p := perform(t, "service", "--ttl", "4s", "--json")
	p.leavesNothing("stop", 1, func() { require.NoError(t, p.Out.Close()) }, 1)
}
