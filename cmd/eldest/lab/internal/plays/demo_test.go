package plays_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/demo"
)

func TestDemoForPeople(t *testing.T) {
	t.Parallel()
	p := perform(t, "demo", "--members", "1", "--candidates", "3", "--ttl", "4s")
	text := strings.Join(p.Rest(), "\n")
	require.Zero(t, p.exit(), text)
	for _, part := range []string{
		"c1        LEADS with token 2",
		"c3        waits for c2's key",
		"queue: c1(leader, token 2) <- c2 <- c3\n",
		"sends SIGKILL to c2, the leader",
		"writes as c1, with token 2: REFUSED by etcd",
		"hand-over: c1 -> c2, ",
		`Left out: "The leader's member is cut off" needs 3 members`,
		"ok     one leader at any time",
		"ok     tokens rise",
		"All of it held.",
	} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "\x1b", "colours, though this is no terminal")
	require.NotContains(t, text, "FAILED")
	require.Empty(t, p.left())
}

func TestDemoForPrograms(t *testing.T) {
	t.Parallel()
	p := perform(t, "demo", "--members", "3", "--candidates", "5", "--ttl", "4s", "--json")
	lines := p.Rest()
	require.Zero(t, p.exit(), strings.Join(lines, "\n"))
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}
	var sum demo.Summary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum))
	require.Equal(t, "summary", sum.Event)
	require.True(t, sum.OK)
	require.Len(t, sum.Checks, 9)
	var acts []demo.Act
	for _, h := range sum.Handovers {
		acts = append(acts, h.Act)
		require.Positive(t, h.TookMS)
		require.Greater(t, h.NewToken, h.OldToken)
	}
	require.Equal(t, []demo.Act{demo.Resign, demo.Kill, demo.Silence, demo.Delete, demo.Cut}, acts)
	// The one that was cut off had stopped before the next one began.
	partition := sum.Handovers[4]
	require.Positive(t, partition.NeitherMS)
	require.Greater(t, partition.TookMS, partition.NeitherMS)
	require.Empty(t, p.left())
}

// --duration goes on to the next round, and begins no act when it is over. It is long enough
// for a round on a busy machine.
func TestDemoDuration(t *testing.T) {
	t.Parallel()
	p := perform(t, "demo", "--members", "1", "--candidates", "4", "--ttl", "4s", "--duration", "25s", "--json")
	lines := p.Rest()
	require.Zero(t, p.exit(), strings.Join(lines, "\n"))
	resigned := strings.Count(strings.Join(lines, "\n"), `"act":"resign"`)
	require.Greater(t, resigned, 2, "one of them is the summary's")
}

func TestDemoASignalLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := perform(t, "demo", "--ttl", "8s", "--json")
			// In the middle: a leader was killed, and everyone waits for its lease.
			p.leavesNothing("kill", 4, func() { p.Signal(sig) }, 130)
		})
	}
}

func TestDemoASignalDuringTheStartLeavesNothing(t *testing.T) {
	t.Parallel()
	endsDuringTheStart(t, "demo")
}

// A demo that is killed takes its candidates with it, and its data.
func TestDemoSIGKILLLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := perform(t, "demo", "--members", "1", "--ttl", "8s", "--json")
	p.leavesNothing("kill", 4, func() { p.Signal(syscall.SIGKILL) }, -1)
}

// As in "eldest demo | head".
func TestDemoAReaderThatGoesAwayEndsIt(t *testing.T) {
	t.Parallel()
	p := perform(t, "demo", "--members", "1", "--ttl", "8s", "--json")
	p.leavesNothing("resign", 1, func() { require.NoError(t, p.Out.Close()) }, 1)
}
