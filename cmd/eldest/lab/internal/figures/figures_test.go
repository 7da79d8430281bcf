package figures

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// result makes one as bench does.
func result(contender, regime string, n int, metric, unit string, errors int, samples ...int64) bench.Result {
	sorted := slices.Sorted(slices.Values(samples))
	r := bench.Result{
		Contender: contender, Regime: regime, N: n, Metric: metric, Unit: unit, Samples: samples,
		Rounds: len(samples) + errors, Errors: errors,
		Min: bench.Percentile(sorted, 0), P50: bench.Percentile(sorted, 50), P90: bench.Percentile(sorted, 90),
		P99: bench.Percentile(sorted, 99), Max: bench.Percentile(sorted, 100),
	}
	if errors > 0 {
		r.FirstError = "it went\x1b[2Jwrong"
	}
	return r
}

// sample is a run with all that can be in one, of a scenario that explains nothing.
func sample() Run {
	run := New(&bench.Report{
		Scenario: "outing", Time: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), Go: "go1.26", Etcd: "3.7.3", Members: 3,
		Setup: bench.Setup{OS: "linux", Arch: "amd64", CPUs: 2, Storage: "memory (tmpfs at /dev/shm), fsync on", Load: 300, Warmup: 5},
		Results: []bench.Result{
			result("eldest", "queued", 2, "win", bench.Nanoseconds, 0, 1_100_000, 1_200_000, 1_300_000),
			result("eldest", "queued", 2, "gap", bench.Nanoseconds, 0, 200, 300),
			result("concurrency", "queued", 2, "win", bench.Nanoseconds, 0, 40_000_000, 50_000_000, 60_000_000),
			result("concurrency", "queued", 2, "gap", bench.Nanoseconds, 0, -500, -400),
			result("herd", "queued", 2, "win", bench.Nanoseconds, 2, 2_000_000),
			result("floor", "queued", 2, "win", bench.Nanoseconds, 0, 1_000_000, 1_000_000, 1_000_000),
			result("eldest", "settled", 0, "events", bench.Counts, 0, 1, 1, 1),
			result("concurrency", "settled", 0, "events", bench.Counts, 3),
		},
	})
	run.Summary, run.Seconds = "a leader resigns", 12.3
	return run
}

func TestTable(t *testing.T) {
	run := sample()
	run.Incomplete = "interrupted"
	var out bytes.Buffer
	require.NoError(t, Table(&out, &run, story.Style{}))
	require.Equal(t, strings.TrimPrefix(`
outing: a leader resigns
etcd 3.7.3 · 3 members · memory (tmpfs at /dev/shm), fsync on · load 300/s · go1.26 linux/amd64 · 2 CPUs · took 12.3s

                       rounds    min    p50    p90    p99    max   mean  errors  vs concurrency  vs floor
queued, n=2: win (ms)
  eldest                    3   1.10   1.20   1.30   1.30   1.30   1.20       0          0.024x     1.20x
  concurrency               3  40.00  50.00  60.00  60.00  60.00  50.00       0           1.00x       50x
  herd                      3   2.00   2.00   2.00   2.00   2.00   2.00       2          0.040x     2.00x
  floor                     3   1.00   1.00   1.00   1.00   1.00   1.00       0          0.020x     1.00x

queued, n=2: gap (ns)
  eldest                    2    200    200    300    300    300    250       0               -         -
  concurrency               2   -500   -500   -400   -400   -400   -450       0               -         -

settled: events
  eldest                    3      1      1      1      1      1      1       0               -         -
  concurrency               3      -      -      -      -      -      -       3               -         -
queued, n=2: win, herd: 2 of 3 rounds failed, the first with: "it went\x1b[2Jwrong"
settled: events, concurrency: 3 of 3 rounds failed, the first with: "it went\x1b[2Jwrong"
incomplete: interrupted
`, "\n"), out.String())

	out.Reset()
	require.NoError(t, Table(&out, &run, story.Style{Colour: true}))
	require.Contains(t, out.String(), string(story.Red)+"2\x1b[0m", "errors stand out")
}

// What medians hide: how often two lead, and the twos among the ones; and a bound is no
// contender's.
func TestTableOfFailovers(t *testing.T) {
	second := int64(time.Second)
	run := New(&bench.Report{Scenario: "cut", Results: []bench.Result{
		result("eldest", "cut", 2000, "win", bench.Nanoseconds, 0, second, 2*second),
		result("eldest", "cut", 2000, "two-leaders", bench.Counts, 0, 0, 0, 0),
		result("eldest", "cut", 2000, "requests", bench.Counts, 0, 1, 1, 2),
		result("eldest", "cut", 2000, "bound", bench.Nanoseconds, 0, 2*second, 2*second),
		result("concurrency", "cut", 2000, "win", bench.Nanoseconds, 0, 2*second, 3*second),
		result("concurrency", "cut", 2000, "two-leaders", bench.Counts, 0, 1, 0, 0),
		result("concurrency", "cut", 2000, "requests", bench.Counts, 0, 1, 1, 1),
		result("concurrency", "cut", 2000, "bound", bench.Nanoseconds, 0, 2*second, 2*second),
	}})
	var out bytes.Buffer
	require.NoError(t, Table(&out, &run, story.Style{}))
	require.Contains(t, out.String(), `
                          rounds   min   p50   p90   p99   max    mean  errors  vs concurrency  vs bound
cut, TTL 2s: win (s)
  eldest                       2  1.00  1.00  2.00  2.00  2.00    1.50       0           0.50x     0.50x
  concurrency                  2  2.00  2.00  3.00  3.00  3.00    2.50       0           1.00x     1.00x
  (bound)                               2.00

cut, TTL 2s: two-leaders
  eldest                       3                                0 of 3       0              0x         -
  concurrency                  3                                1 of 3       0           1.00x         -

cut, TTL 2s: requests
  eldest                       3     1     1     2     2     2    1.33       0           1.33x         -
  concurrency                  3     1     1     1     1     1       1       0           1.00x         -
`)
	for _, term := range run.Terms() {
		require.Contains(t, out.String(), "\n"+term.Name+" ")
	}
}

func TestGlossary(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 30))
	require.Equal(t, strings.TrimPrefix(`
  win     from here to there (lower is better)
  reigns  `+long[:89]+`
          `+long[90:], "\n"),
		Glossary([]bench.Term{{Name: "win", Text: "from here to there", Better: bench.Lower}, {Name: "reigns", Text: long}}, "  "))
	require.Empty(t, Glossary(nil, ""))
}

func TestTableOfNothing(t *testing.T) {
	for _, run := range []Run{{Scenario: "x"}, {Scenario: "x", Results: []Result{{Result: result("eldest", "", 0, "", bench.Counts, 2)}}}} {
		var out bytes.Buffer
		require.NoError(t, Table(&out, &run, story.Style{}))
		require.Contains(t, out.String(), "x\n")
	}
}

func TestRatiosFallBackToTheFirst(t *testing.T) {
	run := sample()
	base, floor := run.Comparison()
	require.Equal(t, []string{"concurrency", "floor"}, []string{base, floor})
	run.Results = slices.DeleteFunc(run.Results, func(r Result) bool { return r.Contender == Base || r.Contender == Floor })
	base, floor = run.Comparison()
	require.Equal(t, []string{"eldest", ""}, []string{base, floor})
	base, floor = (&Run{}).Comparison()
	require.Equal(t, []string{"", ""}, []string{base, floor})

	_, ok := Ratio(&run.Results[0], nil)
	require.False(t, ok)
}

func TestFailed(t *testing.T) {
	run := sample()
	require.Equal(t, []string{"concurrency (settled)"}, run.Failed(), "it did not fail at the other point")
	run.Results = append(run.Results, Result{Result: result("fresh", "queued", 2, "win", bench.Nanoseconds, 4)})
	require.Equal(t, []string{"concurrency (settled)", "fresh (queued, n=2)"}, run.Failed())
}

func TestJSONIsWhatWasPromised(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Write(&out, []Run{sample()}))
	var object map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &object))
	for _, field := range []string{"scenario", "time", "go", "etcd", "members", "results"} {
		require.Contains(t, object, field)
	}
	first := object["results"].([]any)[0].(map[string]any)
	for field, value := range map[string]any{
		"contender": "eldest", "regime": "queued", "n": 2.0, "rounds": 3.0, "unit": "ns", "p50": 1.2e6, "p90": 1.3e6, "p99": 1.3e6,
		"max": 1.3e6, "errors": 0.0, "metric": "win", "samples": []any{1.1e6, 1.2e6, 1.3e6},
	} {
		require.Equal(t, value, first[field], field)
	}
	require.Len(t, first["histogram"], 3)
	require.Equal(t, 300.0, object["setup"].(map[string]any)["load"])
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	one, other := sample(), sample()
	other.Scenario, other.Incomplete = "crash", "interrupted"
	for _, runs := range [][]Run{{one}, {one, other}, {}} {
		var out bytes.Buffer
		require.NoError(t, Write(&out, runs))
		again, err := Read(&out)
		require.NoError(t, err)
		require.Len(t, again, len(runs))
		for i := range runs {
			plain.Texts(&runs[i]) // which is all that reading changes
			require.Equal(t, runs[i], again[i])
		}
	}
	// One file after another.
	var out bytes.Buffer
	require.NoError(t, Write(&out, []Run{one}))
	require.NoError(t, Write(&out, []Run{one, other}))
	again, err := Read(&out)
	require.NoError(t, err)
	require.Len(t, again, 3)
}

func TestForeignJSONIsRefused(t *testing.T) {
	for _, text := range []string{"{}", `{"runs":[{}]}`, "[]", "x", `{"scenario":"a"`, `{"scenario":1}`} {
		_, err := Read(strings.NewReader(text))
		require.ErrorIs(t, err, ErrForeign, text)
	}
}

func TestHistogramHoldsEverySample(t *testing.T) {
	samples := []int64{0, 1, -1, -5_000_000_001, 9_999_999_999, 0, 1234567}
	for range 2000 {
		samples = append(samples, rand.Int64N(1e10)-2e9)
	}
	buckets := histogram(samples)
	var total int64
	for i, b := range buckets {
		require.LessOrEqual(t, b.From, b.To)
		if i > 0 {
			require.Less(t, buckets[i-1].To, b.From, "buckets overlap")
		}
		if b.From > 0 {
			require.LessOrEqual(t, float64(b.To-b.From), float64(b.From)/500, "three digits")
		}
		held := int64(0)
		for _, s := range samples {
			if b.From <= s && s <= b.To {
				held++
			}
		}
		require.Equal(t, held, b.Count)
		total += b.Count
	}
	require.EqualValues(t, len(samples), total)
	require.Empty(t, histogram(nil))
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		unit   string
		values []int64
		show   int64
		want   string
	}{
		{bench.Nanoseconds, []int64{1_234_567, 95_000_000}, 95_000_000, "95.00 ms"},
		{bench.Nanoseconds, []int64{840_000, 95_000_000}, 840_000, "0.84 ms"},
		{bench.Nanoseconds, []int64{340_000}, 340_000, "340 µs"},
		{bench.Nanoseconds, []int64{45_600_000}, 45_600_000, "45.6 ms"},
		{bench.Nanoseconds, []int64{2_300_000_000, 0}, -2_300_000_000, "-2.30 s"},
		{bench.Nanoseconds, nil, 0, "0 ns"},
		{bench.Bytes, []int64{900 << 10}, 900 << 10, "0.88 MiB"},
		{bench.Counts, []int64{3, 4000}, 4000, "4000"},
		{"parsecs", []int64{3}, 4, "4 parsecs"},
	} {
		require.Equal(t, c.want, ScaleFor(c.unit, c.values).With(c.show))
	}
	for ratio, want := range map[float64]string{0: "0x", 0.0312: "0.031x", 0.5: "0.50x", 1: "1.00x", 12.4: "12x", 1000: "1000x"} {
		require.Equal(t, want, ShowRatio(ratio))
	}
}
