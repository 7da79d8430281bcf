package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// A tale is a history in short: one fact a line, each a millisecond after the one
// before it, unless it begins with @ms.
//
//	c1 stands 2 | c1 leads | c1 waits c0 | c1 lost | c1 resigned | c1 exits 3
//	resign c1 (or any act) | seen c1 | seen nobody | seen unknown
//	write c1 ok | write c1 refused | settled c1 | settled nobody | left 0 0
func tale(t *testing.T, text string) []Fact {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ms := 0
	tokens := make(map[string]eldest.Token)
	var facts []Fact
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		ms++
		if strings.HasPrefix(words[0], "@") {
			_, err := fmt.Sscanf(words[0], "@%d", &ms)
			require.NoError(t, err)
			words = words[1:]
		}
		at := start.Add(time.Duration(ms) * time.Millisecond)
		of := func(actor string) Fact {
			if actor == "nobody" || actor == "unknown" {
				return Fact{At: at}
			}
			return Fact{At: at, Actor: actor, Key: "demo/" + actor, Token: tokens[actor]}
		}
		var f Fact
		switch {
		case words[0] == "seen":
			f = of(words[1])
			f.Kind, f.State, f.Cause = Observed, words[1], "why"
			if f.Key != "" {
				f.State = "led"
			}
		case words[0] == "write":
			f = of(words[1])
			f.Kind, f.Accepted = Guarded, words[2] == "ok"
		case words[0] == "settled":
			f = of(words[1])
			f.Kind = Settled
		case words[0] == "left":
			f = Fact{At: at, Kind: Left}
			_, err := fmt.Sscan(strings.Join(words[1:], " "), &f.Keys, &f.Leases)
			require.NoError(t, err)
		case len(words) == 2 && strings.HasPrefix(words[1], "c"):
			f = of(words[1])
			f.Kind, f.Act = Acted, Act(words[0])
		default:
			verbs := map[string]Kind{"stands": Registered, "waits": Waiting, "leads": Won, "lost": Lost, "resigned": Resigned, "exits": Exited}
			if words[1] == "stands" {
				var token eldest.Token
				_, err := fmt.Sscan(words[2], &token)
				require.NoError(t, err)
				tokens[words[0]] = token
			}
			f = of(words[0])
			f.Kind = verbs[words[1]]
			require.NotEmpty(t, f.Kind, line)
			if f.Kind == Exited {
				_, err := fmt.Sscan(words[2], &f.Code)
				require.NoError(t, err)
			}
		}
		facts = append(facts, f)
	}
	return facts
}

// good is a short play in which everything holds.
const good = `
c1 stands 2
c1 leads
c2 stands 3
c2 waits c1
c3 stands 4
c3 waits c2
c4 stands 5
c4 waits c3
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

var limits = Limits{Told: time.Second, Expiry: 3 * time.Second}

func TestAGoodHistoryPasses(t *testing.T) {
	require.Empty(t, story.Failed(Check(tale(t, good), limits)))
	// Facts arrive in any order.
	facts := tale(t, good)
	for i := 0; i+3 < len(facts); i += 3 {
		facts[i], facts[i+2] = facts[i+2], facts[i]
	}
	require.Empty(t, story.Failed(Check(facts, limits)))
}

// Each check is shown something bad, which reaches the rule that must object: the good
// history with something replaced. Package oracle tests its rules on many more.
func TestBadHistoriesAreCaught(t *testing.T) {
	for _, bad := range []struct{ name, old, new, check, problem string }{
		{"two leaders overlap", "c1 resigned\nc2 leads\n", "c2 leads\nc1 resigned\n", "one leader at any time", "c2 won (token 3) while c1 (token 2) still led"},
		{"a leader lost it too late", "kill c2\nc2 exits -1\n@2000 c3 leads\n", "cut c2\n@2000 c3 leads\nc2 lost\n", "one leader at any time", "c3 won (token 4) while c2"},
		{"a win before the deletion", "delete c3\nc4 leads\n", "c4 leads\ndelete c3\n", "one leader at any time", "c4 won (token 5) while c3"},
		{"the token falls", "c4 stands 5", "c4 stands 1", "tokens rise", "c4 won with token 1 after c3 had won with token 4"},
		{"a second win with one token", "c2 exits -1\n", "c2 leads\nc2 exits -1\n", "tokens rise", "c2"},
		{"out of order", "c2 leads\nseen c2", "c3 leads\nseen c2", "wins in create-revision order", "c3 (token 4) won past c2, which stood with 3"},
		{"two woken", "c2 leads\n", "c2 leads\nc4 waits c2\n", "one departure wakes one waiter", "resign of token 2: 1 left, 2 moved"},
		{"a slow hand-over", "@2000 c3 leads", "@9000 c3 leads", "hand-overs in time", "kill of token 3: c3 leads after 8.9s, later than 3s"},
		{"a resignation that waits for the lease", "c2 leads\n", "@1500 c2 leads\n", "hand-overs in time", "resign of token 2: c2 leads after"},
		{"no successor", "c4 leads\n", "", "hand-overs in time", "delete of token 4: nobody succeeded it"},
		{"an old token works", "write c2 refused", "write c2 ok", "old tokens are refused", "a write with the old token 3 was accepted"},
		{"the leader's token does not", "write c3 ok", "write c3 refused", "old tokens are refused", "a write of the leader with token 4 was refused"},
		{"an old token was not tried", "write c2 refused\n", "", "old tokens are refused", "no write was tried with the old token 3"},
		{"the observer goes back", "seen unknown", "seen c1", "the observer agrees", "token 2 after 3"},
		{"the observer does not know", "seen c3\n", "", "the observer agrees", "when token 4 led, the observer had been told: unknown"},
		{"a wrong exit code", "c3 exits 3", "c3 exits 0", "processes end as they should", "c3 ended with 0, not 3"},
		{"a waiter that lost, and left", "kill c2\n", "c5 stands 9\nc5 lost\nc5 exits 0\nkill c2\n", "processes end as they should", "c5 ended with 0, not 3"},
		{"a key stays", "left 0 0", "left 1 0", "nothing is left in etcd", "in etcd: 1 key and 0 leases"},
		{"nobody looked", "left 0 0\n", "", "nothing is left in etcd", "nothing happened"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			text := strings.Replace(good, bad.old, bad.new, 1)
			require.NotEqual(t, good, text, "the good history has changed")
			for _, v := range Check(tale(t, text), limits) {
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

// A check without material must not be green.
func TestAnEmptyHistoryProvesNothing(t *testing.T) {
	for _, v := range Check(nil, limits) {
		require.False(t, v.OK, v.Name)
	}
}

func TestHandoversAreMeasuredFromTheAct(t *testing.T) {
	changes := handovers(tale(t, good))
	require.Len(t, changes, 3)
	require.Equal(t, []Act{Resign, Kill, Delete}, []Act{changes[0].Act, changes[1].Act, changes[2].Act})
	require.Equal(t, 2*time.Millisecond, changes[0].Took)
	require.Equal(t, time.Millisecond, changes[0].Neither)
	require.Equal(t, 1900*time.Millisecond, changes[1].Took)
	require.Equal(t, 2*time.Millisecond, changes[2].Told)
}
