package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Base is the contender that the others are compared with, Floor the one that nobody can
// be faster than.
const (
	Base  = "concurrency"
	Floor = "floor"
)

// Group is one metric in one regime at one N: what is compared.
type Group struct {
	Regime, Metric, Unit string
	N                    int
	// TTL says that N is one, in milliseconds.
	TTL bool
	// Bound is what nobody is expected to exceed, 0 where there is no such thing.
	Bound int64
	// Results are the contenders', in the order in which they took their turns.
	Results []*Result
}

// The metric that is a line through another one, and that other one.
const (
	boundMetric  = "bound"
	boundsMetric = "win"
)

// Groups sorts out the results: by regime and N as they were measured, and by metric.
// Bounds are no group but a part of that which they bound: they are the same for all.
func (r *Run) Groups() []Group {
	all := r.metrics()
	beside := func(g Group, metric string) *Group {
		at := slices.IndexFunc(all, func(o Group) bool { return o.Metric == metric && o.Regime == g.Regime && o.N == g.N })
		if at < 0 {
			return nil
		}
		return &all[at]
	}
	var groups []Group
	for _, g := range all {
		switch g.Metric {
		case boundsMetric:
			if bound := beside(g, boundMetric); bound != nil {
				for _, x := range bound.Results {
					g.Bound = max(g.Bound, x.P50)
				}
			}
		case boundMetric:
			if beside(g, boundsMetric) != nil {
				continue
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// metrics are the groups, bounds among them.
func (r *Run) metrics() []Group {
	var groups []Group
	ttl := SizesAreTTLs(r.Scenario)
	for i := range r.Results {
		x := &r.Results[i]
		at := slices.IndexFunc(groups, func(g Group) bool {
			return g.Regime == x.Regime && g.N == x.N && g.Metric == x.Metric
		})
		if at < 0 {
			// Metrics of one point stand together, whoever was the first to have one.
			at = len(groups)
			for i, g := range slices.Backward(groups) {
				if g.Regime == x.Regime && g.N == x.N {
					at = i + 1
					break
				}
			}
			groups = slices.Insert(groups, at, Group{Regime: x.Regime, Metric: x.Metric, Unit: x.Unit, N: x.N, TTL: ttl})
		}
		groups[at].Results = append(groups[at].Results, x)
	}
	return groups
}

// Title names the group.
func (g *Group) Title() string {
	var parts []string
	if g.Regime != "" {
		parts = append(parts, g.Regime)
	}
	if g.N > 0 {
		parts = append(parts, Size(g.N, g.TTL))
	}
	title := strings.Join(parts, ", ")
	switch {
	case title == "":
		return cmp.Or(g.Metric, "nothing")
	case g.Metric == "":
		return title
	}
	return title + ": " + g.Metric
}

// Of returns a contender's result, nil if it has none.
func (g *Group) Of(contender string) *Result {
	for _, x := range g.Results {
		if x.Contender == contender {
			return x
		}
	}
	return nil
}

// Size renders an N, of which ttl says whether it is a TTL.
func Size(n int, ttl bool) string {
	if ttl {
		return fmt.Sprintf("TTL %v", time.Duration(n)*time.Millisecond)
	}
	return fmt.Sprintf("n=%d", n)
}

// Ratio is the ratio of what is typical of a result to that of another; ok is false where
// there is none.
func Ratio(of, to *Result) (ratio float64, ok bool) {
	if of == nil || to == nil || !of.Measured() || !to.Measured() || to.Typical() <= 0 || of.Typical() < 0 {
		return 0, false
	}
	return of.Typical() / to.Typical(), true
}

// AgainstBound is the ratio of what is typical of a result to the group's bound.
func (g *Group) AgainstBound(of *Result) (ratio float64, ok bool) {
	if g.Bound <= 0 || !of.Measured() {
		return 0, false
	}
	return of.Typical() / float64(g.Bound), true
}

// Comparison is with whom the run's contenders are compared, "" where there is nobody.
func (r *Run) Comparison() (base, floor string) {
	took := func(name string) bool {
		return slices.ContainsFunc(r.Results, func(x Result) bool { return x.Contender == name })
	}
	switch {
	case took(Base):
		base = Base
	case len(r.Results) > 0:
		base = r.Results[0].Contender
	}
	if took(Floor) && base != Floor {
		floor = Floor
	}
	return base, floor
}
