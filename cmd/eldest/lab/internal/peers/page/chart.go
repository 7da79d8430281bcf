package page

import (
	"errors"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// ErrNothing is returned by Chart if no system has both a failover and a cost at rest.
var ErrNothing = errors.New("nothing to draw")

// The faults of the chart, and their glyphs.
var faults = []struct {
	column, name string
	glyph        vgdraw.GlyphDrawer
}{
	{"crash", "the process crashes", vgdraw.CircleGlyph{}},
	{"machine", "the machine fails", vgdraw.SquareGlyph{}},
}

// beyond is the glyph of a fault after which no candidate led within the limit.
var beyond = vgdraw.PyramidGlyph{}

// accent is visible on light and on dark.
var accent = color.RGBA{R: 0x2a, G: 0x78, B: 0xd6, A: 255}

const chartWidth, panelHeight, legendHeight = 720, 320, 58

// Chart draws the failover over its cost at rest, one panel for each of the settings, as an SVG file that
// suits light and dark screens. It returns ErrNothing if there is nothing to draw.
func Chart(r *peers.Report) (svg string, err error) {
	drawn, err := drawing(r)
	return figures.Standalone(drawn), err
}

// drawing draws the chart for a page.
func drawing(r *peers.Report) (template.HTML, error) {
	type panel struct {
		setting string
		marks   *marks
		x       *scope
	}
	var panels []panel
	var y scope // one scale, so that the panels can be compared
	for _, setting := range settings(r) {
		if m := collect(r, setting); len(m.points) > 0 {
			x := &scope{}
			panels = append(panels, panel{setting, m, x})
			for _, p := range m.points {
				x.add(p.x)
				for _, v := range p.values {
					y.add(v.y)
				}
			}
		}
	}
	if len(panels) == 0 {
		return "", ErrNothing
	}
	canvas := vgsvg.New(chartWidth, vg.Length(legendHeight+panelHeight*len(panels)))
	whole := vgdraw.Crop(vgdraw.New(canvas), vg.Points(4), -vg.Points(8), vg.Points(4), -vg.Points(6))
	never := slices.ContainsFunc(panels, func(p panel) bool { return p.marks.never() })
	legend(never).Draw(vgdraw.Crop(whole, vg.Points(4), 0, 0, 0))
	top := whole.Max.Y - legendHeight
	for i, its := range panels {
		p := plot.New()
		p.BackgroundColor = nil
		// Beside a logarithmic axis gonum leaves too much space for a label.
		p.Title.Text = fmt.Sprintf("%s: median time until the next candidate leads, by requests a minute at rest (log scales)", its.setting)
		its.x.axis(&p.X, func(v float64) string { return story.Thousands(int(v)) })
		its.x.widen(&p.X)
		y.axis(&p.Y, func(v float64) string { return span(time.Duration(v)) })
		p.Add(plotter.NewGrid(), its.marks.on(its.x))
		high := top - vg.Length(i*panelHeight)
		p.Draw(vgdraw.Canvas{Canvas: whole.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: whole.Min.X, Y: high - panelHeight + vg.Points(14)}, Max: vg.Point{X: whole.Max.X, Y: high},
		}})
	}
	return figures.SVG(canvas, "failover and cost at rest")
}

// legend explains the glyphs.
func legend(never bool) *plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left, l.Padding = true, true, vg.Points(2)
	add := func(name string, glyph vgdraw.GlyphDrawer) {
		if s, err := plotter.NewScatter(plotter.XYs{{}}); err == nil {
			s.GlyphStyle = vgdraw.GlyphStyle{Color: color.Black, Radius: vg.Points(4), Shape: glyph}
			l.Add(name, s)
		}
	}
	for _, f := range faults {
		add(f.name, f.glyph)
	}
	if never {
		add("no candidate led within the limit, at which the mark is", beyond)
	}
	return &l
}

// scope is what an axis must show.
type scope struct {
	least, most float64 // of the values above 0; 0 if there are none
	zero        bool    // there is a 0 too
}

func (s *scope) add(v float64) {
	switch {
	case v <= 0:
		s.zero = true
	case s.least == 0:
		s.least, s.most = v, v
	default:
		s.least, s.most = min(s.least, v), max(s.most, v)
	}
}

// decades are the exponents between which all values above 0 are.
func (s *scope) decades() (low, high float64) {
	if s.least == 0 {
		return 0, 1
	}
	low, high = math.Floor(math.Log10(s.least)), math.Ceil(math.Log10(s.most))
	return low, max(high, low+1)
}

// nought is where a 0 is drawn: a decade below all others.
func (s *scope) nought() float64 {
	low, _ := s.decades()
	return math.Pow(10, low-1)
}

// axis makes an axis of whole decades.
func (s *scope) axis(a *plot.Axis, label func(float64) string) {
	low, high := s.decades()
	var ticks plot.ConstantTicks
	for e := low; e <= high; e++ {
		for i := range 9 {
			v := float64(i+1) * math.Pow(10, e)
			t := plot.Tick{Value: v}
			if i == 0 || high-low < 3 && (i == 1 || i == 4) {
				t.Label = label(v)
			}
			ticks = append(ticks, t)
		}
	}
	a.Min, a.Max = math.Pow(10, low), math.Pow(10, high)
	if s.zero {
		ticks = append(ticks, plot.Tick{Value: s.nought(), Label: "0"})
		a.Min = s.nought()
	}
	a.Scale, a.Tick.Marker = plot.LogScale{}, ticks
}

// widen ends an axis near its values, with space for names.
func (s *scope) widen(a *plot.Axis) {
	if s.least > 0 {
		a.Min, a.Max = s.least/2, s.most*2.5
	}
	if s.zero {
		a.Min = s.nought() / 2
	}
}
