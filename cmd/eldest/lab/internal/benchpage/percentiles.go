package benchpage

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// fewest is how many samples a curve of percentiles needs, finest how many steps it has
// at most.
const (
	fewest = 3
	finest = 600
)

// percentiles is the picture of one group; ok is false if there is too little to show.
func percentiles(g *figures.Group, colours palette) (picture, bool) {
	var shown []*figures.Result
	var values []float64
	most := 0
	for _, x := range g.Results {
		if len(x.Samples) < fewest {
			continue
		}
		shown = append(shown, x)
		most = max(most, len(x.Samples))
		for _, s := range x.Samples {
			values = append(values, float64(s))
		}
	}
	if len(shown) == 0 || g.Unit != bench.Nanoseconds {
		return picture{}, false
	}
	if g.Bound > 0 {
		values = append(values, float64(g.Bound))
	}
	y := scaleOf(g.Unit, values)
	// The last sample reaches to infinity; half of its share is shown.
	high := nines(1 - 0.5/float64(most))
	x := scale{high: high, ticks: ninesTicks(high)}
	p := newPlot(x, y, "percentile of the rounds", axisLabel("time", y))
	var labels endLabels
	for _, r := range slices.Backward(shown) { // the first on top
		sorted := slices.Sorted(slices.Values(r.Samples))
		c := curve{ink: colours[r.Contender], width: 2}
		if r.Contender == figures.Floor {
			c.width, c.dashes = 1.5, []vg.Length{vg.Points(4), vg.Points(3)}
		}
		from := 0.0
		for i, s := range sorted {
			// The i-th of n is the percentile from i/n to (i+1)/n. Steps that are too
			// narrow to be seen are one step, to the last of them.
			to := min(nines(float64(i+1)/float64(len(sorted))), high)
			if to-from < high/finest && i < len(sorted)-1 {
				continue
			}
			place := y.place(float64(s))
			c.points = append(c.points, point{from, place}, point{to, place})
			from = to
		}
		p.Add(c)
		labels = append(labels, endLabel{r.Contender, c.points[len(c.points)-1].y, c.ink})
	}
	if g.Bound > 0 {
		place := y.place(float64(g.Bound))
		p.Add(curve{ink: inkText, width: 1, points: []point{{0, place}, {high, place}}})
		labels = append(labels, endLabel{"bound", place, inkText})
	}
	p.Add(labels)
	title := g.Title()
	svg, at, ok := render(p, width, height, "percentiles of "+title)
	if !ok {
		return picture{}, false
	}
	h := percentileHover(shown, g, y, at, colours, high)
	return picture{Title: title, SVG: svg, Hover: h.JSON()}, true
}

// percentileStops are the percentiles at which the pointer finds values.
var percentileStops = []float64{0, 10, 25, 50, 60, 75, 80, 90, 95, 98, 99, 99.5, 99.9, 99.99}

func percentileHover(shown []*figures.Result, g *figures.Group, y scale, at area, colours palette, high float64) hover {
	h := newHover(at)
	scale := g.Scale()
	for _, percent := range percentileStops {
		if nines(percent/100) > high {
			break
		}
		s := stop{X: tenth(at.x(nines(percent / 100))), Head: "p" + strconv.FormatFloat(percent, 'f', -1, 64)}
		if percent == 0 {
			s.Head = "min"
		}
		for _, r := range shown {
			v := bench.Percentile(slices.Sorted(slices.Values(r.Samples)), percent)
			s.Rows = append(s.Rows, hoverAt{r.Contender, colours[r.Contender].variable(), scale.With(v), tenth(at.y(y.place(float64(v))))})
		}
		h.Stops = append(h.Stops, s)
	}
	return h
}

// axisLabel says that an axis is logarithmic.
func axisLabel(what string, s scale) string {
	if s.log {
		return fmt.Sprintf("%s (log scale)", what)
	}
	return what
}
