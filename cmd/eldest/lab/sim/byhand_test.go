package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/lease"
)

// plain is a plan written by hand: participants join one after the other, and nothing is drawn. All
// steps end some time before everything heals.
func plain(impl contender.Contender, members int, ttl time.Duration, steps ...step) *plan {
	p := &plan{style: ordinary, seed: 1, impl: impl, ttl: ttl, tempo: usual, steps: steps}
	p.steps = append(p.steps, step{at: p.over() + 10*time.Second, verb: compact})
	for i := range members {
		p.members = append(p.members, member{joins: time.Duration(i) * 100 * time.Millisecond})
	}
	return p
}

// violated counts the violations of a scenario by invariant.
func violated(r *result) map[string]int {
	found := map[string]int{}
	for _, v := range r.violations {
		found[v.Invariant]++
	}
	return found
}

// A candidate of etcd's package whose key was deleted, or whose lease was revoked, while it was
// queued is still elected when the leader leaves: a harness that does not find that proves nothing.
func TestFindsWinsWithoutAKey(t *testing.T) {
	for v, while := range map[verb]time.Duration{remove: 2 * time.Second, revoke: 0} { // revoked: before its next renewal fails
		r := play(t, plain(concurrency(t), 2, 10*time.Second,
			step{at: 10 * time.Second, verb: v, role: aWaiter}, step{at: 10*time.Second + while + time.Millisecond, verb: resign, pick: 0}))
		require.Contains(t, violated(r), "I4", "%v", r)
		if v == remove {
			require.Contains(t, violated(r), "I6", "%v", r)
		}
	}
}

// In each of 40 partitions of a leader of etcd's package, at any time between two renewals, the old
// leader is still sure to lead while the new one leads: it is notified after the key's deletion.
// No partition begins at the same instant as anything that the client does, which it may do just
// before or just after.
func TestFindsTwoLeadersAfterEachCut(t *testing.T) {
	for i := range 40 {
		at := 5*time.Second + time.Duration(i)*50*time.Millisecond + 7*time.Millisecond
		r := play(t, plain(concurrency(t), 2, 2*time.Second, step{at: at, verb: cut, role: theLeader, way: rig.Both, lasts: 8 * time.Second}))
		require.Contains(t, violated(r), "I1", "cut %d: %v", i, r)
		require.Contains(t, violated(r), "I6", "cut %d: %v", i, r)
	}
}

// A session that counts from the replies of its renewals, and not from when they were sent, outlives its
// lease if replies come late and then stop: here with next to no margin, and a cut after such a reply, long
// before the next renewal.
func TestFindsDeadlinesFromReplies(t *testing.T) {
	late := contender.Ours{Lease: func(cfg *lease.Config) {
		client := cfg.Lease.(*clientv3.Client)
		cfg.Lease, cfg.Majority = countsFromReplies{client}, client
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 2, Timeout: granted / 2}
		}
	}}
	for i := range 12 {
		at := 15*time.Second + time.Duration(i)*250*time.Millisecond // between a slow reply and the next renewal
		for _, impl := range []contender.Ours{late, {}} {
			p := plain(impl, 2, 20*time.Second,
				step{at: 8 * time.Second, verb: delay, role: theLeader, way: rig.In, lag: 2 * time.Second, lasts: 30 * time.Second},
				step{at: at, verb: cut, role: theLeader, way: rig.Both, lasts: 30 * time.Second})
			for m := range p.members {
				p.members[m].temper = temper{margin: time.Millisecond, patience: 0.7}
			}
			r := play(t, p)
			if impl.Lease == nil {
				require.Empty(t, r.found(), "cut at %v: %v", at, r)
				continue
			}
			require.Contains(t, violated(r), "I1", "cut at %v: %v", at, r)
			require.Contains(t, violated(r), "I6", "cut at %v: %v", at, r)
		}
	}
}

// countsFromReplies makes a renewal's TTL begin at its reply, to the second: replies have whole
// seconds.
type countsFromReplies struct{ clientv3.Lease }

func (l countsFromReplies) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	sent := time.Now()
	resp, err := l.Lease.KeepAliveOnce(ctx, id)
	if err != nil {
		return nil, err
	}
	late := *resp
	late.TTL += int64(time.Since(sent).Round(time.Second) / time.Second)
	return &late, nil
}

// A leader that was stopped until its lease had expired and another candidate led is not sure at its first
// use after that: neither if it first checks whether it leads, nor if it first processes what arrived
// meanwhile, such as the reply to a renewal. A stop that is shorter than the lease has no effect.
func TestStoppedLeader(t *testing.T) {
	for _, asked := range []bool{true, false} {
		stop := step{at: 5 * time.Second, verb: freeze, role: theLeader, point: "renewal", after: true, gone: true, asked: asked, lasts: 20 * time.Second}
		r := play(t, plain(contender.Ours{}, 2, 4*time.Second, stop))
		require.Empty(t, r.found(), "%v", r)
		require.Equal(t, 1, r.struck["leader stopped past its lease"], "%v", r)
		require.Zero(t, r.struck["first use after a stop: sure"], "%v", r)
		if asked { // otherwise its end may be reported before the check
			require.Equal(t, 1, r.struck["first use after a stop: not sure"], "%v", r)
		}
		stop.point, stop.lasts = "", 3*time.Second
		r = play(t, plain(contender.Ours{}, 1, 10*time.Second, stop))
		require.Empty(t, r.found(), "%v", r)
		require.Equal(t, 1, r.struck["leader stopped, lease kept"], "%v", r)
		require.Equal(t, 1, r.tally.Tenures, "%v", r)
	}
}

// Without faults a transfer past other candidates succeeds, and there is something to judge.
func TestTransferWithoutFaults(t *testing.T) {
	p := plain(contender.Ours{}, 4, 5*time.Second, step{at: 3 * time.Second, verb: transfers, role: aWaiter, pick: 1, keep: true, lasts: 10 * time.Second})
	for i := range p.members {
		p.members[i].transfers = true
	}
	r := play(t, p)
	require.Empty(t, r.found(), "%v", r)
	require.Equal(t, 1, r.struck["transferred past others"], "%v", r)

	// A false report that the order was kept is found.
	for i, e := range r.history.Events {
		if e.Kind == oracle.Transferred {
			require.Len(t, e.Tokens, 2)
			r.history.Events[i].Plan, r.history.Events[i].Commit = e.Commit, e.Plan
		}
	}
	require.NotEmpty(t, oracle.Transfers(r.history))
}

// etcd is down for half an hour. By then gRPC's own pause before it connects again has grown to two
// minutes; nevertheless, with a client that was made without options, nodes are back within ten
// seconds. Fails if the library does not make the client reconnect.
func TestBackSoonAfterALongOutage(t *testing.T) {
	r := play(t, plain(nodes{}, 3, 5*time.Second, step{at: 5 * time.Second, verb: outage, lasts: 30 * time.Minute}))
	require.Empty(t, r.found(), "%v", r)
	before := map[oracle.Kind]int{} // events before everything heals
	for _, e := range r.history.Events {
		if e.Kind == oracle.Healed {
			break
		}
		before[e.Kind]++
	}
	require.Equal(t, 6, before[oracle.Joined], "%v", r)
	require.Equal(t, 2, before[oracle.Won], "%v", r)
}

// A clock runs at its rate for its readers. That of a stopped process stops, and then jumps ahead.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slow, read := newClock(0), newClock(0.9), 10*time.Second
		time.Sleep(read)
		require.EqualValues(t, 1, slow.ran(), "nobody has read it")
		require.Equal(t, read, c.Now())
		require.Equal(t, 9*time.Second, slow.Now())
		require.InDelta(t, 0.9, slow.ran(), 1e-6)
		c.stop()
		slow.stop()
		time.Sleep(time.Minute)
		c.stop() // again: the reading stays
		require.EqualValues(t, 1, slow.ran(), "it stands still")
		require.Equal(t, read, c.Now())
		c.jump()
		require.Equal(t, read+time.Minute, c.Now())
	})
}

// A suite in which one kind of fault never took effect is invalid; only a small suite may lack rare
// kinds.
func TestSuiteNamesWhatNeverTookEffect(t *testing.T) {
	full := func(scenarios int) *ledger {
		l := newLedger()
		l.Total.Scenarios = scenarios
		for _, k := range kinds() {
			l.Total.Struck[k.name] = 1
		}
		return l
	}
	judged := func(l *ledger, impl contender.Contender) []string {
		l.judge(impl)
		require.Equal(t, l.Complete, len(l.Invalid)+len(l.Broken) == 0)
		return l.Invalid
	}
	require.Empty(t, judged(full(plenty), contender.Ours{}))
	for _, k := range kinds() {
		for name, excused := range map[string]bool{contender.Eldest: false, contender.Concurrency: k.ours || k.native, contender.DropIn: k.native} {
			impl := named(t, name)
			few, many := full(plenty-1), full(plenty)
			delete(few.Total.Struck, k.name)
			delete(many.Total.Struck, k.name)
			require.Equal(t, excused, len(judged(many, impl)) == 0, "%s: %s", name, k.name)
			require.Equal(t, excused || k.rare, len(judged(few, impl)) == 0, "%s: %s", name, k.name)
		}
	}
	l := full(plenty)
	l.Total.add(outcome{Invalid: "nobody ever led"})
	require.Len(t, judged(l, contender.Ours{}), 1)
	l = full(plenty)
	l.Broken = []string{"x"}
	require.Empty(t, judged(l, contender.Ours{}))
}

// Each seed is in one job, and all styles progress at the same rate.
func TestJobs(t *testing.T) {
	seen, last := map[string]int{}, map[style]int{}
	all := jobs(map[style]int{quiet: 2}, map[style]int{ordinary: 120, dense: 8, quiet: 6})
	for i, j := range all {
		for n := j.first; n < j.first+j.count; n++ {
			seen[fmt.Sprint(j.style, n)]++
		}
		last[j.style] = i
	}
	require.Len(t, seen, 120+8+4)
	for st, i := range last {
		require.Greater(t, i, len(all)/2, "%s is over too soon", st)
	}

	// A completed job is not run again; a job that fails returns an error, and leaves no file that
	// would count as complete.
	dir, nobody := t.TempDir(), job{ordinary, 7, 1}
	line, err := json.Marshal(outcome{Style: ordinary, Seed: 7, sum: sum{Scenarios: 1, Violations: map[string]int{"I1": 2}, Found: map[string]*found{"I1": {1, []string{"ordinary 7"}}}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, nobody.String()+".jsonl"), line, 0o600))
	l := newLedger()
	l.run(t.Context(), dir, map[style]int{ordinary: 0}, nil, nil)
	got, err := nobody.do(t.Context(), dir)
	require.NoError(t, err)
	l.Total.add(got[0])
	l.Total.add(got[0])
	require.Equal(t, map[string]int{"I1": 4}, l.Total.Violations)
	require.Equal(t, &found{2, []string{"ordinary 7", "ordinary 7"}}, l.Total.Found["I1"])
	*implName = "nobody"
	defer func() { *implName = contender.Eldest }()
	_, err = nobody.do(t.Context(), dir)
	require.ErrorContains(t, err, "no contender")
	require.NoFileExists(t, filepath.Join(dir, nobody.String()+".jsonl"))
}

// The command in a scenario's report runs the same scenario: the same election, style and seed.
func TestAgainIsTheSameScenario(t *testing.T) {
	r := &result{plan: ordinary.draw(concurrency(t), 3), history: &oracle.History{}}
	require.Contains(t, r.String(), r.again())
	require.Subset(t, strings.Fields(r.again()), []string{"-sim.impl=concurrency", "-sim.style=ordinary", "-sim.seed=3"})
}
