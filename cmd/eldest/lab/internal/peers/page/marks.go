package page

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
)

// marks are the systems in one panel of the chart. It is a plotter of gonum that labels each system beside
// its marks, where no other label and no mark is.
type marks struct {
	points []point
	x      *scope
}

// point is one system: its requests, and a mark for each fault.
type point struct {
	name   string
	ours   bool
	x      float64
	values []value
}

type value struct {
	y     float64
	glyph vgdraw.GlyphDrawer
}

// collect returns the systems that have both figures.
func collect(r *peers.Report, setting string) *marks {
	m := &marks{}
	for _, system := range systems(r) {
		if p, why := place(r, system, setting); why == "" {
			m.points = append(m.points, p)
		}
	}
	return m
}

// place returns where a system is in the chart, or why it is not there.
func place(r *peers.Report, system, setting string) (p point, why string) {
	rest := find(r, source{"rest", "requests"}, system, setting, false, 0)
	if rest == nil || len(rest.Samples) == 0 {
		return p, "requests at rest were not measured"
	}
	p = point{name: title(r, system), ours: system == ours, x: float64(rest.P50)}
	if runes := []rune(p.name); len(runes) > 30 {
		p.name = string(runes[:29]) + "…"
	}
	if p.ours {
		p.name += " (ours)"
	}
	for _, f := range faults {
		switch x := find(r, source{f.column, "win"}, system, setting, false, 0); {
		case x == nil:
		case len(x.Samples) > 0 && x.P50 > 0:
			p.values = append(p.values, value{float64(x.P50), f.glyph})
		case len(x.Samples) == 0 && x.None > 0 && x.Errors == 0 && x.Limit > 0:
			p.values = append(p.values, value{float64(x.Limit), beyond})
		}
	}
	if len(p.values) == 0 {
		return p, "no failover was measured"
	}
	return p, ""
}

// undrawn are the systems that are not in the chart, with the reasons.
func undrawn(r *peers.Report) (out []string) {
	for _, system := range systems(r) {
		if skipped(r, system) != "" {
			out = append(out, title(r, system)+": skipped")
			continue
		}
		for _, setting := range settings(r) {
			p, why := place(r, system, setting)
			if why == "" && len(p.values) < len(faults) {
				why = "one of the two faults has no figure"
			}
			if why != "" {
				out = append(out, fmt.Sprintf("%s (%s): %s", title(r, system), setting, why))
			}
		}
	}
	return out
}

// never reports whether a mark is at the limit.
func (m *marks) never() bool {
	return slices.ContainsFunc(m.points, func(p point) bool {
		return slices.ContainsFunc(p.values, func(v value) bool { return v.glyph == beyond })
	})
}

func (m *marks) on(x *scope) *marks { m.x = x; return m }

// Plot draws the marks of each system on a line, and its name.
func (m *marks) Plot(c vgdraw.Canvas, p *plot.Plot) {
	atX, atY := p.Transforms(&c)
	const radius = vg.Length(4)
	var taken []vg.Rectangle
	middles := make([]vg.Point, len(m.points))
	for i, s := range m.points {
		x := s.x
		if x <= 0 {
			x = m.x.nought()
		}
		ink := color.Color(color.Black)
		if s.ours {
			ink = accent
		}
		low, high := c.Max.Y, c.Min.Y
		for _, v := range s.values {
			at := vg.Point{X: atX(x), Y: atY(v.y)}
			low, high = min(low, at.Y), max(high, at.Y)
			size := radius
			if v.glyph == faults[1].glyph {
				size++ // a circle at the same place remains visible
			}
			c.DrawGlyph(vgdraw.GlyphStyle{Color: ink, Radius: size, Shape: v.glyph}, at)
			taken = append(taken, around(at, radius+1, radius+1))
		}
		if high > low {
			c.StrokeLine2(vgdraw.LineStyle{Color: ink, Width: vg.Points(0.75)}, atX(x), low, atX(x), high)
			taken = append(taken, vg.Rectangle{Min: vg.Point{X: atX(x) - 1, Y: low}, Max: vg.Point{X: atX(x) + 1, Y: high}})
		}
		middles[i] = vg.Point{X: atX(x), Y: high}
	}
	style := text.Style{Color: color.Black, Font: p.X.Tick.Label.Font, XAlign: text.XCenter, YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	for i, s := range m.points {
		at := free(c.Rectangle, middles[i], style.Width(s.name), style.Height(s.name), taken)
		box := around(at, style.Width(s.name)/2, style.Height(s.name)/2)
		taken = append(taken, box)
		end := vg.Point{X: max(box.Min.X, min(middles[i].X, box.Max.X)), Y: max(box.Min.Y, min(middles[i].Y, box.Max.Y))}
		if math.Hypot(float64(end.X-middles[i].X), float64(end.Y-middles[i].Y)) > 14 {
			c.StrokeLine2(vgdraw.LineStyle{Color: color.Gray{Y: 128}, Width: vg.Points(0.5)}, middles[i].X, middles[i].Y, end.X, end.Y)
		}
		c.FillText(style, at, s.name)
	}
}

// free returns the middle of the nearest place for a label of that size where nothing is yet: beside the
// mark, above or below it, or farther away. If there is none the label covers something.
func free(within vg.Rectangle, mark vg.Point, width, height vg.Length, taken []vg.Rectangle) vg.Point {
	beside := vg.Point{X: mark.X + width/2 + 10, Y: mark.Y}
	for distance := vg.Length(9); distance < 120; distance += 4 {
		for _, toward := range []struct{ x, y vg.Length }{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 0.6}, {1, -0.6}, {-1, 0.6}, {-1, -0.6}} {
			at := vg.Point{X: mark.X + toward.x*(width/2+distance), Y: mark.Y + toward.y*(height/2+distance)}
			box := around(at, width/2+3, height/2+1)
			if inside(box, within) && !overlaps(box, taken) {
				return at
			}
		}
	}
	return beside
}

func around(at vg.Point, x, y vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: at.X - x, Y: at.Y - y}, Max: vg.Point{X: at.X + x, Y: at.Y + y}}
}

func inside(box, within vg.Rectangle) bool {
	return box.Min.X >= within.Min.X && box.Max.X <= within.Max.X && box.Min.Y >= within.Min.Y && box.Max.Y <= within.Max.Y
}

func overlaps(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}
