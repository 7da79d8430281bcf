package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// good is a short run in which everything holds.
const good = `
start n1
join n1 2
n1 leads
open n1 3
start n2
join n2 4
n2 follows n1
start n3
join n3 5
n3 follows n1
settled n1
traffic n1 10
resign n1
n1 neither
drop n1 20
n2 leads
open n2 21
n3 follows n2
n1 exits 0
start n1
join n1 22
n1 follows n2
traffic n2 30
settled n2
traffic n2 40
ask w1 n1 append log x
append w1 log x 46 n2
told w1 done 46 n2
ask w2 n1 append log y
append w2 log y 47 n2
told w2 open
ask g1 n3 get log
told g1 read xy 47
ask w3 n1 delete log
delete w3 log - 48 n2
told w3 done 48 n2
ask g2 n3 get log
told g2 missing
ask w4 n3 put log z
told w4 refused
ask w5 n3 put never z
told w5 open
ask g3 n3 get never
told g3 missing
kill n2
n2 exits -1
failing n3
@2000 drop n2 51
n3 leads
n1 follows n3
start n2
n2 neither
join n2 52
open n3 56
n2 follows n3
traffic n3 60
settled n3
traffic n3 70
@12500 cut n3
failing n3
@14000 n3 neither
@14300 drop n3 80
n1 leads
open n1 81
n2 follows n1
traffic n1 90
join n3 98
n3 follows n1
traffic n1 100
settled n1
traffic n1 110
cut-follower n3
n3 neither
failing n3
traffic n1 120
n3 follows n1
settled n1
traffic n1 130
@18000 suspend n1
failing n1
@18300 drop n1 137
n2 leads
open n2 138
n3 follows n2
traffic n2 139
ask g4 n1 get a
told g4 refused
n1 neither
join n1 145
n1 follows n2
settled n2
traffic n2 146
leave n3
drop n3 152
n3 exits 0
leave n1
drop n1 153
n1 exits 0
leave n2
drop n2 154
n2 exits 0
left 0 0
`

func TestAGoodHistoryPasses(t *testing.T) {
	b := read(t, good)
	requireAll(t, b.audit())
	// Facts and attempts arrive in any order.
	slices.Reverse(b.facts)
	slices.Reverse(b.attempts)
	requireAll(t, b.audit())
}

func requireAll(t *testing.T, found map[string]story.Verdict) {
	t.Helper()
	for name, v := range found {
		require.True(t, v.OK, "%s: %s", name, v.Problems)
	}
}

// Each bad history is the good one with something replaced, and the check that must
// object, with what it says. Where the rule is the oracle's, it shows that the evidence
// reaches it; package oracle tests its rules on many more (TestRegistersByName).
func TestBadHistoriesAreCaught(t *testing.T) {
	const (
		lost, twice, refused = "no acknowledged write is lost", "no attempt is applied twice", "no refused write is applied"
		deposed, data        = "no write of a deposed leader", "the data is what the trail says"
		precedes             = "no write precedes its request"
		stale, answers       = "no read is stale", "answers are the documented ones"
		every, faults        = "every node answers", "every fault took effect"
		back, left           = "the service comes back in time", "nothing is left"
		beforeKill           = "kill n2\nn2 exits -1\n"
	)
	type bad struct{ name, old, new, check, problem string }
	extra := func(name, lines, check, problem string) bad {
		return bad{name, beforeKill, lines + beforeKill, check, problem}
	}
	for _, bad := range []bad{
		extra("an acknowledged write is nowhere", "ask x n2 put b v\ntold x done 49 n2\n", lost, "write x was acknowledged to the client at n2 and is not there"),
		extra("the receipt lies about the revision", "ask x n2 put b v\nput x b v 49 n2\ntold x done 48 n2\n", lost, "x was acknowledged at revision 48 with token 4, and is there at 49 with 4"),
		extra("the receipt lies about the tenure", "ask x n2 put b v\nput x b v 49 n2\ntold x done 49 n1\n", lost, "with token 22, and is there at 49 with 4"),
		extra("the receipt says nothing", "ask x n2 put b v\nput x b v 49 n2\ntold x done 0 n2\n", lost, "write x was acknowledged at revision -1 with token 4, and is there at 49"),
		extra("another value was written", "ask x n2 put b v\nput x b w 49 n2\ntold x done 49 n2\n", lost, `write x asked for put of "b": v, and put of "b": w was carried out`),
		extra("another key was written", "ask x n2 put b v\nput x c v 49 n2\ntold x done 49 n2\n", lost, `and put of "c": v was carried out`),
		extra("something else was done", "ask x n2 put b v\nappend x b v 49 n2\ntold x done 49 n2\n", lost, `and append of "b": v was carried out`),

		{"the forwarder repeats", "append w2 log y 47 n2\ntold w2 open\nask g1 n3 get log\ntold g1 read xy 47\n", "append w2 log y 47 n2\nappend w2 log y 47 n2\ntold w2 open\n", twice, "write w2 was applied 2 times, at revision 47 and 47"},
		extra("nobody asked for it", "put ghost b v 49 n2\n", twice, "write ghost was applied, at revision 49, and was never sent"),

		{"a refused write was applied", "told w4 refused\n", "put w4 log z 49 n2\ntold w4 refused\n", refused, "write w4 was refused to the client at n3 and applied all the same, at revision 49"},

		{"a deposed leader writes", "traffic n2 30\n", "traffic n2 30\nask x n3 put b v\nput x b v 37 n1@2\ntold x open\n", deposed, "write x of token 2 committed at 37 after one of token 4"},
		{"a waiting candidate writes", "traffic n2 30\n", "traffic n2 30\nopen n3@5 37\nask x n3 put b v\nput x b v 38 n3@5\ntold x done 38 n3@5\n", deposed, "write x of token 5 committed at 38 while token 4 was older"},
		{"the key of somebody else", "open n2 21\n", "open n3@4 21\n", deposed, "for shop/n3, whose token it is not"},
		{"a tenure begins twice", "traffic n2 30\n", "traffic n2 30\nopen n2 37\n", deposed, "the tenure of token 4 was opened twice"},
		{"a tenure does not begin", "open n2 21\n", "", deposed, "its tenure, token 4, had not been opened"},

		extra("data without a record", "data b v 49\n", data, "revision 49 wrote b without a record"),
		extra("a record without data", "ask x n2 put b v\nrecord x put b v 49 n2\ntold x done 49 n2\n", data, "revision 49 did not do what its record says"),
		extra("other data than recorded", "ask x n2 put b v\nrecord x put b v 49 n2\ndata b w 49\ntold x done 49 n2\n", data, "revision 49 did not do what its record says"),
		extra("an append that replaces", "ask x n2 append a v\nrecord x append a v 49 n2\ndata a v 49\ntold x done 49 n2\n", data, "revision 49 did not do what its record says"),
		extra("a deletion that leaves it", "ask x n2 delete a\nrecord x delete a - 49 n2\ndata a t45 49\ntold x done 49 n2\n", data, "revision 49 did not do what its record says"),
		extra("two records of one revision", "ask x n2 put b v\nput x b v 49 n2\nrecord x put b v 49 n2\ntold x done 49 n2\n", data, "revision 49 has two records"),
		extra("somebody else writes", "raw elsewhere 49\n", data, "somebody wrote elsewhere"),
		extra("a mailbox", "raw /eldest/ask/shop/1f 49\n", "", ""),
		extra("another election's mailbox", "raw /eldest/ask/shops/1f 49\n", data, "somebody wrote /eldest/ask/shops/1f"),
		extra("a record vanishes", "gone /kv/shop/trail/1 49\n", data, "the record /kv/shop/trail/1 was deleted"),
		extra("a record is forged", "raw /kv/shop/trail/x 49\n", data, "not a record of the trail"),
		extra("a record is written over", "raw /kv/shop/trail/1 49\n", data, "the record /kv/shop/trail/1 was written over"),

		extra("a deposed leader's read", "ask x n1 get a\ntold x read t40 40\n", stale, "request x at n1 read \"t40\" of \"a\" as it was until revision 41, when revision 48 was known already"),
		extra("a read of what never was", "ask x n1 get a\ntold x read t45 44\n", stale, "which the store never had there"),
		extra("a read of another value", "ask x n1 get a\ntold x read other 45\n", stale, "which the store never had there"),
		extra("it was there and is not found", "ask x n1 get a\ntold x missing\n", stale, "request x at n1 read \"\" of \"a\" as it was until revision 10"),

		extra("a delete does not find what is there", "ask x n2 put b v\nput x b v 49 n2\ntold x done 49 n2\nask z n1 delete b\ntold z missing\n", stale, "request z at n1 read \"\" of \"b\" as it was until revision 49, when revision 49 was known already"),
		extra("a delete finds nothing, and deletes it", "ask x n2 put b v\nput x b v 49 n2\ntold x done 49 n2\nask z n1 delete b\ndelete z b - 50 n2\ntold z missing\n", refused, "write z was refused to the client at n1 and applied all the same, at revision 50"),
		extra("a delete finds nothing where nothing is", "ask z n1 delete b\ntold z missing\n", "", ""),

		extra("revisions against the clock", "ask y n2 put b v\nput y b v 50 n2\ntold y done 50 n2\nask x n2 put c v\nput x c v 49 n2\ntold x done 49 n2\n", precedes, "write x was applied at revision 49, and was sent when revision 50 was known already"),

		extra("nothing to put", "ask x n1 put b v\ntold x NOT_FOUND\n", answers, "x (put) ended with NotFound"),
		extra("an undocumented answer", "ask x n1 put b v\ntold x INTERNAL\n", answers, "x (put) ended with Internal"),
		extra("a follower that serves nothing", "ask x n1 put b v\ntold x UNIMPLEMENTED\n", answers, "x (put) ended with Unimplemented"),

		{"nobody asked after the settling", "settled n1\ntraffic n1 130\n", "settled n1\n", every, "only 0 nodes answered"},
		{"one node does not answer", "settled n1\ntraffic n1 130\n", "settled n1\nask x n1 put b v\nput x b v 130 n1\ntold x done 130 n1\nask y n2 put b v\nput y b v 131 n1\ntold y done 131 n1\n", every, "when all agreed on token 22, only 2 nodes answered"},

		{"the stopped one was killed", "n1 exits 0\nstart", "n1 exits -1\nstart", left, "n1 ended with -1, not 0"},
		{"a removed key is not enough", "@18300 drop n1 137\nn2 leads\n", "drop n1 137\n@19500 n2 leads\n", back, "suspend of token 22: n2 leads after"},
		{"the suspended one writes when it wakes", "told g4 refused\n", "told g4 refused\nask x n1 put b v\nput x b v 145 n1\ntold x done 145 n1\n", deposed, "write x of token 22 committed at 145 after one of token 52"},
		{"the suspended one serves what it knew", "told g4 refused\n", "told g4 refused\nask x n1 get a\ntold x read t135 135\n", stale, "request x at n1 read \"t135\" of \"a\" as it was until revision 139, when revision 144 was known already"},
		{"nobody asked the cut follower", "n3 neither\nfailing n3\ntraffic n1 120\n", "n3 neither\nfailing n2\ntraffic n1 120\n", faults, "INVALID: cut-follower of n3: no call failed for it"},
		{"nobody noticed the kill", "failing n3\n@2000", "@2000", faults, "INVALID: kill of n2: no call failed for it"},
		{"nobody asked during the act", "traffic n3 60\n", "", faults, "INVALID: kill of n2: the client made only 1 attempt"},
		{"the leader's key stays", "drop n1 20\nn2 leads\nopen n2 21\n", "n2 leads\nopen n2 21\ndrop n1 22\n", deposed, "committed at 21 while token 2 was older"},
		{"an act is missing", beforeKill, "", faults, "INVALID: there was no kill"},
		{"they never agree again", "settled n2\ntraffic n2 146\n", "traffic n2 146\n", faults, "INVALID: there was no suspend"},

		{"a slow stop", "drop n1 20\nn2 leads\n", "drop n1 20\n@1200 n2 leads\n", back, "resign of token 2: n2 leads after"},
		{"a slow expiry", "@2000 drop n2 51\nn3 leads\n", "@11600 drop n2 51\nn3 leads\n", back, "kill of token 4: n3 leads after"},
		{"no successor", "n2 leads\n", "", back, "resign of token 2: n3 leads after"},
		{"the successor serves nobody", "traffic n1 90\njoin n3 98\nn3 follows n1\ntraffic n1 100\n", "failing n1\njoin n3 98\nn3 follows n1\n", back, "cut of n3: no write was acknowledged within 9s"},
		{"the cut leader leads on", "@14000 n3 neither\n@14300 drop n3 80\nn1 leads\n", "@14300 drop n3 80\nn1 leads\nn3 neither\n", back, "n1 won (token 22) while n3 (token 5) still led"},
		{"a follower's cut costs the leader", "failing n3\ntraffic n1 120\n", "failing n3\nn1 neither\ndrop n1 117\nn2 leads\nopen n2 118\ntraffic n2 120\n", back, "n2 leads with token 52, though nothing had happened to the leader"},
		{"the cut follower trusts its lease too long", "n3 neither\nfailing n3\ntraffic n1 120\n", "@17800 n3 neither\nfailing n3\ntraffic n1 120\n", back, "cut-follower of n3: it knew whom to follow for"},

		{"a crash", "n2 exits 0\nleft", "n2 exits 2\nleft", left, "n2 ended with 2, not 0"},
		{"a key stays", "left 0 0", "left 1 0", left, "in etcd: 1 key and 0 leases is left"},
		{"nobody looked", "left 0 0\n", "", left, "nothing happened"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			text := strings.Replace(good, bad.old, bad.new, 1)
			require.NotEqual(t, good, text, "the good history has changed")
			found := read(t, text).audit()
			if bad.check == "" { // looks bad and is not
				requireAll(t, found)
				return
			}
			require.Contains(t, found, bad.check)
			require.False(t, found[bad.check].OK)
			require.Contains(t, strings.Join(found[bad.check].Problems, "\n"), bad.problem)
		})
	}
}

// A check without material must not be green.
func TestAnEmptyHistoryProvesNothing(t *testing.T) {
	for _, v := range read(t, "").audit() {
		require.False(t, v.OK, v.Name)
	}
}
