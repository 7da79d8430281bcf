package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/bench/contender"
)

// group is one metric in one regime at one N: the results that are compared.
type group struct {
	regime, metric, unit string
	n                    int
	ttl                  bool // n is a TTL
	// bound is the value that no result is expected to exceed, 0 if there is none.
	bound int64
	// results are in the order in which the contenders were measured.
	results []*bench.Result
}

// groups sorts the results: by regime and N in the order of measurement, and by metric.
func groups(r *bench.Report) (all []group) {
	bounds := map[string]int64{}
	ttl := SizesAreTTLs(r.Scenario)
	for i := range r.Results {
		x := &r.Results[i]
		point := func(g group) bool { return g.regime == x.Regime && g.n == x.N }
		if x.Metric == "bound" && slices.ContainsFunc(r.Results, func(o bench.Result) bool {
			return o.Metric == "win" && o.Regime == x.Regime && o.N == x.N
		}) {
			key := fmt.Sprint(x.N, x.Regime)
			bounds[key] = max(bounds[key], x.P50)
			continue
		}
		at := slices.IndexFunc(all, func(g group) bool { return point(g) && g.metric == x.Metric })
		if at < 0 {
			// Metrics of one point are together, whichever contender had one first.
			at = len(all)
			for i, g := range slices.Backward(all) {
				if point(g) {
					at = i + 1
					break
				}
			}
			all = slices.Insert(all, at, group{regime: x.Regime, metric: x.Metric, unit: x.Unit, n: x.N, ttl: ttl})
		}
		all[at].results = append(all[at].results, x)
	}
	for i, g := range all {
		if g.metric == "win" {
			all[i].bound = bounds[fmt.Sprint(g.n, g.regime)]
		}
	}
	return all
}

// SizesAreTTLs reports whether the Ns of a scenario are TTLs, in milliseconds.
func SizesAreTTLs(scenario string) bool {
	s, err := bench.Named(scenario)
	return err == nil && len(s.Defaults.TTLs) > 0 && len(s.Defaults.Sizes) == 0
}

// Size formats an N; ttl means that it is a TTL.
func Size(n int, ttl bool) string {
	if ttl {
		return fmt.Sprintf("TTL %v", time.Duration(n)*time.Millisecond)
	}
	return fmt.Sprintf("n=%d", n)
}

// title returns the title of the group.
func (g *group) title() string {
	var parts []string
	if g.regime != "" {
		parts = append(parts, g.regime)
	}
	if g.n > 0 {
		parts = append(parts, Size(g.n, g.ttl))
	}
	title := strings.Join(parts, ", ")
	if title == "" || g.metric == "" {
		return cmp.Or(title, g.metric, "nothing")
	}
	return title + ": " + g.metric
}

// of returns a contender's result, or nil if it has none.
func (g *group) of(contender string) *bench.Result {
	i := slices.IndexFunc(g.results, func(x *bench.Result) bool { return x.Contender == contender })
	if i < 0 {
		return nil
	}
	return g.results[i]
}

// typical is the figure by which contenders are compared: the median, or for counts the mean,
// because the median of ones and twos hides the twos. Documents of all versions have samples.
func typical(x *bench.Result) float64 {
	if x.Unit != bench.Counts {
		return float64(x.P50)
	}
	return mean(x)
}

func mean(x *bench.Result) float64 {
	sum := 0.0
	for _, s := range x.Samples {
		sum += float64(s)
	}
	return sum / max(1, float64(len(x.Samples)))
}

// ratio returns the ratio of two results' typical figures; ok is false if there is none.
func ratio(of, to *bench.Result) (ratio float64, ok bool) {
	if of == nil || to == nil || len(of.Samples) == 0 || len(to.Samples) == 0 || typical(to) <= 0 || typical(of) < 0 {
		return 0, false
	}
	return typical(of) / typical(to), true
}

// contenders returns all contenders with results, in the order of their first results.
func contenders(r *bench.Report) (names []string) {
	for _, x := range r.Results {
		if !slices.Contains(names, x.Contender) {
			names = append(names, x.Contender)
		}
	}
	return names
}

// comparison returns the contenders with which the others are compared, "" if there is none.
func comparison(r *bench.Report) (base, floor string) {
	names := contenders(r)
	if slices.Contains(names, contender.Concurrency) {
		base = contender.Concurrency
	} else if len(names) > 0 {
		base = names[0]
	}
	if base != contender.Floor && slices.Contains(names, contender.Floor) {
		floor = contender.Floor
	}
	return base, floor
}

// Failed returns the contenders that failed in all rounds of a point, with that point.
func Failed(r *bench.Report) (failed []string) {
	for _, x := range r.Results {
		if len(x.Samples) > 0 || slices.ContainsFunc(r.Results, func(o bench.Result) bool {
			return len(o.Samples) > 0 && o.Contender == x.Contender && o.Regime == x.Regime && o.N == x.N
		}) {
			continue
		}
		g := group{regime: x.Regime, n: x.N, ttl: SizesAreTTLs(r.Scenario)}
		if who := strings.TrimSuffix(fmt.Sprintf("%s (%s)", x.Contender, g.title()), " (nothing)"); !slices.Contains(failed, who) {
			failed = append(failed, who)
		}
	}
	return failed
}
