package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// factsOf parses facts, one a line, each a millisecond after the one before it unless the line
// begins with @ms.
//
//	c1 joins 2 | c1 leads | c1 waits | c1 lost | c1 resigned | c1 exits 3
//	resign c1 (or any action) | seen c1 | seen nobody | seen unknown
//	write c1 ok | write c1 refused | settled c1 | settled nobody | left 0 0
func factsOf(t *testing.T, text string) (facts []scenario.Fact) {
	t.Helper()
	kinds := map[string]scenario.Kind{
		"joins": scenario.Registered, "waits": scenario.Waiting, "leads": scenario.Won, "lost": scenario.Lost, "resigned": scenario.Resigned, "exits": scenario.Exited,
		"seen": Observed, "write": Guarded, "settled": scenario.Settled, "left": scenario.Left,
	}
	start, tokens := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), map[string]eldest.Token{}
	ms := 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if ms++; strings.HasPrefix(words[0], "@") {
			read(t, words[0][1:], &ms)
			words = words[1:]
		}
		f := scenario.Fact{At: start.Add(time.Duration(ms) * time.Millisecond), Kind: kinds[words[0]], Participant: words[1]}
		if strings.HasPrefix(words[0], "c") && kinds[words[1]] != "" {
			f.Kind, f.Participant = kinds[words[1]], words[0]
		} else if f.Kind == "" {
			f.Kind, f.Action = scenario.Acted, scenario.Action(words[0])
		}
		switch f.Kind {
		case scenario.Registered:
			read(t, words[2], &f.Token)
			tokens[f.Participant] = f.Token
		case scenario.Exited:
			read(t, words[2], &f.Code)
		case Observed:
			f.State, f.Cause = map[string]string{"nobody": "nobody", "unknown": "unknown"}[words[1]], "why"
			if f.State == "" {
				f.State = "led"
			}
		case Guarded:
			f.Accepted = words[2] == "ok"
		case scenario.Left:
			f.Participant = ""
			read(t, words[1], &f.Keys)
			read(t, words[2], &f.Leases)
		}
		if token, ok := tokens[f.Participant]; ok {
			f.Key, f.Token = "demo/"+f.Participant, token
		}
		facts = append(facts, f)
	}
	return facts
}

func read(t *testing.T, word string, into any) {
	t.Helper()
	_, err := fmt.Sscan(word, into)
	require.NoError(t, err, word)
}

// good is a short demo without a violation.
const good = `
c1 joins 2
c1 leads
c2 joins 3
c2 waits
c3 joins 4
c3 waits
c4 joins 5
c4 waits
seen c1
settled c1
resign c1
c1 resigned
c2 leads
seen c2
c1 exits 0
write c1 refused
write c2 ok
settled c2
@100 kill c2
c2 exits -1
@2000 c3 leads
seen unknown
seen c3
write c2 refused
write c3 ok
settled c3
delete c3
c4 leads
c3 lost
c3 exits 3
seen c4
write c3 refused
write c4 ok
settled c4
leave c4
c4 resigned
c4 exits 0
seen nobody
left 0 0
settled nobody
`

// verdicts returns the verdicts on a text, for a TTL of 2 s: a hand-over may take 1 s, one after
// the expiry of a lease 9 s.
func verdicts(t *testing.T, text string) []story.Verdict {
	t.Helper()
	return newPlan(Config{Config: scenario.Config{TTL: 2 * time.Second}}).Check(factsOf(t, text))
}

func TestAGoodHistoryPasses(t *testing.T) { require.Empty(t, story.Failed(verdicts(t, good))) }

// Each check must find a violation: in the good history something is replaced, so that the rule of
// the check is violated. Package oracle tests its rules on many more histories.
func TestBadHistoriesAreCaught(t *testing.T) {
	for _, bad := range []struct{ name, old, new, check, problem string }{
		{"two leaders overlap", "c1 resigned\nc2 leads\n", "c2 leads\nc1 resigned\n", "one leader at any time", "c2 won (token 3) while c1 (token 2) still led"},
		{"a leader lost it too late", "kill c2\nc2 exits -1\n@2000 c3 leads\n", "cut c2\n@2000 c3 leads\nc2 lost\n", "one leader at any time", "c3 won (token 4) while c2"},
		{"a win before the deletion", "delete c3\nc4 leads\n", "c4 leads\ndelete c3\n", "one leader at any time", "c4 won (token 5) while c3"},
		{"the token falls", "c4 joins 5", "c4 joins 1", "tokens rise", "c4 won with token 1 after c3 had won with token 4"},
		{"a second win with one token", "c2 exits -1\n", "c2 leads\nc2 exits -1\n", "tokens rise", "c2"},
		{"out of order", "c2 leads\nseen c2", "c3 leads\nseen c2", "wins in create-revision order", "c3 (token 4) won past c2, which had joined with 3"},
		{"two woken", "c2 leads\n", "c2 leads\nc4 waits\n", "one departure wakes one waiter", "resign of token 2: 1 departed, 2 moved"},
		{"a slow hand-over", "@2000 c3 leads", "@9200 c3 leads", "hand-overs in time", "kill of token 3: c3 leads after 9.1s, later than 9s"},
		{"a resignation that waits for the lease", "c2 leads\n", "@1500 c2 leads\n", "hand-overs in time", "resign of token 2: c2 leads after"},
		{"no successor", "c4 leads\n", "", "hand-overs in time", "delete of token 4: no candidate succeeded it"},
		{"an old token works", "write c2 refused", "write c2 ok", "old tokens are refused", "a write with the old token 3 was accepted"},
		{"the leader's token does not", "write c3 ok", "write c3 refused", "old tokens are refused", "a write of the leader with token 4 was refused"},
		{"an old token was not tried", "write c2 refused\n", "", "old tokens are refused", "no write was tried with the old token 3"},
		{"the observer goes back", "seen unknown", "seen c1", "the observer agrees", "token 2 after 3"},
		{"the observer does not know", "seen c3\n", "", "the observer agrees", "when token 4 led, the observer had been notified: unknown"},
		{"a wrong exit code", "c3 exits 3", "c3 exits 0", "processes end as they should", "c3 ended with 0, not 3"},
		{"a waiter that lost, and left", "kill c2\n", "c5 joins 9\nc5 lost\nc5 exits 0\nkill c2\n", "processes end as they should", "c5 ended with 0, not 3"},
		{"a key stays", "left 0 0", "left 1 0", "nothing is left in etcd", "in etcd: 1 key and 0 leases"},
		{"nobody looked", "left 0 0\n", "", "nothing is left in etcd", "nothing to check"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			text := strings.Replace(good, bad.old, bad.new, 1)
			require.NotEqual(t, good, text, "the good history has changed")
			for _, v := range verdicts(t, text) {
				if v.Name == bad.check {
					require.False(t, v.OK)
					require.Contains(t, strings.Join(v.Problems, "\n"), bad.problem)
					return
				}
			}
			t.Fatalf("no check %q", bad.check)
		})
	}
}

// A check without facts must fail.
func TestAnEmptyHistoryProvesNothing(t *testing.T) {
	for _, v := range verdicts(t, "") {
		require.False(t, v.OK, v.Name)
	}
}

func TestHandoversAreMeasuredFromTheAction(t *testing.T) {
	changes := scenario.Handovers(factsOf(t, good))
	require.Len(t, changes, 3)
	for i, want := range []scenario.Handover{
		{Action: scenario.Resign, Took: 2 * time.Millisecond, Neither: time.Millisecond, Told: time.Millisecond},
		{Action: scenario.Kill, Took: 1900 * time.Millisecond, Neither: 1900 * time.Millisecond},
		{Action: scenario.Delete, Took: time.Millisecond, Neither: time.Millisecond, Told: 2 * time.Millisecond},
	} {
		got := changes[i]
		require.Equal(t, want, scenario.Handover{Action: got.Action, Took: got.Took, Neither: got.Neither, Told: got.Told})
	}
}
