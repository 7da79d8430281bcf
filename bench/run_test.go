package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/bench/echo"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Invalid options are refused before any request is sent; what is listed twice is measured once.
func TestOptions(t *testing.T) {
	site := siteAt([]string{"127.0.0.1:1"})
	for name, o := range map[string]struct {
		scenario string
		options  Options
	}{
		"a fraction of a second":      {"crash", Options{TTLs: []time.Duration{1500 * time.Millisecond}}},
		"no successor":                {"drain", Options{Sizes: []int{1}}},
		"a load that no etcd takes":   {"handover", Options{Load: 2_000_000_000}},
		"sizes that mean nothing":     {"guard", Options{Sizes: []int{5}}},
		"TTLs that mean nothing":      {"guard", Options{TTLs: []time.Duration{time.Second}}},
		"a contender without a name":  {"guard", Options{Contenders: []string{"nobody"}}},
		"another's contender":         {"forwarding", Options{Contenders: []string{contender.Eldest}}},
		"processes that mean nothing": {"forwarding", Options{Processes: 2}},
		"an unknown scenario":         {"nothing", Options{}},
	} {
		_, err := Run(testContext(t), site, o.scenario, o.options)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	o, err := drain.complete(Options{Contenders: []string{"herd", "floor", "herd"}, Sizes: []int{9, 9}})
	require.NoError(t, err)
	require.Equal(t, []string{"herd", "floor"}, o.Contenders)
	require.Equal(t, []int{9}, o.Sizes)
	o, err = forwarding.complete(Options{})
	require.NoError(t, err)
	require.Equal(t, []string{echo.Direct, echo.Forwarded, echo.Plain}, o.Contenders)

	// A scenario that needs processes is refused where none can be started.
	site = Site{Client: siteOf(etcdtest.Shared(t)).Client}
	_, err = Run(testContext(t), site, "crash", Options{Rounds: 1})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Run(testContext(t), site, "guard", Options{Processes: 1})
	require.ErrorIs(t, err, ErrInvalid)
}

// A turn that fails counts as an error for all metrics of its point, or has a result of its own if
// nothing was ever measured there; a turn that counts for several rounds counts as several errors.
func TestFailuresCountEverywhere(t *testing.T) {
	t.Parallel()
	r := testRun(t, "eldest", "herd", "floor")
	broken, turns := errors.New("broken"), 0
	err := try(func() {
		r.measure([]point{{regime: "r", rounds: 3}}, func(at *turn) {
			turns++
			switch {
			case at.contender == "floor":
				check(errors.ErrUnsupported)
			case at.contender == "herd" || turns == 1:
				at.share = 2
				check(broken)
			}
			at.took("a", time.Second)
			at.counted("b", int64(turns))
		})
	})
	require.NoError(t, err)
	report := r.conclude()
	for _, metric := range []string{"a", "b"} {
		x := report.Find("eldest", "r", 0, metric)
		require.Equal(t, 2, x.Errors, metric)
		require.Equal(t, 4, x.Rounds, metric)
		require.Equal(t, "broken", x.FirstError, metric)
	}
	b := report.Find("eldest", "r", 0, "b")
	require.Equal(t, int64(4+6), b.Sum)
	require.InDelta(t, 5.0, b.Mean, 1e-9)
	none := report.Find("herd", "r", 0, "")
	require.Equal(t, 6, none.Errors)
	require.NotNil(t, none.Samples, "an empty list in JSON, too")
	require.Equal(t, []string{"floor, r: left out: unsupported operation"}, report.Notes)
}

// A run ends when all turns fail, or when a worker has died.
func TestRunsEnd(t *testing.T) {
	t.Parallel()
	r := testRun(t, "eldest", "herd")
	broken, turns := errors.New("broken"), 0
	err := try(func() {
		r.measure([]point{{rounds: 100}}, func(*turn) {
			if turns++; turns != 3 {
				check(broken)
			}
		})
	})
	require.ErrorIs(t, err, errAllFailed)
	require.ErrorIs(t, err, broken)
	require.Equal(t, 8, turns, "a round in which one succeeds does not count")

	r = testRun(t, "eldest")
	r.options.Processes = 1
	h := r.host()
	require.Equal(t, 1, r.report.Setup.Processes)
	err = try(func() {
		r.measure([]point{{rounds: 100}}, func(at *turn) {
			check(h.kill())
			must(wires(at.ctx, h))
		})
	})
	require.ErrorIs(t, err, errWorkerEnded)
}

// A run is not delayed by a cluster that dies, whichever contender has its turn. Nor is the end of
// a run that is canceled, even if a contender ignores the end of its context.
func TestClusterThatDies(t *testing.T) {
	t.Parallel()
	each(t, contender.Names(), func(t *testing.T, name string) {
		cluster := etcdtest.Start(t, etcdtest.Config{})
		ctx, cancel := context.WithCancelCause(testContext(t))
		enough := errors.New("enough")
		r, err := newRun(ctx, siteOf(cluster), Options{Contenders: []string{name}})
		require.NoError(t, err)
		hosts := r.hostsOf(2)
		err = try(func() {
			r.measure([]point{{rounds: 2}}, func(turn *turn) {
				_, _, won := turn.pair(hosts[0], hosts[1], time.Minute)
				check(cluster.Member(0).Kill())
				cancel(enough)
				require.Error(t, try(func() { turn.monitor("another") }))
				check((<-won).err)
			})
		})
		require.ErrorIs(t, err, enough)
		begun := time.Now()
		r.close()
		require.Less(t, time.Since(begun), abortTimeout+5*time.Second)
	})
}

// ignorant is a candidate that ignores its context.
type ignorant struct {
	contender.Candidate
	leave <-chan struct{}
}

func (i ignorant) Campaign(context.Context) (contender.Tenure, error) {
	<-i.leave
	return nil, errors.New("too late")
}

func TestCampaignThatIgnoresItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	leave, enough := make(chan struct{}), errors.New("enough")
	cancel(enough)
	_, err := (&openCandidate{Candidate: ignorant{leave: leave}}).campaign(ctx)
	require.ErrorIs(t, err, enough)
	close(leave)
}

// parallel calls f once for each index, a bounded number at a time; the first error ends it.
func TestParallel(t *testing.T) {
	var calls, busy, most atomic.Int64
	seen := make([]atomic.Int64, 500)
	err := parallel(t.Context(), len(seen), func(_ context.Context, i int) error {
		seen[i].Add(1)
		for now := busy.Add(1); now > most.Load(); {
			most.Store(now)
		}
		runtime.Gosched()
		busy.Add(-1)
		return nil
	})
	require.NoError(t, err)
	for i := range seen {
		require.Equal(t, int64(1), seen[i].Load())
	}
	require.LessOrEqual(t, most.Load(), int64(maxParallel))

	broken := errors.New("broken")
	err = parallel(t.Context(), 100_000, func(context.Context, int) error {
		calls.Add(1)
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.LessOrEqual(t, calls.Load(), int64(maxParallel))

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	require.ErrorIs(t, parallel(ctx, 3, func(context.Context, int) error { return nil }), broken)
}

// The result is never more rounds than the scenario has, never zero, and all that the user has set.
func TestFewer(t *testing.T) {
	for _, c := range []struct{ rounds, n, want int }{
		{5, 10, 5}, {5, 600, 5}, {5, 1000, 3}, {5, 4000, 1}, {1, 10, 1}, {1, 100_000, 1}, {60, 1000, 36},
	} {
		require.Equal(t, c.want, (&run{}).fewer(c.rounds, c.n), "%d rounds of %d", c.rounds, c.n)
	}
	require.Equal(t, 5, (&run{exact: true}).fewer(5, 4000), "asked for")
}

// A histogram holds every sample, in buckets that do not overlap and are no wider than a
// hundredth of their values.
func TestHistogram(t *testing.T) {
	samples := []int64{0, 1, -1, -5_000_000_001, 9_999_999_999, 0, 1234567}
	for range 2000 {
		samples = append(samples, rand.Int64N(1e10)-2e9)
	}
	r := Result{Samples: samples}
	r.Summarize()
	var total int64
	for i, b := range r.Histogram {
		require.LessOrEqual(t, b.From, b.To)
		require.True(t, i == 0 || r.Histogram[i-1].To < b.From, "buckets overlap")
		require.LessOrEqual(t, b.To-b.From, max(b.From, -b.To)/100)
		held := slices.DeleteFunc(slices.Clone(samples), func(s int64) bool { return s < b.From || s > b.To })
		require.Len(t, held, int(b.Count))
		total += b.Count
	}
	require.EqualValues(t, len(samples), total)
}
