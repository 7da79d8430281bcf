package figures

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/onrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result makes a result as bench does.
func result(contender, regime string, n int, metric, unit string, failed int, samples ...int64) bench.Result {
	r := bench.Result{Contender: contender, Regime: regime, N: n, Metric: metric, Unit: unit, Samples: samples, Errors: failed}
	r.Summarize()
	if failed > 0 {
		r.FirstError = "it went\x1b[2Jwrong"
	}
	return r
}

// sample is a run with everything that a run can have, of a scenario without explanations.
func sample() *bench.Report {
	return &bench.Report{
		Scenario: "outing", Summary: "a leader resigns", Seconds: 12.3,
		Time: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), Go: "go1.26", Etcd: "3.7.3", Members: 3,
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
	}
}

func tableOf(t *testing.T, r *bench.Report, style story.Style) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Table(&out, r, style))
	return out.String()
}

func TestTable(t *testing.T) {
	run := sample()
	run.Incomplete = "interrupted"
	require.Equal(t, strings.TrimPrefix(`
outing: a leader resigns
etcd 3.7.3 · members 3 · storage memory (tmpfs at /dev/shm), fsync on · load 300/s · warm-up 5 turns · system linux/amd64 · CPUs 2 · Go go1.26 · date 2026-11-21 15:00 UTC · took 12.3s

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
`, "\n"), tableOf(t, run, story.Style{}))
	require.Contains(t, tableOf(t, run, story.Style{Colour: true}), string(story.Red)+"2\x1b[0m", "errors stand out")
	require.Equal(t, []string{"concurrency (settled)"}, Failed(run), "it did not fail at the other point")

	for _, empty := range []*bench.Report{{Scenario: "x"}, {Scenario: "x", Results: []bench.Result{result("eldest", "", 0, "", bench.Counts, 2)}}} {
		require.Contains(t, tableOf(t, empty, story.Style{}), "x\n")
	}
}

// failovers is a run whose Ns are TTLs, and which has a bound.
func failovers() *bench.Report {
	second := int64(time.Second)
	return &bench.Report{Scenario: "cut", Results: []bench.Result{
		result("eldest", "cut", 2000, "win", bench.Nanoseconds, 0, second, 2*second),
		result("eldest", "cut", 2000, "two-leaders", bench.Counts, 0, 0, 0, 0),
		result("eldest", "cut", 2000, "requests", bench.Counts, 0, 1, 1, 2),
		result("eldest", "cut", 2000, "bound", bench.Nanoseconds, 0, 2*second, 2*second),
		result("concurrency", "cut", 2000, "win", bench.Nanoseconds, 0, 2*second, 3*second),
		result("concurrency", "cut", 2000, "two-leaders", bench.Counts, 0, 1, 0, 0),
		result("concurrency", "cut", 2000, "requests", bench.Counts, 0, 1, 1, 1),
		result("concurrency", "cut", 2000, "bound", bench.Nanoseconds, 0, 2*second, 2*second),
		result("eldest", "cut", 5000, "win", bench.Nanoseconds, 0, 3*second, 4*second),
	}}
}

// The table shows what medians hide: how often two lead, and the twos among the ones. A bound
// belongs to no contender.
func TestTableOfFailovers(t *testing.T) {
	run := failovers()
	text := tableOf(t, run, story.Style{})
	require.Contains(t, text, `
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
	for _, term := range terms(run) {
		require.Contains(t, text, "\n"+term.Name+" ")
	}
	require.Len(t, terms(run), 3)
}

func TestRatiosFallBackToTheFirst(t *testing.T) {
	run := sample()
	base, floor := comparison(run)
	require.Equal(t, []string{"concurrency", "floor"}, []string{base, floor})
	run.Results = run.Results[:1]
	base, floor = comparison(run)
	require.Equal(t, []string{"eldest", ""}, []string{base, floor})
	_, ok := ratio(&run.Results[0], nil)
	require.False(t, ok)
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		unit   string
		median int64
		show   float64
		want   string
	}{
		{bench.Nanoseconds, 1_234_567, 95_000_000, "95.00 ms"},
		{bench.Nanoseconds, 840_000, 840_000, "0.84 ms"},
		{bench.Nanoseconds, 340_000, 340_000, "340.00 µs"},
		{bench.Nanoseconds, 2_300_000_000, -2_300_000_000, "-2.30 s"},
		{bench.Nanoseconds, 0, 0, "0 ns"},
		{bench.Bytes, 900 << 10, 900 << 10, "0.88 MiB"},
		{bench.Counts, 4000, 4000, "4000 "},
		{bench.Counts, 4, 1.333, "1.33 "},
		{"parsecs", 3, 4, "4 parsecs"},
	} {
		g := group{unit: c.unit, results: []*bench.Result{{P50: c.median, Samples: []int64{c.median}}}}
		require.Equal(t, c.want, g.scale().show(c.show)+" "+g.scale().unit)
	}
	for ratio, want := range map[float64]string{0: "0x", 0.0312: "0.031x", 0.5: "0.50x", 1: "1.00x", 12.4: "12x", 1000: "1000x"} {
		require.Equal(t, want, showRatio(ratio, true))
	}
}

// Read returns what Write has written, and the JSON has the promised fields.
func TestDocuments(t *testing.T) {
	one, other := sample(), sample()
	other.Scenario, other.Incomplete = "crash", "interrupted"
	var twice bytes.Buffer
	for _, runs := range [][]*bench.Report{{one}, {one, other}, {}} {
		var out bytes.Buffer
		require.NoError(t, Write(io.MultiWriter(&out, &twice), runs))
		again, err := Read(&out)
		require.NoError(t, err)
		require.Len(t, again, len(runs))
		for i := range runs {
			plain.Texts(runs[i]) // which is the only change that reading makes
			require.Equal(t, runs[i], again[i])
		}
	}
	again, err := Read(&twice) // one file after another
	require.NoError(t, err)
	require.Len(t, again, 3)

	var out bytes.Buffer
	require.NoError(t, Write(&out, []*bench.Report{sample()}))
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

	for _, text := range []string{"{}", `{"runs":[{}]}`, `{"runs":[null]}`, "[]", "x", `{"scenario":"a"`, `{"scenario":1}`} {
		_, err := Read(strings.NewReader(text))
		require.ErrorIs(t, err, ErrForeign, text)
	}
}

// around returns so many samples about a value.
func around(value float64, count int) (samples []int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for range count {
		samples = append(samples, int64(value*math.Exp(r.NormFloat64()*0.2)))
	}
	return samples
}

// runs are reports with everything that a page can show.
func runs() []*bench.Report {
	const hostile = `"><script>alert("x")</script>'{{.}}`
	handover, drain := sample(), &bench.Report{Scenario: "drain", Incomplete: "interrupted " + hostile}
	handover.Setup.Command, handover.Setup.CPU = "eldest bench handover "+hostile, "some CPU"
	handover.Scenario, handover.Results = "handover", nil
	for i, name := range []string{"eldest", "concurrency", "herd", "floor", hostile} {
		factor := float64(i + 1)
		handover.Results = append(handover.Results,
			result(name, "queued", 2, "win", bench.Nanoseconds, 0, around(1e6*factor*factor*factor, 200)...),
			result(name, "queued", 2, "gap", bench.Nanoseconds, 0, -int64(i)*1e6, 1e6, 2e6, 3e6),
			result(name, "queued", 2, "heap", bench.Bytes, 0, 900<<10),
			result(name, "queued", 2, "two", bench.Counts, 0, 0, 0, 0))
		for _, n := range []int{10, 100, 4000} {
			drain.Results = append(drain.Results,
				result(name, "", n, "handover", bench.Nanoseconds, 0, around(1e6*factor+float64(n*i*i)*1e4, 20)...),
				result(name, "", n, "events", bench.Counts, 0, int64(n*i)))
		}
	}
	return []*bench.Report{handover, drain, {Scenario: "empty"}, failovers()}
}

func page(t *testing.T, runs []*bench.Report) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Page(&out, runs))
	return out.String()
}

// A page shows everything, is the same for the same figures, and needs no network.
func TestPage(t *testing.T) {
	text := page(t, runs())
	for _, part := range []string{
		`<section id="run-1">`, `<section id="run-3">`, `href="#run-2"`, "As multiples of concurrency", "As the size grows", "Percentiles",
		"queued, n=2: gap", "vs concurrency", "vs floor", "0.88", "(MiB)", "2026-11-21 15:00 UTC", "some CPU", "3.7.3", "incomplete: interrupted",
		"cut, TTL 2s: win", "vs bound", "(bound)", "1 of 3",
	} {
		require.True(t, strings.Contains(text, part), part) // not the whole page in the message
	}
	require.Equal(t, text, page(t, runs()), "the same figures are not the same page")
	for _, mistake := range []string{"NaN", "Inf", "ZgotmplZ", "2s: bound"} { // invalid numbers, unsafe CSS
		require.False(t, strings.Contains(text, mistake), mistake)
	}
	for _, url := range regexp.MustCompile(`(?i)[a-z]+://[^"' )<]*`).FindAllString(text, -1) {
		require.Contains(t, []string{"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, url, "a name space is no address, this is one")
	}
	for _, pulls := range []string{"<link", "<iframe", "<img", "<script", "src=", "@import", "url(", "fetch(", "XMLHttp"} {
		require.NotContains(t, text, pulls)
	}
}

func TestPicturesAsFiles(t *testing.T) {
	files, err := Files(runs())
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		require.Regexp(t, `(?s)^<svg [^>]*xmlns[^>]*><style>`, f.SVG)
		require.Contains(t, f.SVG, "<text")
		dec := xml.NewDecoder(strings.NewReader(f.SVG))
		for err = error(nil); err == nil; {
			_, err = dec.Token()
		}
		require.ErrorIs(t, err, io.EOF, f.Name)
	}
	for _, name := range []string{"handover-ratios.svg", "handover-percentiles-queued-n-2-win.svg", "drain-scaling-handover.svg", "cut-ratios.svg"} {
		require.Contains(t, names, name)
	}
	// 3 of the hand-over, 6 of the queue, and 2 of the failovers.
	require.Len(t, names, 11)
}

func TestAxes(t *testing.T) {
	for name, c := range map[string]struct {
		values   []float64
		low, top float64
		labels   string
	}{
		"wide":     {[]float64{0.8, 90}, 0.1, 100, "0.1 1 10 100"},
		"narrow":   {[]float64{1, 3.5}, 0, 3.5, ""},
		"negative": {[]float64{-4, 500}, -4, 500, ""},
		"zero":     {[]float64{0, 500}, 0, 500, ""},
		"nothing":  {[]float64{0, 0}, 0, 1, ""},
	} {
		chart := newChart(nil, "", "")
		chart.values(c.values)
		a := chart.Y
		require.Equal(t, []float64{c.low, c.top}, []float64{a.Min, a.Max}, name)
		var labels []string
		for _, tick := range a.Tick.Marker.Ticks(a.Min, a.Max) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if c.labels != "" {
			require.Equal(t, c.labels, strings.Join(labels, " "), name)
		}
	}
	require.InDelta(t, nines(0.99)-nines(0.9), nines(0.999)-nines(0.99), 1e-9)
}

// All reference runs are read and shown, and the pictures of docs/benchmarks are made from them.
func TestRunsOnRecord(t *testing.T) {
	const root = "../../../../.."
	recorded, err := filepath.Glob(filepath.Join(root, onrecord.Folder, "bench-*.json.gz"))
	require.NoError(t, err)
	require.Greater(t, len(recorded), 10)
	drawn := map[string]string{}
	for _, file := range recorded {
		var document json.RawMessage
		require.NoError(t, onrecord.Read(root, strings.TrimSuffix(filepath.Base(file), ".json.gz"), &document))
		runs, err := Read(bytes.NewReader(document))
		require.NoError(t, err)
		require.NotEmpty(t, tableOf(t, runs[0], story.Style{}))
		require.Contains(t, page(t, runs), "All figures")
		files, err := Files(runs)
		require.NoError(t, err)
		for _, f := range files {
			drawn[f.Name] = f.SVG // the plain run comes after those of other sizes and storage
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "benchmarks", "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, pictures)
	for _, file := range pictures {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if drawn[filepath.Base(file)] != string(text) {
			err = errors.New("it is not that of the run on record: see docs/data/README.md")
		}
		require.NoError(t, err, file)
	}
}
