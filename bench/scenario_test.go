package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// measured is a report in which all turns have succeeded.
type measured struct {
	*testing.T
	*Report
}

// measure runs a scenario on an etcd of its own: no turn of any contender may fail, the scenario
// must explain each word of its results, and no key may be left in etcd.
func measure(t *testing.T, name string, o Options) measured {
	t.Helper()
	ctx, cluster := testContext(t), etcdtest.Start(t, etcdtest.Config{})
	s, err := Named(name)
	require.NoError(t, err)
	if o.Contenders == nil && s.Defaults.Contenders == nil && s.Contenders == nil {
		o.Contenders = contender.Names()
	}
	report, err := Run(ctx, siteOf(cluster), name, o)
	require.NoError(t, err)
	has := func(terms []Term, name string) bool {
		return slices.ContainsFunc(terms, func(term Term) bool { return term.Name == name && term.Text != "" })
	}
	require.NotEmpty(t, report.Results)
	for _, x := range report.Results {
		require.Zero(t, x.Errors, "%s %s %s: %s", x.Contender, x.Regime, x.Metric, x.FirstError)
		require.Len(t, x.Samples, x.Rounds)
		require.True(t, has(s.Regimes, x.Regime), "%s does not explain %q", name, x.Regime)
		require.True(t, has(s.Metrics, x.Metric), "%s does not explain %q", name, x.Metric)
	}
	left, err := cluster.Client(t).Get(ctx, "eldest-bench-", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
	return measured{t, report}
}

// of returns a result, which must exist.
func (m measured) of(contender, regime string, n int, metric string) *Result {
	m.Helper()
	x := m.Find(contender, regime, n, metric)
	require.NotNil(m, x, "%s %s n=%d %s", contender, regime, n, metric)
	return x
}

// each runs a test for each contender, in parallel with each other, and with all other tests if the
// caller is parallel.
func each(t *testing.T, names []string, f func(t *testing.T, name string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, name)
		})
	}
}

// observing are the contenders that have observers.
var observing = []string{contender.Eldest, contender.Concurrency, contender.Herd}

func TestHandover(t *testing.T) {
	t.Parallel()
	m := measure(t, "handover", Options{Rounds: 1, Warmup: 1, Load: 50, Contenders: []string{"eldest", "floor"}})
	for _, regime := range handover.Regimes {
		require.Len(t, m.of("eldest", regime.Name, 2, "win").Samples, 1)
		require.Positive(t, m.of("floor", regime.Name, 2, "resign").Min)
	}
	require.Positive(t, m.Setup.Written["settled-load"].PerSecond)
}

func TestDrain(t *testing.T) {
	t.Parallel()
	const rounds, n = 1, 6
	each(t, contender.Names(), func(t *testing.T, name string) {
		m := measure(t, "drain", Options{Rounds: rounds, Sizes: []int{n}, Contenders: []string{name}})
		require.Len(t, m.of(name, "queue", n, "handover").Samples, rounds*(n-1))
	})
}

func TestGuard(t *testing.T) {
	t.Parallel()
	m := measure(t, "guard", Options{Rounds: 5, Warmup: 1})
	for _, name := range contender.Names() {
		require.Len(t, m.of(name, "put", 1, "put").Samples, 5)
		require.Positive(t, m.of(name, "put", 1, "put").Min)
	}
	require.Len(t, m.Results, len(contender.Names()), "one metric each")
}

func TestJoin(t *testing.T) {
	t.Parallel()
	const rounds, crowd = 7, 12
	each(t, contender.Names(), func(t *testing.T, name string) {
		m := measure(t, "join", Options{Rounds: rounds, Warmup: -1, Sizes: []int{crowd}, Contenders: []string{name}})
		for _, regime := range []string{"cold", "live"} {
			require.Equal(t, rounds, m.of(name, regime, 1, "win").Rounds)
			require.Positive(t, m.of(name, regime, 1, "win").Min)
		}
		require.GreaterOrEqual(t, m.of(name, "cold", 1, "requests").Min, int64(2), "at least a lease and a key")
		require.Positive(t, m.of(name, "crowd", crowd, "queued").Min)
		require.Zero(t, m.of(name, "crowd", crowd, "errors").Max)
		if name == "eldest" {
			// A lease, a key, and a watch of the key. In one or two rounds the watch may come too late to
			// be counted, or the end of the previous watch may be counted as well.
			require.Equal(t, int64(3), m.of(name, "cold", 1, "requests").P50)
		}
	})
}

func TestHerd(t *testing.T) {
	t.Parallel()
	const n = 16
	each(t, contender.Names(), func(t *testing.T, name string) {
		m := measure(t, "herd", Options{Rounds: 1, Sizes: []int{n}, Contenders: []string{name}})
		count := func(metric string) int64 { return m.of(name, "departure", n, metric).Max }
		want := int64(1)
		if name == "herd" {
			want = n
		}
		for _, metric := range []string{"events", "waiter-events"} {
			got := count(metric)
			if name == "eldest" || name == "drop-in" || name == "herd" {
				// A candidate that leaves cancels the watch of its own key before it deletes the
				// key, but the deletion may overtake the cancellation. It notifies no other
				// candidate.
				got = min(got, max(want, got-1))
			}
			require.Equal(t, want, got, metric)
		}
		require.Positive(t, count("requests"))
		require.Nil(t, m.Find(name, "departure", n, "server-events"), "there were no metrics")
		switch name {
		case "eldest":
			// One read after the event. It is repeated if the member has not reached that revision yet, and
			// on a slow machine a periodic check of a watch may happen in this time; but most candidates do
			// not read.
			require.Positive(t, count("reads"))
			require.Less(t, count("reads"), int64(n))
		case "herd":
			require.Equal(t, int64(n), count("reads"))
		case "floor":
			require.Zero(t, count("reads"))
		}
	})
}

// The servers' counts come from their metrics. Without metrics there is a note, and the turn
// counts.
func TestHerdOnTheServers(t *testing.T) {
	t.Parallel()
	counted, failure := map[string]float64{}, error(nil)
	site := siteOf(etcdtest.Shared(t))
	site.Metrics = func(context.Context) (map[string]float64, error) {
		counted = map[string]float64{eventsSent: counted[eventsSent] + 7, messagesReceived: counted[messagesReceived] + 11}
		return counted, failure
	}
	o := Options{Rounds: 1, Sizes: []int{2}, Contenders: []string{"floor"}}
	report, err := Run(testContext(t), site, "herd", o)
	require.NoError(t, err)
	for metric, want := range map[string]int64{"server-events": 7, "server-requests": 11, "waiter-server-requests": 11} {
		require.Equal(t, []int64{want}, report.Find("floor", "departure", 2, metric).Samples, metric)
	}
	failure = errors.New("forbidden")
	report, err = Run(testContext(t), site, "herd", o)
	require.NoError(t, err)
	require.Zero(t, report.Find("floor", "departure", 2, "events").Errors)
	require.Nil(t, report.Find("floor", "departure", 2, "server-events"))
	require.Equal(t, []string{"floor, departure, n=2: the servers' metrics could not be read: forbidden"}, report.Notes)
}

// Sessions on one client share the requests to the majority, and each is renewed about four times
// in a TTL.
func TestSessions(t *testing.T) {
	t.Parallel()
	const n = 40
	each(t, []string{"eldest", "concurrency"}, func(t *testing.T, name string) {
		m := measure(t, "sessions", Options{Rounds: 1, Sizes: []int{n}, TTLs: []time.Duration{4 * time.Second}, Contenders: []string{name}})
		require.NotNil(t, m.of(name, "rest", n, "client-cpu"))
		renewals, questions := m.of(name, "rest", n, "renewals").P50, m.of(name, "rest", n, "questions").P50
		require.Greater(t, renewals, int64(n))
		if name == "concurrency" {
			require.Zero(t, questions)
			return
		}
		require.LessOrEqual(t, renewals, int64(6*n))
		require.Positive(t, questions)
		require.Less(t, questions, int64(2*n), "one answer is not for all")
	})
}

// What a few instances can show: how many goroutines a candidate and an observer have, and that
// many elections share one renewal. It measures the process in which it runs, and therefore runs in one of its own.
func TestFootprint(t *testing.T) {
	// What a measurement before has freed may be more than what so few instances use.
	if !etcdtest.AloneInOneOf(t, 3) {
		return
	}
	const n = 40
	m := measure(t, "footprint", Options{
		Rounds: 1, Sizes: []int{n}, TTLs: []time.Duration{2 * time.Second}, Contenders: []string{"eldest", "concurrency"},
	})
	for _, name := range []string{"eldest", "concurrency"} {
		for _, at := range [][2]string{
			{"candidate", "heap"}, {"candidate", "goroutines"}, {"shared", "memory in all"}, {"election", "requests"},
		} {
			require.Positive(t, m.of(name, at[0], n, at[1]).P50, "%s: %v", name, at)
		}
		require.GreaterOrEqual(t, m.of(name, "shared", n, "goroutines in all").P50, int64(n), "%s: the callers'", name)
		// Eldest renews every quarter of the TTL, or up to a tenth of that sooner, so that five
		// renewals may happen in one TTL; the other contender renews every third. A busy machine
		// counts for longer than a TTL, but not so long that each of the elections would be renewed
		// once.
		require.Less(t, m.of(name, "election", n, "renewals").Max, int64(n), "%s renews once for all elections", name)
		require.LessOrEqual(t, m.of(name, "election", n, "streams").Max, int64(2), name)
	}
	require.Zero(t, m.of("eldest", "observer", n, "goroutines").P50)
	require.Equal(t, int64(2), m.of("concurrency", "observer", n, "goroutines").P50)
}

// Every observer of every contender receives every change, in whichever process it is. The counts
// are those of the protocols: with Eldest each process receives one event and sends no request,
// whatever the number of observers; with the others each observer receives an event and sends a
// request.
func TestFanout(t *testing.T) {
	t.Parallel()
	const rounds, processes, n = 2, 2, 30
	each(t, observing, func(t *testing.T, name string) {
		m := measure(t, "fanout", Options{Rounds: rounds, Warmup: -1, Sizes: []int{n}, Processes: processes, Contenders: []string{name}})
		require.Equal(t, processes, m.Setup.Processes)
		for _, regime := range []string{"one-process", "slow-mixed", "processes"} {
			metric := func(metric string) *Result {
				r := m.of(name, regime, n, metric)
				require.Len(t, r.Samples, rounds)
				return r
			}
			require.Positive(t, metric("last").Min)
			require.LessOrEqual(t, metric("spread").Max, metric("last").Max)
			told := int64(1)
			if regime == "processes" {
				told = processes
			}
			switch {
			case name == "eldest":
				require.Equal(t, []int64{told, told}, metric("events").Samples)
				require.Zero(t, metric("watches").Max)
				// A watch without events is checked every two seconds. A check may happen during a
				// change, and again during one that takes long; but not once for each observer.
				require.Less(t, metric("requests").Max, int64(n))
			case regime == "slow-mixed": // there some observers see the change after the count
			case name == "herd":
				require.Equal(t, []int64{int64(n), int64(n)}, metric("events").Samples)
			default:
				require.GreaterOrEqual(t, metric("requests").Min, int64(2*n))
			}
		}
	})
}

// The load reports how much was written. Its keys are on a lease, so that they expire if the run is
// killed.
func TestLoad(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), etcdtest.Shared(t).Client(t)
	r := testRun(t)
	r.options.Load = 100
	stop := r.load("loaded")
	keys := func() *clientv3.GetResponse {
		got, err := client.Get(ctx, r.name+"-load/", clientv3.WithPrefix())
		require.NoError(t, err)
		return got
	}
	require.Eventually(t, func() bool { return len(keys().Kvs) > 0 }, testTime, time.Millisecond)
	for _, kv := range keys().Kvs {
		require.NotZero(t, kv.Lease)
	}
	stop()
	require.Empty(t, keys().Kvs)
	written := r.report.Setup.Written["loaded"]
	require.Positive(t, written.PerSecond)
	require.Zero(t, written.Failed)
}

func TestStandby(t *testing.T) {
	t.Parallel()
	m := measure(t, "standby", Options{Rounds: 1, Warmup: -1, Sizes: []int{1, 2}})
	for _, regime := range standby.Regimes {
		for _, n := range []int{1, 2} {
			require.Positive(t, m.of("eldest", regime.Name, n, "lead").Min)
			require.Greater(t, m.of("eldest", regime.Name, n, "answer").Min, m.of("eldest", regime.Name, n, "lead").Min)
		}
	}
	require.Len(t, m.Results, 2*2*2)
}
