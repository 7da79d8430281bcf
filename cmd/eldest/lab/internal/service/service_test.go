package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const nobodyListens = `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`

func TestWhatAnErrorSays(t *testing.T) {
	refused := status.Error(codes.Unavailable, nobodyListens)
	for name, c := range map[string]struct {
		method           Method
		err              error
		sent             bool
		outcome          Outcome
		missing, notSent bool
	}{
		"done":                          {Put, nil, true, Done, false, false},
		"nobody listens":                {Put, refused, false, Refused, false, true},
		"another node says that":        {Put, refused, true, Open, false, false},
		"the connection breaks":         {Put, status.Error(codes.Unavailable, "error reading from server: EOF"), false, Open, false, false},
		"no connection, another reason": {Put, status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: i/o timeout"`), false, Open, false, false},
		"time was over":                 {Put, status.Error(codes.DeadlineExceeded, nobodyListens), false, Open, false, false},
		"a read is never open":          {Get, status.Error(codes.DeadlineExceeded, ""), true, Failed, false, false},
		"a read is not sent":            {Get, refused, false, Failed, false, true},
		"a read finds nothing":          {Get, status.Error(codes.NotFound, ""), true, Done, true, false},
		"a delete finds nothing":        {Delete, status.Error(codes.NotFound, ""), true, Refused, true, false},
		"a put cannot find nothing":     {Put, status.Error(codes.NotFound, ""), true, Refused, false, false},
		"no status":                     {Put, errors.New("what"), true, Open, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := Attempt{Method: c.method}
			a.Ended(nil, c.err, c.sent)
			require.Equal(t, []any{c.outcome, c.missing, c.notSent}, []any{a.Outcome, a.Missing, a.NotSent})
		})
	}
}

// The error of gRPC for a port at which no process listens is recognized.
func TestNotSentIsRecognized(t *testing.T) {
	var c client
	defer c.close()
	require.NoError(t, c.reach(0, "n1", "127.0.0.1:1"))
	a := Attempt{Method: Put, ID: "r", Key: "k"}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.Error(t, a.Send(ctx, c.targets[0].Load().conn))
	require.True(t, a.NotSent, a.Text)
	require.Equal(t, Refused, a.Outcome)
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }

// put is the change of a key that a revision created, del of one that it deleted.
func put(rev int64, key, value string) Change {
	return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev, CreateRevision: rev, Version: 1}}
}

func del(rev int64, key string) Change {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

// record is a record of the tenure with token 2, of shop/a.
func record(rev int64, method kvpb.Record_Method, id, key, value string) Change {
	text, _ := proto.Marshal(&kvpb.Record{Method: method, RequestId: id, Key: key, Value: []byte(value), Token: 2, LeaderKey: "shop/a"}) // our own type can be encoded
	return put(rev, fmt.Sprintf("%s%d", kv.SpaceOf(Election).Trail(), rev), string(text))
}

func data(key string) string { return kv.SpaceOf(Election).Data(key) }

// good is everything that etcd did in a short run.
func good() []Change {
	return []Change{
		put(2, "shop/a", "a"),
		record(3, kvpb.Record_METHOD_OPEN, "", "", ""),
		record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x"), put(4, data("k"), "x"),
		record(5, kvpb.Record_METHOD_APPEND, "w2", "k", "y"), put(5, data("k"), "xy"),
		record(6, kvpb.Record_METHOD_DELETE, "w3", "k", ""), del(6, data("k")),
		del(7, "shop/a"),
	}
}

func inOrder(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return int(a.Kv.ModRevision - b.Kv.ModRevision) })
	return changes
}

// Each verdict applies the rules that it names.
func TestRulesAreAsked(t *testing.T) {
	ask := func(id string, m Method, value string, o Outcome, revision int64) Attempt {
		return Attempt{ID: id, Begin: at(10 * int(revision)), At: at(10*int(revision) + 1), Method: m, Key: "k", Value: value, Outcome: o, Token: 2, Revision: revision}
	}
	write := func(rev int64, id string) []Change {
		return []Change{record(rev, kvpb.Record_METHOD_PUT, id, "k", id), put(rev, data("k"), id)}
	}
	all := []Attempt{ask("w1", Put, "x", Done, 4), ask("w2", Append, "y", Done, 5), ask("w3", Delete, "", Done, 6)}
	for check, c := range map[string]struct {
		attempts []Attempt
		changes  []Change
	}{
		"no acknowledged write is lost": {[]Attempt{ask("w4", Put, "v", Done, 8)}, nil},
		"no attempt is applied twice":   {nil, write(6, "ghost")},
		"no refused write is applied":   {[]Attempt{ask("w4", Put, "w4", Refused, 6)}, write(6, "w4")},
		"no write of a deposed leader":  {[]Attempt{ask("w4", Put, "w4", Done, 9)}, write(9, "w4")},
		"no read is stale":              {[]Attempt{{ID: "r", Begin: at(90), At: at(91), Method: Get, Key: "k", Outcome: Done, Found: "x", Revision: 4}}, nil},
		"no write precedes its request": {[]Attempt{ask("w4", Put, "w4", Open, 90)}, write(4, "w4")},
	} {
		for _, v := range AuditAttempts(append(slices.Clone(all), c.attempts...), inOrder(append(good(), c.changes...))) {
			if v.Name == check {
				require.NotEmpty(t, v.Problems, check)
			}
		}
	}
	for _, v := range AuditAttempts(all, good()) {
		require.True(t, v.OK || strings.Contains(strings.Join(v.Problems, ""), "nothing to check"), v)
	}
	// That a tenure was opened is judged, too.
	require.Contains(t, AuditAttempts(all, good())[3].Detail, "4 records in 1 tenure,")
}

// The responses to the client and the changes in etcd are converted for the oracle, which tests its rules.
func TestHistory(t *testing.T) {
	attempt := func(id string, ms int, m Method, value string, o Outcome, more func(*Attempt)) Attempt {
		a := Attempt{ID: id, Begin: at(ms), At: at(ms + 1), Node: "n1", Method: m, Key: "k", Value: value, Outcome: o}
		if more != nil {
			more(&a)
		}
		return a
	}
	read := func(found string, revision int64) func(*Attempt) {
		return func(a *Attempt) { a.Found, a.Revision = found, revision }
	}
	x := newEvidence([]scenario.Fact{{At: begin}}, []Attempt{
		attempt("r3", 90, Get, "", Failed, nil), // is no evidence
		attempt("w1", 10, Put, "x", Done, func(a *Attempt) { a.Token, a.Revision = 2, 4 }),
		attempt("w2", 20, Append, "y", Done, nil), // without a receipt
		attempt("w3", 30, Delete, "", Open, nil),
		attempt("w4", 40, Put, strings.Repeat("z", 101), Refused, nil),
		attempt("r1", 50, Get, "", Done, read("xy", 5)),
		attempt("r2", 60, Get, "", Done, read("other", 5)),
		attempt("w5", 70, Delete, "", Refused, func(a *Attempt) { a.Missing = true }),
		attempt("r4", 80, Get, "", Done, func(a *Attempt) { a.Missing = true }),
	}, good())
	require.Empty(t, x.odd)
	h := x.history(Config{})
	var told []string
	for _, e := range h.Events {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%d-%d %s: %s %s %d %d %s", e.At.Milliseconds(), e.Until.Milliseconds(), e.Who, e.Kind, e.Write, e.Token, e.Commit, e.Text)))
	}
	require.Equal(t, []string{
		`10-0 the client at n1: sent w1 0 0 put of "k": x`, `11-0 the client at n1: acked w1 2 4`,
		`20-0 the client at n1: sent w2 0 0 append of "k": y`, `21-0 the client at n1: acked w2 -1 -1`,
		`30-0 the client at n1: sent w3 0 0 delete of "k":`, `31-0 the client at n1: unclear w3 0 0`,
		`40-0 the client at n1: sent w4 0 0 put of "k": 101 bytes (SHA-256 01be33a097ac4e25cef9dbbcc61c1368b082772f7980336317a58404311f5e91)`, `41-0 the client at n1: refused w4 0 0`,
		`50-51 request r1 at n1: read w2 0 0`,
		`60-61 request r2 at n1: read other of revision 5 0 0`,
		`70-0 the client at n1: sent w5 0 0 delete of "k":`, `70-71 request w5 at n1: read  0 0`, `71-0 the client at n1: refused w5 0 0`,
		`80-81 request r4 at n1: read  0 0`,
	}, told)
	require.Equal(t, []oracle.Change{
		{Rev: 2, Key: "shop/a", Create: 2},
		{Rev: 3, Key: "data", Value: oracle.WriteValue(2, "opening"), Holder: "shop/a", Opens: true},
		{Rev: 4, Key: "data/k", Value: oracle.WriteValue(2, "w1"), Holder: "shop/a", Did: `put of "k": x`},
		{Rev: 5, Key: "data/k", Value: oracle.WriteValue(2, "w2"), Holder: "shop/a", Did: `append of "k": y`},
		{Rev: 6, Key: "data/k", Value: oracle.WriteValue(2, "w3"), Holder: "shop/a", Did: `delete of "k": `, Deleted: true},
		{Rev: 7, Key: "shop/a", Deleted: true},
	}, h.Changes)
	// If a record is wrong, reads of what etcd had are right.
	x = newEvidence(nil, nil, []Change{record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x"), put(4, data("k"), "other")})
	require.Equal(t, "w1", x.found(Attempt{Key: "k", Found: "other", Revision: 4}))
	require.Equal(t, "x of revision 4", x.found(Attempt{Key: "k", Found: "x", Revision: 4}))
}

// The data agrees with the trail, and nothing else is written: in the good run the changes of some
// revision are replaced.
func TestData(t *testing.T) {
	require.True(t, newEvidence(nil, nil, good()).checkData().OK)
	for _, bad := range []struct {
		problem string // "": none
		changes []Change
	}{
		{"revision 4 wrote k without a record", []Change{put(4, data("k"), "x")}},
		{"revision 4 differs from its record", []Change{record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x")}},
		{"revision 4 differs from its record", []Change{record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x"), put(4, data("k"), "other")}},
		{"revision 4 differs from its record", []Change{record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x"), put(4, data("other"), "x")}},
		{"revision 5 differs from its record", []Change{record(5, kvpb.Record_METHOD_APPEND, "w2", "k", "y"), put(5, data("k"), "y")}},
		{"revision 6 differs from its record", []Change{record(6, kvpb.Record_METHOD_DELETE, "w3", "k", ""), put(6, data("k"), "xy")}},
		{"revision 4 has two records", []Change{record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x"), put(4, data("k"), "x"), record(4, kvpb.Record_METHOD_PUT, "w1", "k", "x")}},
		{"revision 4 has two records", []Change{record(4, kvpb.Record_METHOD_PUT, "", "k", "x"), put(4, data("k"), "x"), record(4, kvpb.Record_METHOD_PUT, "", "k", "x")}},
		{"unexpected write of elsewhere", []Change{put(8, "elsewhere", "x")}},
		{"", []Change{put(8, "/eldest/request/shop/1f", "x")}}, // a request to a node to requeue
		{"unexpected write of /eldest/request/shops/1f", []Change{put(8, "/eldest/request/shops/1f", "x")}},
		{"the record /kv/shop/trail/1 was deleted", []Change{del(8, "/kv/shop/trail/1")}},
		{"not a record of the trail", []Change{put(8, "/kv/shop/trail/x", "x")}},
		{"the record /kv/shop/trail/1 was overwritten", []Change{func() Change { c := put(8, "/kv/shop/trail/1", ""); c.Kv.Version = 2; return c }()}},
	} {
		rev := bad.changes[0].Kv.ModRevision
		changes := slices.DeleteFunc(good(), func(c Change) bool { return c.Kv.ModRevision == rev })
		v := newEvidence(nil, nil, inOrder(append(changes, bad.changes...))).checkData()
		if bad.problem == "" {
			require.True(t, v.OK, v.Problems)
			continue
		}
		require.Contains(t, strings.Join(v.Problems, "\n"), bad.problem)
	}
}

// faultRun returns a run with one fault after which all nodes agreed again. Each node received three
// calls in it, some of which failed, and one after it. alter, if not nil, changes the evidence.
func faultRun(action scenario.Action, alter func(*evidence)) *evidence {
	status := func(ms int, node, role string, token eldest.Token) scenario.Fact {
		return scenario.Fact{At: at(ms), Kind: scenario.Status, Participant: node, Role: role, Token: token}
	}
	x := &evidence{facts: []scenario.Fact{
		status(1, "n1", scenario.Leading, 2), status(2, "n2", following, 2),
		{At: at(10), Kind: scenario.Acted, Action: action, Participant: "n1", Token: 2},
		status(20, "n1", unknown, 0), status(30, "n2", scenario.Leading, 5),
		{At: at(100), Kind: scenario.Settled, Participant: "n2", Token: 5},
	}}
	for i := range 12 {
		a := Attempt{ID: fmt.Sprint(i), Begin: at(40 + i), At: at(41 + i), Node: fmt.Sprintf("n%d", i%3+1), Method: Put, Token: 5, Outcome: Done}
		switch {
		case i < 3:
			a.Outcome = Open
		case i >= 9:
			a.Begin, a.At = at(101+i), at(102+i)
		}
		x.attempts = append(x.attempts, a)
	}
	if alter != nil {
		alter(x)
	}
	return x
}

// The violations that the checks of this package must find.
func TestBadRunsAreCaught(t *testing.T) {
	cfg := Config{Config: scenario.Config{TTL: 2 * time.Second}} // a hand-over may take 1 s, one after the expiry of a lease 9 s
	faults := func(x *evidence) story.Verdict { return x.checkFaults() }
	back := func(x *evidence) story.Verdict { return x.checkReturn(x.history(cfg), cfg) }
	const none = "INVALID: there was no"
	for name, c := range map[string]struct {
		x       *evidence
		check   func(*evidence) story.Verdict
		problem string
	}{
		"nobody called during it": {faultRun(scenario.Kill, func(x *evidence) { x.attempts = nil }), faults, "kill of n1: the client made only 0 attempts"},
		"nobody noticed it":       {faultRun(scenario.Kill, func(x *evidence) { x.attempts = x.attempts[3:] }), faults, "kill of n1: no call failed because of it"},
		"nobody noticed it there": {faultRun(scenario.CutFollower, func(x *evidence) { x.attempts[0].Outcome = Done }), faults, "cut-follower of n1: no call failed because of it"},
		"nothing to delete is no effect": {faultRun(scenario.Kill, func(x *evidence) {
			for i := range 3 {
				x.attempts[i].Outcome, x.attempts[i].Missing = Refused, true
			}
		}), faults, "kill of n1: no call failed because of it"},
		"they never agreed again":     {faultRun(scenario.Kill, func(x *evidence) { x.facts = x.facts[:5] }), faults, none + " kill"},
		"a slow hand-over":            {faultRun(scenario.Resign, func(x *evidence) { x.facts[4].At = at(1100) }), back, "resign of token 2: n2 leads after 1.09s, later than 1s"},
		"no successor":                {faultRun(scenario.Kill, func(x *evidence) { x.facts[4].Role = following }), back, "kill of token 2: no candidate succeeded it"},
		"the old leader leads on":     {faultRun(scenario.Cut, func(x *evidence) { x.facts[3].At = at(31) }), back, "n2 won (token 5) while n1 (token 2) still led"},
		"the successor serves nobody": {faultRun(scenario.Cut, func(x *evidence) { x.attempts = x.attempts[:3] }), back, "cut of n1: no write was acknowledged within 9s"},
		"a leader changes by itself":  {faultRun(scenario.CutFollower, nil), back, "n2 leads with token 5 although there was no fault of the leader, n1"},
		"a follower is sure too long": {faultRun(scenario.CutFollower, func(x *evidence) { x.facts[3].At = at(2600) }), back, "cut-follower of n1: it followed for 2590 ms, longer than 2.5s"},
		"an undocumented answer":      {faultRun(scenario.Kill, func(x *evidence) { x.attempts[0].Code = codes.Internal }), (*evidence).checkAnswers, "0 (put) ended with"},
		"nothing to put":              {faultRun(scenario.Kill, func(x *evidence) { x.attempts[0].Code = codes.NotFound }), (*evidence).checkAnswers, "0 (put) ended with"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.check(c.x)
			require.False(t, v.OK)
			require.Contains(t, strings.Join(v.Problems, "\n"), c.problem)
		})
	}
	good := faultRun(scenario.Kill, nil)
	for _, v := range []story.Verdict{back(good), good.checkAnswers(), good.checkForwarding()} {
		require.True(t, v.OK, v.Problems)
	}
	require.NotContains(t, faults(good).Problems, none+" kill")
	require.Len(t, faults(good).Problems, 4, "the other faults")
	for _, v := range Audit(nil, nil, nil, cfg) { // without evidence
		require.False(t, v.OK, v.Name)
	}
}

// The faults of a long run do not each keep memory for all attempts of the run.
func TestManyAttempts(t *testing.T) {
	x := faultRun(scenario.Kill, func(x *evidence) { x.attempts = append(make([]Attempt, 10_000), x.attempts...) })
	require.Less(t, cap(x.faults()[0].attempts), 100)
}

// The texts of the facts, and of the calls that failed.
func TestWords(t *testing.T) {
	p := &plan{said: map[string]string{}}
	x := faultRun(scenario.Suspend, func(x *evidence) {
		x.facts = append(x.facts,
			scenario.Fact{Kind: Listening, Participant: "n1", Address: "h:1", Member: "m1"},
			scenario.Fact{Kind: scenario.Acted, Action: scenario.Start, Participant: "n1"},
			scenario.Fact{Kind: Probed, Member: "m1"}, scenario.Fact{Kind: Probed, Member: "m1", OK: true},
			scenario.Fact{Kind: scenario.Exited, Participant: "n1"}, scenario.Fact{Kind: scenario.Exited, Participant: "n1", Code: 1, Cause: "why"})
	})
	var told []string
	tell := func(l scenario.Line) {
		if l.Text != "" {
			told = append(told, strings.TrimSpace(l.Who+" "+l.Text+" "+l.More))
		}
	}
	for _, f := range x.facts {
		tell(p.Words(f))
	}
	for _, err := range []error{nil, errors.New("what\x1b"), status.Error(codes.Unavailable, nobodyListens), status.Error(codes.FailedPrecondition, `eldest: election "shop": no`)} {
		a := Attempt{Method: Put, Node: "n1"}
		a.Ended(nil, err, false)
		tell(a.line())
	}
	vain := Attempt{Method: Delete}
	vain.Ended(nil, status.Error(codes.NotFound, ""), true)
	tell(vain.line()) // is no failure
	require.Equal(t, strings.TrimSpace(`
n1 LEADS with token 2
n2 follows , token 2
demo sends SIGSTOP to n1, the leader,
n1 neither leads nor follows:
n2 LEADS with token 5
n1 takes calls at h:1, reaches etcd through m1
demo sent m1 a request that requires a majority: no answer
demo sent m1 a request that requires a majority: it answers
n1 ended its process with exit code 1: why
client put through n1: Unknown, the outcome is unknown what
client put through n1: no process listens at its port, nothing was sent
client put through n1: FailedPrecondition, it was not applied no
`), strings.Join(told, "\n"))
	rows := x.rows()
	require.Len(t, rows, 1)
	row := rows[0]
	require.Contains(t, row.words(story.Style{}), "n1 was suspended   n2 led after")
	require.Contains(t, row.words(story.Style{}), "calls:   6 done; writes:  0 refused,  3 open; reads:  0 failed; longest without an answer 51 ms")
}
