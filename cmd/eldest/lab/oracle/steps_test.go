package oracle

import "testing"

// steps is a short run of a harness that goes step by step, in which everything holds.
const steps = `
c1 joins 2
c1 wins
c2 joins 3
c2 moves
c3 joins 4
c3 moves
c4 joins 5
c4 moves
seen c1
settled c1
act c1 1000
c1 ends 0
c2 wins
seen c2
c1 exits 0
c1 writes refused
c2 writes acked
settled c2
@100 act c2 3000
c2 crashes
c2 exits -1
@2000 c3 wins
seen unknown
seen c3
c2 writes refused
c3 writes acked
settled c3
act c3 1000
c3 removed
c4 wins
c3 ends 3
c3 exits 3
seen c4
c3 writes refused
c4 writes acked
settled c4
c4 ends 0
c4 exits 0
seen nobody
settled nobody
`

func TestSteps(t *testing.T) {
	rules := []func(*History) []Violation{I1, Order, Tokens, Overtaken, Wakes, InTime, Granted, Linear, Observations, Exits}
	tales(t, steps, rules, []ill{
		{"two leaders overlap", "c1 ends 0\nc2 wins\n", "c2 wins\nc1 ends 0\n", I1, "c2 won (token 3) while c1 (token 2) still led"},
		{"a leader never stops", "c1 ends 0\nc2 wins\n", "c2 wins\n", I1, "and to the end of the run"},
		{"a leader lost it too late", "c2 crashes\nc2 exits -1\n@2000 c3 wins\n", "@2000 c3 wins\nc2 ends 3\n", I1, "c3 won (token 4) while c2"},
		{"a win before the deletion", "c3 removed\nc4 wins\n", "c4 wins\nc3 removed\n", I1, "c4 won (token 5) while c3"},
		{"the token falls", "c4 joins 5", "c4 joins 1", Tokens, "c4 won with token 1 after c3 had won with token 4"},
		{"the token repeats", "c2 joins 3", "c2 joins 2", Tokens, "c2 won with token 2 after c1 had won with token 2"},
		{"a second win with one token", "c2 crashes\n", "c2 wins\nc2 crashes\n", Order, `c2: "won" does not follow`},
		{"out of order", "c2 wins\nseen c2", "c3 wins\nseen c2", Overtaken, "c3 (token 4) won past c2, which stood with 3"},
		{"two woken", "c2 wins\n", "c2 wins\nc4 moves\n", Wakes, "step of token 2: 1 left, 2 moved"},
		{"nobody woken", "act c1 1000\nc1 ends 0\nc2 wins\n", "c1 ends 0\nc2 wins\nact c1 1000\n", Wakes, "0 moved"},
		{"a slow hand-over", "@2000 c3 wins", "@9000 c3 wins", InTime, "c3 leads after 8.9s, later than 3s"},
		{"a resignation that waits for the lease", "c2 wins\n", "@1500 c2 wins\n", InTime, "step of token 2: c2 leads after"},
		{"no successor", "c4 wins\n", "", InTime, "step of token 4: nobody succeeded it"},
		{"a slow one, of itself", "act c2 3000\nc2 crashes\nc2 exits -1\n@2000", "c2 ends 3\n@3200", InTime, "token 3 ended: c3 leads after 3.1s, later than 3s"},
		{"an old token works", "c2 writes refused", "c2 writes acked", Granted, "a write with the old token 3 was accepted"},
		{"an old token works, to the register", "c2 writes refused", "c2 writes acked", Linear, "does not"},
		{"the leader's token does not", "c3 writes acked", "c3 writes refused", Granted, "a write of the leader with token 4 was refused"},
		{"an old token was not tried", "c2 writes refused\n", "", Granted, "no write was tried with the old token 3"},
		{"the observer goes back", "seen unknown", "seen c1", Observations, "token 2 after 3"},
		{"the observer invents", "seen unknown", "c9 joins 3\nseen c9\nc9 joins 9\nseen c9", Observations, "of token 9, which nobody won with"},
		{"the observer does not know", "seen c3\n", "", Observations, "when token 4 led, o had been told: unknown"},
		{"the observer is behind", "seen c4\n", "", Observations, "when token 5 led, o had been told: led, token 4"},
		{"a wrong exit code", "c3 exits 3", "c3 exits 0", Exits, "c3 ended with 0, not 3"},
		{"a crash", "c1 exits 0", "c1 exits 2", Exits, "c1 ended with 2, not 0"},
	})
}

// Where no step takes leadership away, who ended is succeeded in the time to recover, if
// anybody wins at all.
func TestInTime(t *testing.T) {
	a, late := won(1, 10, "a", 2), recovered // 1000 and the time to recover
	judged(t, InTime, map[string]trial{
		"in time":             {timeline(a, says(1000, "a", Ended, 2), won(1, late, "b", 3)), 0},
		"late":                {timeline(a, says(1000, "a", Ended, 2), won(1, late+1, "b", 3)), 1},
		"nobody ever wins":    {timeline(a, says(1000, "a", Ended, 2)), 0},
		"succeeded before":    {timeline(a, won(1, 999, "b", 3), says(1000, "a", Ended, 2), won(1, late+1, "c", 4)), 0},
		"the time was given":  {given(timeline(a, says(1000, "a", Ended, 2), won(1, late+1, "b", 3))), 0},
		"by an older one":     {timeline(won(1, 10, "a", 3), says(1000, "a", Ended, 3), won(1, 1001, "b", 2), won(1, late+1, "c", 4)), 1},
		"a waiter's end":      {timeline(a, joins(1, "b", 3), says(1000, "b", Failed, 3), won(1, late+1, "c", 4)), 0},
		"one after the other": {timeline(a, says(1000, "a", Ended, 2), won(1, 2000, "b", 3), says(3000, "b", Ended, 3), won(1, 2*late, "c", 4)), 1},
	})
}

// A candidate that was stopped tells of nothing: whether it stood is not judged.
func TestOvertakenInAStop(t *testing.T) {
	at := says
	judged(t, Overtaken, map[string]trial{
		"past one that waits":      {timeline(at(1, "a", Joined, 2), at(2, "b", Joined, 3), at(3, "b", Won, 3)), 1},
		"past one that is stopped": {timeline(at(1, "a", Joined, 2), at(2, "b", Joined, 3), at(2, "a", Stopped, 0), at(3, "b", Won, 3)), 0},
		"past one that has failed": {timeline(at(1, "a", Joined, 2), at(2, "b", Joined, 3), at(2, "a", Failed, 0), at(3, "b", Won, 3)), 0},
		"past one of no token":     {timeline(at(1, "a", Joined, 0), at(2, "b", Joined, 3), at(3, "b", Won, 3)), 0},
	})
}

// A partition may take several with it, each of which may wake one; who comes in the step
// is awaited by no candidate.
func TestWakes(t *testing.T) {
	stand := timeline(says(1, "a", Joined, 2), says(2, "b", Joined, 3), says(3, "c", Joined, 4), says(4, "d", Joined, 5), says(10, "", Acted, 2)).Events
	judged(t, Wakes, map[string]trial{
		"two left, two moved":      {timeline(stand, says(11, "a", Ended, 2), says(12, "b", Won, 3), says(13, "c", Ended, 4), says(14, "d", Moved, 5)), 0},
		"one twice":                {timeline(stand, says(12, "b", Moved, 3), says(13, "b", Won, 3)), 0},
		"one that came":            {timeline(stand, says(12, "b", Won, 3), says(13, "e", Joined, 6), says(14, "e", Moved, 6)), 0},
		"one that came, and none":  {timeline(stand, says(13, "e", Joined, 6), says(14, "e", Moved, 6)), 1},
		"one moved when it's over": {timeline(stand, says(12, "b", Won, 3), says(13, "", Settled, 3), says(14, "d", Moved, 5)), 0},
		"its key was taken before": {timeline(stand[:4], removed(5, 2), says(10, "", Acted, 2), says(12, "b", Won, 3)), 1},
	})
}

// Observers who are told of revisions are held against the store.
func TestObservations(t *testing.T) {
	told := func(text string, rev, token int64, k string, lease int64) []Event {
		return []Event{{At: tick, Who: "o", Kind: Observed, Text: text, Commit: rev, Token: token, Key: k, Lease: lease}}
	}
	led := func(rev, token int64, lease int64) []Event { return told(Led, rev, token, key(token+8), lease) }
	unknown := func(why string) []Event {
		return []Event{{At: tick, Who: "o", Kind: Observed, Text: Unknown, Reason: why}}
	}
	nobody := func(rev int64) []Event { return told(Nobody, rev, 0, "", 0) }
	watched := func(events ...[]Event) *History {
		h := timeline(events...)
		h.Changes = tell().put(0xa).put(0xb).del(0xa, 2).del(0xb, 3).Changes
		return h
	}
	judged(t, Observations, map[string]trial{
		"in order":           {watched(unknown("not yet"), nobody(1), led(2, 2, 0xa), led(4, 3, 0xb), nobody(5)), 0},
		"skips":              {watched(led(3, 2, 0xa), nobody(5)), 0},
		"going back":         {watched(led(4, 3, 0xb), led(3, 2, 0xa)), 2}, // in revision and in token
		"a key that is gone": {watched(led(4, 2, 0xa)), 1},
		"a waiter":           {watched(led(3, 3, 0xb)), 1},
		"nobody, wrongly":    {watched(nobody(3)), 1},
		"no reason":          {watched(unknown("")), 1},
		"another's lease":    {watched(led(2, 2, 0xb)), 1},
	})
}
