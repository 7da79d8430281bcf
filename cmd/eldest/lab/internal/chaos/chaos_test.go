package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

func TestMain(m *testing.M) {
	keeper.Serve(connect.Kept) // some participants have a keeper
	participant.Serve()
	etcdtest.Parallel(8) // they mostly wait
	goleak.VerifyTestMain(m)
}

// small returns a run with one member, whose participants run this binary.
func small(t *testing.T) Config {
	t.Helper()
	return Config{
		Contender: contender.Eldest, Seed: 1, Rounds: 2, SeriesRounds: 25, Members: 1, Participants: 3,
		Faults: []Fault{Compact}, // which takes effect on the busiest machine
		TTL:    time.Second, Dir: t.TempDir(),
		Executable: os.Args[0],
	}
}

// patience bounds a run on CPUs that may be shared.
const patience = 3 * time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// begun returns a series whose election has settled.
func begun(t *testing.T, set func(*Config)) (*series, context.Context) {
	t.Helper()
	ctx, cfg := within(t), small(t)
	set(&cfg)
	s, err := open(ctx, cfg, cfg.Seed)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	require.NoError(t, s.begin(ctx))
	return s, ctx
}

// Each fault, injected once on a real cluster, takes effect, the election recovers, and the history
// has no violation. Those of members need a majority without the member.
func TestEachFaultTakesEffect(t *testing.T) {
	t.Parallel()
	ofMembers := func(f Fault) bool { return NeedsPeers(f) || kindOf(f).group == members }
	for size, faults := range map[int][]Fault{
		1: slices.DeleteFunc(Names(), ofMembers),
		3: slices.DeleteFunc(Names(), func(f Fault) bool { return !ofMembers(f) }),
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			takeEffect(t, size, faults)
		})
	}
}

func takeEffect(t *testing.T, size int, faults []Fault) {
	t.Helper()
	s, ctx := begun(t, func(cfg *Config) { cfg.Members = size })
	var out Series
	for i, f := range faults {
		p := Draw(2, i, []Fault{f}, time.Second)
		require.Equal(t, f, p.Injections[0].Fault)
		p.Number, p.Hold = i+1, min(p.Hold, 300*time.Millisecond)
		r, err := s.round(ctx, p)
		for again := 0; again < 2 && err == nil && r.Invalid != ""; again++ {
			t.Logf("no effect, made once more: %v: %s", p, r.Invalid) // on a busy machine
			r, err = s.round(ctx, p)
		}
		require.NoError(t, err, "%v", p)
		require.Empty(t, r.Invalid, "%v", p)
		require.Empty(t, r.Unsettled, "%v", p)
		require.Len(t, r.Effects, 1)
		require.NotEmpty(t, r.Effects[0].On)
		out.Rounds = append(out.Rounds, r)
	}
	require.NoError(t, s.failed())
	require.NoError(t, s.rest(ctx))
	require.NoError(t, s.part(ctx))
	require.NoError(t, s.halt())
	out.judge(s, false)
	require.Empty(t, out.Violations)
	require.Empty(t, out.Invalid)
	for _, f := range faults {
		require.Positive(t, out.Tally.Struck[string(f)], f)
	}
}

// If a waiter is wanted and only the leader fits, that leader resigns, and waits.
func TestALeaderThatFitsBecomesAWaiter(t *testing.T) {
	t.Parallel()
	s, ctx := begun(t, func(*Config) {})
	leader, err := s.pick(ctx, Injection{On: Leader}, nil)
	require.NoError(t, err)
	waiter, err := s.pick(ctx, Injection{On: Waiter}, func(c *candidate) bool { return c == leader })
	require.NoError(t, err)
	require.True(t, waiter == leader)
	require.False(t, leader.is(Leader))
}

// The same if a successor is wanted: of two participants, the one that does not fit comes to the front.
func TestASuccessorThatFits(t *testing.T) {
	t.Parallel()
	s, ctx := begun(t, func(cfg *Config) { cfg.Participants = 2 })
	leader, err := s.pick(ctx, Injection{On: Leader}, nil)
	require.NoError(t, err)
	successor, err := s.pick(ctx, Injection{On: Successor}, func(c *candidate) bool { return c == leader })
	require.NoError(t, err)
	require.True(t, successor == leader)
	require.False(t, leader.is(Leader))
}

// Three of five participants have heartbeats, and at least one of two.
func TestHeartbeatsAreSpread(t *testing.T) {
	for seed := range uint64(5) {
		s := &series{cfg: Config{Contender: contender.Eldest, TTL: ttl}, seed: seed}
		n := 0
		for i := range 5 {
			if s.beatOf(i, 1) > 0 {
				n++
			} else {
				require.NotZero(t, s.beatOf(i+1, 1))
			}
		}
		require.Equal(t, 3, n)
	}
}

// A participant that was ordered to leave must exit with 0.
func TestExitCodesAreJudged(t *testing.T) {
	t.Parallel()
	s, _ := begun(t, func(*Config) {})
	c := s.seat(0)
	c.expect(leaving)
	c.End()
	require.NoError(t, s.failed())
	require.Len(t, oracle.Exits(s.history()), 1)
}

// A member that dies although no fault has killed it makes its series invalid.
func TestAMemberThatDies(t *testing.T) {
	if !etcdtest.Alone(t) { // any member that it finds is its own
		return
	}
	s, _ := begun(t, func(*Config) {})
	for _, pid := range clitest.Children(os.Getpid()) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && strings.Contains(filepath.Base(exe), "member") {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	require.Eventually(t, func() bool { return s.failed() != nil }, patience, 10*time.Millisecond)
	require.ErrorContains(t, s.failed(), "ended by itself")
}

// Without a majority no participant that fits becomes the leader, or is known to be next: it is chosen
// before.
func TestTheTargetIsChosenBeforeTheMajorityIsCut(t *testing.T) {
	t.Parallel()
	s, ctx := begun(t, func(cfg *Config) { cfg.Members = 3 })
	_, err := s.pick(ctx, Injection{On: Leader}, func(c *candidate) bool { return !hasKeeper(c) })
	require.NoError(t, err)
	for n, then := range []Injection{{Fault: KillKeeper, On: Leader}, {Fault: Silence, On: Successor}} {
		r, err := s.round(ctx, Plan{Number: n + 1, Injections: []Injection{{Fault: "cut-majority", On: Anyone}, then}})
		require.NoError(t, err)
		require.Empty(t, r.Invalid)
		require.Len(t, r.Effects, 2)
	}
	require.NoError(t, s.failed())
}

// A participant whose clock is wrong can be killed in the same round: then only the kill is healed.
func TestAWrongClockIsKilled(t *testing.T) {
	t.Parallel()
	s, ctx := begun(t, func(*Config) {})
	c := s.seat(0)
	clock, err := skew(ctx, s, c, Injection{Fault: Skew, Rate: 1.05})
	require.NoError(t, err)
	life, err := kill(ctx, s, c, Injection{Fault: Kill})
	require.NoError(t, err)
	require.NoError(t, s.heal([]healer{clock, life}))
	require.Equal(t, 2, s.seat(0).life)
}

// A fault that is not seen to take effect makes its round invalid, and so the run: here a waiter
// makes no guarded write whose reply could be lost, and the clock is never read.
func TestNoEffectIsInvalid(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		set func(*Config)
		in  Injection
	}{
		"no effect": { // no leader loses its lease, so no waiter becomes the leader
			func(cfg *Config) { cfg.TTL = 30 * time.Second }, Injection{Fault: LostReply, On: Waiter, Reply: WriteReply},
		},
		"the election reads the clock": {func(cfg *Config) { cfg.Without = participant.GivenClock }, Injection{Fault: Skew, Rate: 1.05}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s, ctx := begun(t, c.set)
			s.patience = time.Second
			r, err := s.round(ctx, Plan{Number: 1, Injections: []Injection{c.in, {Fault: Compact}}})
			require.NoError(t, err)
			require.Contains(t, r.Invalid, want)
			require.Empty(t, r.Effects)
			var report Report
			report.add(Series{Seed: 7, Rounds: []Round{r}})
			require.Equal(t, 1, report.Invalid)
			require.True(t, report.Void())
			require.False(t, report.Held())
			require.Contains(t, report.InvalidBecause[0], "seed 7 round 1")
		})
	}
}

func TestRunHolds(t *testing.T) {
	t.Parallel()
	cfg := small(t)
	cfg.SeriesRounds = 1
	var told []Progress
	cfg.Progress = func(p Progress) { told = append(told, p) }
	r, err := Run(within(t), cfg)
	require.NoError(t, err)
	require.True(t, r.Held(), "%v %v", r.Violations, r.InvalidBecause)
	require.Equal(t, 2, r.Rounds)
	require.Len(t, r.Series, 2)
	require.EqualValues(t, 2, r.Series[1].Seed)
	require.Len(t, told, 2)
	require.Equal(t, Progress{Series: 2, Round: 1, Text: Draw(2, 1, cfg.Faults, cfg.TTL).String(), Done: 1, Total: 2}, told[1])
	for _, s := range r.Series {
		require.Positive(t, s.Seconds)
		for _, name := range []string{"history.jsonl", "history.txt", "register.html"} {
			require.FileExists(t, filepath.Join(s.Kept, name))
		}
	}
	require.Equal(t, []FaultLine{{Fault: Compact, Injected: 2, TookEffect: 2}}, r.Lines)
}

// Participants without a rule must be caught, each by the checks for that rule. This tests the checks
// themselves. (The rule deadline: package plays.)
func TestMissingRulesAreCaught(t *testing.T) {
	t.Parallel()
	for rule, caught := range map[string][]string{
		participant.Guard:   {"I2", "linear"},
		participant.Owner:   {"healing", "left"},
		participant.Watches: {"left"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			catch(t, caught, func(cfg *Config) {
				cfg.Without, cfg.Rounds = rule, 3
				if rule == participant.Owner {
					cfg.Rounds = 1 // after it the election does not settle, and its series ends
				}
				cfg.Faults = []Fault{Resign, Revoke}
			})
		})
	}
}

// catch runs series after series until each of the invariants has been violated. Whether one series
// violates it is random: a stopped process must, for example, be resumed in the middle of a write.
// If ten series in a row do not, the checks do not work.
func catch(t *testing.T, caught []string, set func(*Config)) {
	t.Helper()
	found := map[string]int{}
	missing := func(name string) bool { return found[name] == 0 }
	var seen []Violation
	for try := range 10 {
		cfg := small(t)
		set(&cfg)
		cfg.Seed += uint64(try)
		r, err := Run(within(t), cfg)
		require.NoError(t, err)
		for name, n := range r.ByInvariant {
			found[name] += n
		}
		seen = append(seen, r.Violations...)
		for _, v := range r.Violations {
			require.NotZero(t, v.Seed)
		}
		if len(r.Violations) > 0 {
			require.False(t, r.Held())
			require.FileExists(t, filepath.Join(r.Series[0].Kept, "history.jsonl"))
		}
		if !slices.ContainsFunc(caught, missing) {
			t.Logf("caught after %d series: %v", try+1, found)
			return
		}
	}
	require.Fail(t, "not caught", "%v of %v: %v", slices.DeleteFunc(caught, func(name string) bool { return !missing(name) }), caught, seen)
}

// The known defect of etcd's own package is found: it counts its deadline from the receipt of an
// answer, and a leader that was stopped is sure to lead at its first use afterwards.
func TestConcurrencyPackageIsCaught(t *testing.T) {
	t.Parallel()
	s, ctx := begun(t, func(cfg *Config) { cfg.Contender = contender.Concurrency })
	caught := func() bool {
		return slices.ContainsFunc(s.history().Judge(), func(v oracle.Violation) bool { return v.Invariant == "leading" })
	}
	for n := 1; !caught(); n++ {
		require.Less(t, n, 20)
		_, err := s.round(ctx, Plan{Number: n, Injections: []Injection{{Fault: Stop, On: Leader}}, Hold: 1700 * time.Millisecond})
		require.NoError(t, err)
	}
}

func TestInterruptedRunReports(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	cfg := small(t)
	cfg.Rounds = 1000
	var told []Progress
	cfg.Progress = func(p Progress) {
		if told = append(told, p); p.Round == 2 {
			cancel()
		}
	}
	r, err := Run(ctx, cfg)
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Equal(t, 1, r.Rounds)
	require.Equal(t, Progress{Series: 1, Round: 2, Text: Draw(1, 2, cfg.Faults, cfg.TTL).String(), Done: 1, Total: 1000}, told[1])
	require.Empty(t, r.Violations)
	require.Empty(t, r.InvalidBecause)
}

// The judged history no longer grows, wherever the run was interrupted: a write that is
// acknowledged while the history is being read would have no change in etcd.
func TestBrokenOffHistoryIsWhole(t *testing.T) {
	t.Parallel()
	s, _ := begun(t, func(*Config) {})
	require.Eventually(t, func() bool { return s.history().Tally().Acked > 0 }, patience, 20*time.Millisecond, "nothing is written")
	require.NoError(t, s.halt())
	h := s.history()
	require.Empty(t, h.Judge())
	for range 20 { // time in which the leader would have written
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, h.Tally(), s.history().Tally())
	}
}
