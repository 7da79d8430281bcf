package benchpage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// series is one metric in one regime at all Ns.
type series struct {
	regime, metric, unit string
	ttl                  bool            // the Ns are TTLs
	groups               []figures.Group // by N, two or more
}

// seriesOf finds the metrics that were measured at several Ns.
func seriesOf(groups []figures.Group) []series {
	var all []series
	for _, g := range groups {
		if g.N <= 0 || g.Metric == "" {
			continue
		}
		at := slices.IndexFunc(all, func(s series) bool { return s.regime == g.Regime && s.metric == g.Metric })
		if at < 0 {
			at = len(all)
			all = append(all, series{regime: g.Regime, metric: g.Metric, unit: g.Unit, ttl: g.TTL})
		}
		all[at].groups = append(all[at].groups, g)
	}
	all = slices.DeleteFunc(all, func(s series) bool { return len(s.groups) < 2 })
	for _, s := range all {
		slices.SortFunc(s.groups, func(a, b figures.Group) int { return cmp.Compare(a.N, b.N) })
	}
	return all
}

// title names it as its groups are named, without N.
func (s series) title() string {
	if s.regime == "" {
		return s.metric
	}
	return s.regime + ": " + s.metric
}

// size is what its groups differ in.
func (s series) size() string {
	if s.ttl {
		return "TTL"
	}
	return "N"
}

// largest is the greatest N.
func (s series) largest() int { return s.groups[len(s.groups)-1].N }

// scaling is the picture of a series: what is typical as lines with dots, p99 as dotted
// lines, and the bound, if there is one.
func scaling(s series, colours palette) (picture, bool) {
	var contenders []string
	var values []float64
	bound := curve{ink: inkText, width: 1}
	for _, g := range s.groups {
		if g.Bound > 0 {
			values = append(values, float64(g.Bound))
		}
		for _, r := range g.Results {
			if !r.Measured() {
				continue
			}
			values = append(values, r.Typical(), float64(r.P99))
			if !slices.Contains(contenders, r.Contender) {
				contenders = append(contenders, r.Contender)
			}
		}
	}
	if len(contenders) == 0 {
		return picture{}, false
	}
	y := scaleOf(s.unit, values)
	x := s.sizeScale()
	if x.low >= x.high {
		return picture{}, false // there are Ns between which a logarithm sees no difference
	}
	p := newPlot(x, y, s.size()+" (log scale)", axisLabel(quantity(s.unit), y))
	var labels endLabels
	for _, name := range slices.Backward(contenders) { // the first on top
		median := curve{ink: colours[name], width: 2, dots: true}
		high := curve{ink: colours[name], width: 1.2, dashes: []vg.Length{vg.Points(1.5), vg.Points(3)}}
		for _, g := range s.groups {
			if r := g.Of(name); r != nil && r.Measured() {
				at := x.place(float64(g.N))
				median.points = append(median.points, point{at, y.place(r.Typical())})
				high.points = append(high.points, point{at, y.place(float64(r.P99))})
			}
		}
		p.Add(high, median)
		labels = append(labels, endLabel{name, median.points[len(median.points)-1].y, median.ink})
	}
	for _, g := range s.groups {
		if g.Bound > 0 {
			bound.points = append(bound.points, point{x.place(float64(g.N)), y.place(float64(g.Bound))})
		}
	}
	if last := len(bound.points) - 1; last >= 0 {
		p.Add(bound)
		labels = append(labels, endLabel{"bound", bound.points[last].y, bound.ink})
	}
	p.Add(labels)
	svg, at, ok := render(p, width, height, s.title()+" by "+s.size())
	if !ok {
		return picture{}, false
	}
	return picture{Title: s.title(), SVG: svg, Hover: scalingHover(s, x, y, at, colours).JSON()}, true
}

func scalingHover(s series, x, y scale, at area, colours palette) hover {
	h := newHover(at)
	for _, g := range s.groups {
		scale := g.Scale()
		next := stop{X: tenth(at.x(x.place(float64(g.N)))), Head: figures.Size(g.N, g.TTL)}
		for _, r := range g.Results {
			if !r.Measured() {
				continue
			}
			text := fmt.Sprintf("%s, p99 %s", g.Typical(r), scale.With(r.P99))
			next.Rows = append(next.Rows, hoverAt{r.Contender, colours[r.Contender].variable(), text, tenth(at.y(y.place(r.Typical())))})
		}
		h.Stops = append(h.Stops, next)
	}
	return h
}

// sizeScale has a mark at each N, a little away from the ends.
func (s series) sizeScale() scale {
	axis := scale{place: math.Log10}
	for _, g := range s.groups {
		label := story.Thousands(g.N)
		if s.ttl {
			label = (time.Duration(g.N) * time.Millisecond).String()
		}
		axis.ticks = append(axis.ticks, plot.Tick{Value: math.Log10(float64(g.N)), Label: label})
	}
	first, last := axis.ticks[0].Value, axis.ticks[len(axis.ticks)-1].Value
	axis.low, axis.high = first-(last-first)*0.05, last+(last-first)*0.03
	return axis
}

// quantity is what an axis shows.
func quantity(unit string) string {
	switch unit {
	case bench.Nanoseconds:
		return "time"
	case bench.Bytes:
		return "bytes"
	case bench.Counts:
		return "count"
	}
	return unit
}
