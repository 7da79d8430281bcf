package benchpage

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Sizes of the picture of ratios, in points.
const (
	ratioWidth = 980.0
	ratioRow   = 26.0
	ratioFrame = 84.0 // the axis, the keys and the margins
	dotRadius  = 4.5
)

// dotsOf is one group: where each contender is, as a multiple of the base.
type dotsOf struct {
	title string
	dots  []dot
	// values are the ratios of all but the base, for the labels at the end.
	values map[string]string
}

type dot struct {
	contender string
	ratio     float64
}

// ratios is the picture of all groups of a run; ok is false if there is nobody to be
// compared with, or too little.
func ratios(groups []figures.Group, base string, colours palette) (picture, bool) {
	var rows []dotsOf
	least, most := 1.0, 1.0
	for i := range groups {
		g := &groups[i]
		row := dotsOf{title: g.Title(), values: map[string]string{}}
		for _, r := range g.Results {
			ratio, ok := figures.Ratio(r, g.Of(base))
			if ok && r.Contender != base {
				row.values[r.Contender] = figures.ShowRatio(ratio)
			}
			if !ok || ratio == 0 {
				continue // there is no place for 0
			}
			row.dots = append(row.dots, dot{r.Contender, ratio})
			least, most = min(least, ratio), max(most, ratio)
		}
		if len(row.dots) > 1 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return picture{}, false
	}
	x := ratioScale(least, most)
	y := scale{low: -0.5, high: float64(len(rows)) - 0.5}
	for i, row := range rows {
		y.ticks = append(y.ticks, plot.Tick{Value: float64(len(rows) - 1 - i), Label: row.title})
	}
	p := newPlot(x, y, fmt.Sprintf("multiple of %s (log scale)", base), "")
	p.Y.Tick.Label.Color = inkText.Color()
	p.Y.Padding = vg.Points(24) // labels may be wider than they were measured
	names := present(rows)
	p.Add(dotRows{rows, colours}, dotKeys{names, colours})
	p.Add(dotValues{rows, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == base }), colours})
	svg, _, ok := render(p, ratioWidth, ratioFrame+ratioRow*float64(len(rows)), "multiples of "+base)
	return picture{Title: "As multiples of " + base, SVG: svg}, ok
}

// ratioScale is logarithmic, over whole powers of ten or steps of 1, 2, 5.
func ratioScale(least, most float64) scale {
	low, high := math.Log10(least), math.Log10(most)
	room := max((high-low)*0.03, 0.03)
	// However alike they are: with 0.5x and 2x beside 1x it is seen how alike.
	low, high = min(low-room, math.Log10(0.47)), max(high+room, math.Log10(2.12))
	s := scale{log: true, low: low, high: high}
	wide := high-low > 2
	for power := math.Floor(low); power <= math.Ceil(high); power++ {
		for _, digit := range []float64{1, 2, 5} {
			v := digit * math.Pow(10, power)
			if place := math.Log10(v); place >= low && place <= high {
				t := plot.Tick{Value: place}
				if digit == 1 || !wide {
					t.Label = multiple(v)
				}
				s.ticks = append(s.ticks, t)
			}
		}
	}
	return s
}

// multiple renders a mark of the axis.
func multiple(v float64) string {
	if v >= 1 {
		return story.Thousands(int(math.Round(v))) + "x"
	}
	return strconv.FormatFloat(v, 'f', decimals(v), 64) + "x"
}

// dotRows are the dots, from the first row at the top.
type dotRows struct {
	rows    []dotsOf
	colours palette
}

// Plot draws them. Dots that would cover each other are moved up and down a little.
func (d dotRows) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	one := draw.LineStyle{Color: inkMuted.Color(), Width: vg.Points(1)}
	c.StrokeLine2(one, tx(0), c.Min.Y, tx(0), c.Max.Y)
	for i, row := range d.rows {
		y := ty(float64(len(d.rows) - 1 - i))
		var places []float64
		for _, q := range row.dots {
			places = append(places, tx(math.Log10(q.ratio)).Points())
		}
		lifts := apart(places)
		// The first contender last, so that nobody covers it.
		for j, q := range slices.Backward(row.dots) {
			at := vg.Point{X: vg.Points(places[j]), Y: y + vg.Points(lifts[j])}
			c.DrawGlyph(draw.GlyphStyle{Color: inkSurface.Color(), Radius: vg.Points(dotRadius + 1.2), Shape: draw.CircleGlyph{}}, at)
			c.DrawGlyph(draw.GlyphStyle{Color: d.colours[q.contender].Color(), Radius: vg.Points(dotRadius), Shape: draw.CircleGlyph{}}, at)
		}
	}
}

// apart is how far up each of the dots at these places is moved.
func apart(places []float64) []float64 {
	lifts := make([]float64, len(places))
	for i, p := range places {
		before, all := 0, 0
		for j, q := range places {
			if math.Abs(p-q) < 1.4*dotRadius {
				all++
				if j < i {
					before++
				}
			}
		}
		lifts[i] = (float64(all-1)/2 - float64(before)) * 1.4 * dotRadius
	}
	return lifts
}

// dotValues are the ratios in figures, at the right: a column for each contender.
type dotValues struct {
	rows    []dotsOf
	names   []string
	colours palette
}

// valueWidth is that of a column.
const valueWidth = 50.0

// Plot draws them.
func (d dotValues) Plot(c draw.Canvas, p *plot.Plot) {
	_, ty := p.Transforms(&c)
	style := p.Y.Tick.Label
	style.XAlign, style.YAlign = draw.XRight, draw.YCenter
	for i, name := range d.names {
		right := c.Max.X + vg.Points(float64(i+1)*valueWidth)
		key := vg.Point{X: right - vg.Points(dotRadius), Y: c.Max.Y + vg.Points(keysHeight)}
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: d.colours[name].Color(), Radius: vg.Points(dotRadius), Shape: draw.CircleGlyph{}}, key)
		for j, row := range d.rows {
			if value := row.values[name]; value != "" {
				c.FillText(style, vg.Point{X: right, Y: ty(float64(len(d.rows) - 1 - j))}, value)
			}
		}
	}
}

// GlyphBoxes make room for them.
func (d dotValues) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	room := vg.Points(float64(len(d.names))*valueWidth + 10) // they, too, may be wider
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: room, Y: 1}}}}
}

// present are all who have a dot, in the order in which they are met.
func present(rows []dotsOf) []string {
	var names []string
	for _, row := range rows {
		for _, d := range row.dots {
			if !slices.Contains(names, d.contender) {
				names = append(names, d.contender)
			}
		}
	}
	return names
}

// dotKeys say above the rows whose the colours are.
type dotKeys struct {
	names   []string
	colours palette
}

// keysHeight is how far above the rows they stand.
const keysHeight = 14.0

// Plot draws them from the left.
func (k dotKeys) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Y.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	at := vg.Point{X: c.Min.X + vg.Points(dotRadius), Y: c.Max.Y + vg.Points(keysHeight)}
	for _, name := range k.names {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: k.colours[name].Color(), Radius: vg.Points(dotRadius), Shape: draw.CircleGlyph{}}, at)
		c.FillText(style, vg.Point{X: at.X + vg.Points(9), Y: at.Y}, name)
		at.X += style.Width(name)*1.2 + vg.Points(28)
	}
}

// GlyphBoxes make room for them.
func (k dotKeys) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{X: 0.5, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{X: 1, Y: vg.Points(keysHeight + 2*dotRadius)}}}}
}
