package benchpage

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of pictures in points, and of what is in them.
const (
	width, height = 480.0, 272.0
	textSize      = 10.5
)

// sans is the typeface; what the picture names is replaced, see dress.
func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// newPlot is an empty picture with scales for its axes.
func newPlot(x, y scale, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle = draw.LineStyle{Color: inkAxis.Color(), Width: vg.Points(1)}
		a.Tick.Width = 0
		a.Tick.Length = vg.Points(5)
		a.Tick.Label.Font = sans(textSize)
		a.Tick.Label.Color = inkMuted.Color()
		a.Label.TextStyle.Font = sans(textSize)
		a.Label.TextStyle.Color = inkMuted.Color()
		a.Label.Padding = vg.Points(6)
		a.Padding = vg.Points(5)
	}
	p.Y.Width = 0
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.X.Min, p.X.Max, p.X.Tick.Marker = x.low, x.high, plot.ConstantTicks(x.ticks)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = y.low, y.high, plot.ConstantTicks(y.ticks)
	p.Add(grid{x.ticks, y.ticks})
	return p
}

// grid is lines that can be overlooked, at the labelled ticks.
type grid struct{ x, y []plot.Tick }

// Plot draws them.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	line := draw.LineStyle{Color: inkGrid.Color(), Width: vg.Points(0.75)}
	for _, t := range g.y {
		if t.Label != "" {
			c.StrokeLine2(line, c.Min.X, ty(t.Value), c.Max.X, ty(t.Value))
		}
	}
	for _, t := range g.x {
		if t.Label != "" {
			c.StrokeLine2(line, tx(t.Value), c.Min.Y, tx(t.Value), c.Max.Y)
		}
	}
}

// point is a place in the axes' terms.
type point struct{ x, y float64 }

// curve is a line through points, with dots if there are few.
type curve struct {
	ink    ink
	points []point
	width  float64
	dashes []vg.Length
	dots   bool
}

// Plot draws it.
func (l curve) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	var at []vg.Point
	for _, q := range l.points {
		at = append(at, vg.Point{X: tx(q.x), Y: ty(q.y)})
	}
	style := draw.LineStyle{Color: l.ink.Color(), Width: vg.Points(l.width), Dashes: l.dashes}
	c.StrokeLines(style, at)
	if l.dots {
		glyph := draw.GlyphStyle{Color: l.ink.Color(), Radius: vg.Points(l.width * 1.6), Shape: draw.CircleGlyph{}}
		for _, q := range at {
			c.DrawGlyph(glyph, q)
		}
	}
}

// endLabels are names at the right end of curves, kept apart from each other.
type endLabels []endLabel

type endLabel struct {
	text string
	y    float64
	ink  ink
}

// lineHeight is how far apart labels stand at least.
const lineHeight = textSize * 1.2

// Plot draws them beside the area of the data.
func (l endLabels) Plot(c draw.Canvas, p *plot.Plot) {
	_, ty := p.Transforms(&c)
	sorted := slices.SortedStableFunc(slices.Values(l), func(a, b endLabel) int { return cmp.Compare(a.y, b.y) })
	places := make([]float64, len(sorted))
	for i, label := range sorted {
		places[i] = ty(label.y).Points()
		if i > 0 {
			places[i] = max(places[i], places[i-1]+lineHeight)
		}
	}
	// What was pushed beyond the top pushes the others back down.
	for i, limit := len(places)-1, c.Max.Y.Points(); i >= 0; i-- {
		places[i] = min(places[i], limit)
		limit = places[i] - lineHeight
	}
	for i, label := range sorted {
		style := p.Y.Tick.Label
		style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
		style.Color = inkText.Color()
		y := vg.Points(places[i])
		c.StrokeLine2(draw.LineStyle{Color: label.ink.Color(), Width: vg.Points(3)},
			c.Max.X+vg.Points(6), y, c.Max.X+vg.Points(14), y)
		c.FillText(style, vg.Point{X: c.Max.X + vg.Points(18), Y: y}, label.text)
	}
}

// GlyphBoxes make room for them.
func (l endLabels) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	var boxes []plot.GlyphBox
	for _, label := range l {
		// A fifth more: who has none of the typefaces named in dress has a wider one.
		size := p.Y.Tick.Label.Width(label.text)*1.2 + vg.Points(18)
		boxes = append(boxes, plot.GlyphBox{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: size, Y: 1}}})
	}
	return boxes
}

// least is how wide and how high the data must be to be seen.
const least = 40

// render draws a picture, and says where in it the data is. ok is false if the names, which
// may be anybody's, leave no room for that.
func render(p *plot.Plot, w, h float64, label string) (svg template.HTML, at area, ok bool) {
	canvas := vgsvg.New(vg.Points(w), vg.Points(h))
	// A margin: labels at the ends of an axis are centred on it.
	whole := draw.Crop(draw.New(canvas), vg.Points(2), -vg.Points(2), vg.Points(2), -vg.Points(8))
	p.Draw(whole)
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		panic(err) // a Buffer takes everything
	}
	data := p.DataCanvas(whole)
	x, y := p.Transforms(&data)
	at = area{
		left: data.Min.X.Points(), right: data.Max.X.Points(),
		top: h - data.Max.Y.Points(), bottom: h - data.Min.Y.Points(),
		x: func(v float64) float64 { return x(v).Points() },
		y: func(v float64) float64 { return h - y(v).Points() },
	}
	ok = at.right-at.left >= least && at.bottom-at.top >= least // and they are numbers
	return dress(text.String(), w, h, label), at, ok
}

// area is where the data is in a picture, in its SVG's terms.
type area struct {
	left, right, top, bottom float64
	x, y                     func(v float64) float64
}

var (
	prelude  = regexp.MustCompile(`(?s)^.*?<svg[^>]*>`)
	typeface = regexp.MustCompile(`style="font-family:[^;"]*`) // in texts there are no bare quotes
)

// dress makes markup for the page of what gonum wrote: it scales with the page, has the
// page's colours, and a name for those who do not see it.
func dress(svg string, w, h float64, label string) template.HTML {
	head := fmt.Sprintf(`<svg viewBox="0 0 %g %g" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="%s">`,
		w, h, template.HTMLEscapeString(label))
	svg = prelude.ReplaceAllLiteralString(svg, head)
	// Liberation Sans has the widths of Arial and Helvetica, with which it was measured.
	svg = typeface.ReplaceAllLiteralString(svg, "style=\"font-family:Helvetica,Arial,'Liberation Sans',sans-serif")
	// gonum escapes the texts; nothing else of others is in it.
	return template.HTML(strings.TrimSpace(dyes.Replace(svg)))
}
