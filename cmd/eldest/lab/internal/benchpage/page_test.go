package benchpage

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// measured makes a result out of samples.
func measured(contender, regime string, n int, metric, unit string, samples ...int64) bench.Result {
	sorted := slices.Sorted(slices.Values(samples))
	return bench.Result{
		Contender: contender, Regime: regime, N: n, Metric: metric, Unit: unit, Samples: samples, Rounds: len(samples),
		Min: bench.Percentile(sorted, 0), P50: bench.Percentile(sorted, 50), P90: bench.Percentile(sorted, 90),
		P99: bench.Percentile(sorted, 99), Max: bench.Percentile(sorted, 100),
	}
}

// around is so many samples about a value.
func around(value float64, count int) []int64 {
	r := rand.New(rand.NewPCG(1, 2))
	var samples []int64
	for range count {
		samples = append(samples, int64(value*math.Exp(r.NormFloat64()*0.2)))
	}
	return samples
}

// hostile is a text that would break out of wherever it is put.
const hostile = `"><script>alert("x")</script>'{{.}}`

// runs are pages' worth of everything there can be.
func runs() []figures.Run {
	handover := &bench.Report{Scenario: "handover", Time: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), Go: "go1.26", Etcd: "3.7.3", Members: 3}
	drain := &bench.Report{Scenario: "drain"}
	for i, name := range []string{"eldest", "concurrency", "herd", "floor", hostile} {
		factor := float64(i + 1)
		handover.Results = append(handover.Results,
			measured(name, "queued", 2, "win", bench.Nanoseconds, around(1e6*factor*factor*factor, 200)...),
			measured(name, "queued", 2, "gap", bench.Nanoseconds, -int64(i)*1e6, 1e6, 2e6, 3e6),
			measured(name, "queued", 2, "heap", bench.Bytes, 900<<10),
			measured(name, "queued", 2, "two", bench.Counts, 0, 0, 0))
		for _, n := range []int{10, 100, 4000} {
			drain.Results = append(drain.Results,
				measured(name, "", n, "handover", bench.Nanoseconds, around(1e6*factor+float64(n*i*i)*1e4, 20)...),
				measured(name, "", n, "events", bench.Counts, int64(n*i)))
		}
	}
	handover.Results[3].Errors, handover.Results[3].FirstError = 3, hostile
	one, other := figures.New(handover), figures.New(drain)
	one.Summary, one.Setup.Command, one.Setup.CPU = "a leader resigns", "eldest bench handover "+hostile, "some CPU"
	other.Incomplete = "interrupted " + hostile
	return []figures.Run{one, other, {Scenario: "empty"}}
}

func write(t *testing.T, runs []figures.Run) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, runs))
	return out.String()
}

func TestPageNeedsNoNetwork(t *testing.T) {
	text := write(t, runs())
	for _, url := range regexp.MustCompile(`(?i)[a-z]+://[^"' )<]*`).FindAllString(text, -1) {
		require.Contains(t, []string{"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, url, "a name space is no address, this is one")
	}
	for _, pulls := range []string{"<link", "<iframe", "<img", "src=", "@import", "url(", "fetch(", "XMLHttp"} {
		require.NotContains(t, text, pulls)
	}
}

func TestPageShowsEverything(t *testing.T) {
	text := write(t, runs())
	for _, part := range []string{
		`<section id="run-1">`, `<section id="run-2">`, `<section id="run-3">`, `href="#run-2"`,
		"As multiples of concurrency", "As N grows", "Percentiles at the other sizes", "queued, n=2: gap",
		"vs concurrency", "vs floor", "0.88", "in MiB", "2026-11-21 15:00 UTC", "some CPU", "3.7.3", "Incomplete: interrupted",
	} {
		require.True(t, strings.Contains(text, part), part) // not the whole page in the message
	}
	require.Equal(t, text, write(t, runs()), "the same figures are not the same page")
	for _, mistake := range []string{"#0102", "NaN", "Inf", "ZgotmplZ"} { // placeholders, numbers that are none, unsafe CSS
		require.False(t, strings.Contains(text, mistake), mistake)
	}
}

// failovers is a run whose Ns are TTLs, and which nobody can win sooner than they allow.
func failovers() figures.Run {
	report := &bench.Report{Scenario: "cut", Go: "go1.26", Etcd: "3.7.3", Members: 3, Setup: bench.Setup{Warmup: 1}}
	for _, n := range []int{2000, 5000} {
		for i, name := range []string{"eldest", "concurrency", "herd"} {
			ttl := int64(n) * 1e6
			report.Results = append(report.Results,
				measured(name, "cut", n, "win", bench.Nanoseconds, around(float64(ttl)*(0.7+float64(i)/10), 20)...),
				measured(name, "cut", n, "gap", bench.Nanoseconds, -int64(i)*1e8, 4e8, 5e8),
				measured(name, "cut", n, "two-leaders", bench.Counts, int64(min(i, 1)), 0, 0),
				measured(name, "cut", n, "bound", bench.Nanoseconds, ttl+5e8, ttl+5e8))
		}
	}
	return figures.New(report)
}

func TestBoundsAreLines(t *testing.T) {
	run := failovers()
	text := write(t, []figures.Run{run})
	for _, part := range []string{
		"cut, TTL 2s: win", "cut, TTL 5s: win", "As TTL grows", "TTL (log scale)", "<td>bound</td>", "vs bound",
		"1 of 3", "0 of 3", "<dd>1 turn</dd>",
	} {
		require.True(t, strings.Contains(text, part), part)
	}
	require.NotContains(t, text, "2s: bound")
	groups := run.Groups()
	p, ok := percentiles(&groups[0], newPalette(contenders([]figures.Run{run})))
	require.True(t, ok)
	require.Contains(t, string(p.SVG), ">bound<")
}

func TestRatiosThatAreAlike(t *testing.T) {
	require.Equal(t, []string{"0.5x", "1x", "2x"}, labels(ratioScale(0.98, 1).ticks))
	p, ok := ratios(newGroups(t), "concurrency", newPalette(nil))
	require.True(t, ok)
	for _, value := range []string{">0.88x<", ">1.13x<"} {
		require.Contains(t, string(p.SVG), value)
	}
}

// newGroups are those of three contenders that differ little.
func newGroups(t *testing.T) []figures.Group {
	t.Helper()
	run := figures.New(&bench.Report{Scenario: "x", Results: []bench.Result{
		measured("eldest", "", 1, "win", bench.Nanoseconds, 700),
		measured("concurrency", "", 1, "win", bench.Nanoseconds, 800),
		measured("herd", "", 1, "win", bench.Nanoseconds, 901),
	}})
	return run.Groups()
}

func TestPicturesAreWhole(t *testing.T) {
	text := write(t, runs())
	svgs := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1)
	// 1 of ratios each, 2 of scaling, 2 + 1 of percentiles, 2 more at other sizes.
	require.Len(t, svgs, 9)
	for _, svg := range svgs {
		dec := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, svg)
		}
		require.Contains(t, svg, "<text")
		require.Contains(t, svg, "aria-label=")
	}
}

func TestPicturesAsFiles(t *testing.T) {
	files, err := Files(runs())
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		require.Regexp(t, `(?s)^<svg [^>]*xmlns[^>]*><style>.*prefers-color-scheme.*</style><rect`, f.SVG)
		dec := xml.NewDecoder(strings.NewReader(f.SVG))
		for err = error(nil); err == nil; {
			_, err = dec.Token()
		}
		require.ErrorIs(t, err, io.EOF, f.Name)
	}
	require.Contains(t, names, "handover-ratios.svg")
	require.Contains(t, names, "handover-percentiles-queued-n-2-win.svg")
	require.Contains(t, names, "drain-scaling-handover.svg")
	require.Len(t, names, 9)
}

func TestHoverSaysWhatTheTableSays(t *testing.T) {
	run := runs()[0]
	groups := run.Groups()
	p, ok := percentiles(&groups[0], newPalette(contenders([]figures.Run{run})))
	require.True(t, ok)
	var h hover
	require.NoError(t, json.Unmarshal([]byte(p.Hover), &h))
	at := slices.IndexFunc(h.Stops, func(s stop) bool { return s.Head == "p99" })
	for i, row := range h.Stops[at].Rows {
		require.Equal(t, groups[0].Scale().With(groups[0].Results[i].P99), row.Value)
		require.InDelta(t, (h.Top+h.Bottom)/2, row.Y, (h.Bottom-h.Top)/2, "outside of the picture")
	}
	require.True(t, slices.IsSortedFunc(h.Stops, func(a, b stop) int { return int(a.X - b.X) }))
}

func TestColoursBelongToContenders(t *testing.T) {
	few, many := newPalette([]string{"herd", "eldest"}), newPalette([]string{"fresh", "eldest", "herd"})
	require.Equal(t, few["herd"], many["herd"])
	require.Equal(t, few["eldest"], many["eldest"])
	var crowd []string
	for i := range 20 {
		crowd = append(crowd, fmt.Sprint("c", i))
	}
	p := newPalette(crowd)
	seen := map[ink]bool{}
	for _, name := range crowd[:4] {
		require.False(t, seen[p[name]], name)
		seen[p[name]] = true
	}
	require.Equal(t, inkMuted, p["c19"])
}
