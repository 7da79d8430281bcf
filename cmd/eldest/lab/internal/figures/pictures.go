package figures

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// pictures has the pictures of one kind; picture is one of them.
type pictures struct {
	Kind, Heading, Note string
	All                 []picture
}

type picture struct {
	Title string
	SVG   template.HTML
}

// draw makes all pictures of a run.
func draw(r *bench.Report) ([]pictures, error) {
	base, _ := comparison(r)
	groups, names := groups(r), contenders(r)
	hues := huesOf(names)
	all := []pictures{
		{Kind: "ratios", Heading: "As multiples of " + base, Note: "Medians; of counts, means. Values below 1 are faster, or less."},
		{Kind: "scaling", Heading: "As the size grows", Note: "Solid: the median; of counts, the mean. Dotted: p99."},
		{Kind: "percentiles", Heading: "Percentiles", Note: "The time that a percentage of the rounds did not exceed. The slowest rounds are to the right: p90, p99 and p99.9 are equally far apart."},
	}
	var failure error
	add := func(kind int, c *chart, title string) {
		if c != nil {
			svg, err := c.render(title)
			all[kind].All = append(all[kind].All, picture{title, svg})
			failure = errors.Join(failure, err)
		}
	}
	add(0, ratios(groups, base, hues), "")
	for i, g := range groups {
		same := slices.DeleteFunc(slices.Clone(groups), func(o group) bool { return o.regime != g.regime || o.metric != g.metric || o.n <= 0 })
		if len(same) > 1 && same[0].n == g.n { // once for all sizes
			add(1, scaling(same, names, hues), strings.Trim(g.regime+": "+g.metric, ": "))
		}
		add(2, percentiles(&groups[i], hues), g.title())
	}
	return slices.DeleteFunc(all, func(p pictures) bool { return len(p.All) == 0 }), failure
}

// File is a picture as a file.
type File struct {
	// Name is made of the scenario, the kind and the title, and ends in ".svg".
	Name string
	SVG  string
}

// Files returns the pictures of all runs as files. Two runs of one scenario have the same names.
func Files(runs []*bench.Report) (files []File, err error) {
	for _, r := range runs {
		drawn, err := draw(r)
		if err != nil {
			return nil, err
		}
		for _, kind := range drawn {
			for _, p := range kind.All {
				files = append(files, File{fileName(r.Scenario, kind.Kind, p.Title), Standalone(p.SVG)})
			}
		}
	}
	return files, nil
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// fileName returns a name without special characters of shells and URLs, and no longer than file
// systems allow.
func fileName(parts ...string) string {
	name := unfit.ReplaceAllString(strings.ToLower(strings.Join(parts, " ")), "-")
	return strings.Trim(name[:min(len(name), 200)], "-") + ".svg"
}

// huesOf gives each contender a colour that is visible on light and on dark: the usual ones have
// the same colour in all pictures, others get the remaining colours.
func huesOf(names []string) map[string]color.Color {
	hues := map[string]color.Color{
		contender.Eldest: rgb(0x2a78d6), contender.Concurrency: rgb(0xeb6834), contender.Herd: rgb(0x8a63d2), contender.Floor: rgb(0x8a8981),
		contender.Kept: rgb(0x1baf7a), contender.Heartbeat1s: rgb(0x2aa5b8), contender.Heartbeat500ms: rgb(0x3d8f2f),
		contender.DropIn: rgb(0xd19a00), "bound": color.Black,
	}
	others := []color.Color{rgb(0xd6518a), rgb(0x9c5b3c), rgb(0x5b6bd0)}
	for i, name := range slices.DeleteFunc(slices.Clone(names), func(name string) bool { return hues[name] != nil }) {
		hues[name] = others[i%len(others)]
	}
	return hues
}

func rgb(hex uint32) color.Color {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// chart is a plot with a legend beside it. It is drawn in black and grey and the contenders' colours.
type chart struct {
	*plot.Plot
	legend plot.Legend
	height float64
	hues   map[string]color.Color
	// unit is the unit of the values, which the title shows: beside a logarithmic axis gonum leaves
	// too much space for a label.
	unit string
}

func newChart(hues map[string]color.Color, x, unit string) *chart {
	c := &chart{Plot: plot.New(), legend: plot.NewLegend(), height: 280, hues: hues, unit: unit}
	c.BackgroundColor = nil
	c.X.Label.Text = x
	c.Add(plotter.NewGrid())
	c.legend.Top, c.legend.Padding = true, vg.Points(4)
	return c
}

// line adds a contender's curve, with a name in the legend unless that is "".
func (c *chart) line(contender, name string, points plotter.XYs, dashes ...vg.Length) {
	line, err := plotter.NewLine(points)
	if err != nil || len(points) == 0 {
		return // invalid numbers of a foreign document
	}
	line.Color, line.Width, line.Dashes = c.hues[contender], vg.Points(1.8), dashes
	c.Add(line)
	if name != "" {
		c.legend.Add(short(name), line)
	}
}

// values sets up the axis of the values: logarithmic if all are positive and span a decade.
func (c *chart) values(all []float64) {
	a, least, most := &c.Y, slices.Min(all), slices.Max(all)
	if least > 0 && most/least >= 10 {
		logarithmic(a, least, most)
		c.unit = strings.TrimPrefix(c.unit+", log scale", ", ")
		return
	}
	a.Min, a.Max = min(0, least), max(0, most)
	if a.Min == a.Max {
		a.Max = 1
	}
}

// logarithmic makes an axis of whole decades.
func logarithmic(a *plot.Axis, least, most float64) {
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	high = max(high, low+1)
	var ticks plot.ConstantTicks
	for e := low; e <= high; e++ {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, e), Label: fmt.Sprintf("%g", math.Pow(10, e))})
		for i := 2.0; i < 10 && e < high; i++ {
			ticks = append(ticks, plot.Tick{Value: i * math.Pow(10, e)})
		}
	}
	a.Min, a.Max, a.Scale, a.Tick.Marker = math.Pow(10, low), math.Pow(10, high), plot.LogScale{}, ticks
}

// ratios draws the ratios of all groups, the first at the top; nil if nothing can be compared.
func ratios(groups []group, base string, hues map[string]color.Color) *chart {
	c := newChart(hues, "multiple of "+short(base)+", log scale", "")
	var titles, names []string
	points, all := map[string]plotter.XYs{}, []float64{1}
	for _, g := range slices.Backward(groups) {
		row := slices.DeleteFunc(slices.Clone(g.results), func(x *bench.Result) bool {
			r, _ := ratio(x, g.of(base))
			return r <= 0 // or there is no ratio
		})
		if len(row) < 2 {
			continue
		}
		for i, x := range row {
			r, _ := ratio(x, g.of(base))
			if points[x.Contender] == nil {
				names = append(names, x.Contender)
			}
			// The dots are a little apart, because equal ones would cover each other.
			lift := 0.12 * (float64(len(row)-1)/2 - float64(i))
			points[x.Contender] = append(points[x.Contender], plotter.XY{X: r, Y: float64(len(titles)) + lift})
			all = append(all, r)
		}
		titles = append(titles, short(g.title()))
	}
	if len(titles) == 0 {
		return nil
	}
	for _, name := range names {
		if dots, err := plotter.NewScatter(points[name]); err == nil {
			dots.GlyphStyle = vgdraw.GlyphStyle{Color: hues[name], Radius: vg.Points(4), Shape: vgdraw.CircleGlyph{}}
			c.Add(dots)
			c.legend.Add(short(name), dots)
		}
	}
	c.NominalY(titles...)
	c.Y.Min, c.Y.Max, c.height = -0.5, float64(len(titles))-0.5, 80+26*float64(len(titles))
	logarithmic(&c.X, slices.Min(all), slices.Max(all))
	return c
}

// scaling draws one metric at several sizes; nil if there is too little to show.
func scaling(same []group, names []string, hues map[string]color.Color) *chart {
	slices.SortStableFunc(same, func(a, b group) int { return cmp.Compare(a.n, b.n) })
	scale, x := same[0].scale(), "N"
	var ticks plot.ConstantTicks
	for _, g := range same {
		label := story.Thousands(g.n)
		if g.ttl {
			x, label = "TTL", (time.Duration(g.n) * time.Millisecond).String()
		}
		ticks = append(ticks, plot.Tick{Value: float64(g.n), Label: label})
	}
	c := newChart(hues, x, scale.unit)
	var all []float64
	curve := func(of func(g *group) (value float64, ok bool)) (points plotter.XYs) {
		for i := range same {
			if v, ok := of(&same[i]); ok {
				points = append(points, plotter.XY{X: float64(same[i].n), Y: v / scale.per})
				all = append(all, v/scale.per)
			}
		}
		return points
	}
	for _, name := range names {
		figure := func(of func(*bench.Result) float64) plotter.XYs {
			return curve(func(g *group) (float64, bool) {
				x := g.of(name)
				if x == nil || len(x.Samples) == 0 {
					return 0, false
				}
				return of(x), true
			})
		}
		c.line(name, "", figure(func(x *bench.Result) float64 { return float64(x.P99) }), vg.Points(1.5), vg.Points(3))
		c.line(name, name, figure(typical))
	}
	c.line("bound", "bound", curve(func(g *group) (float64, bool) { return float64(g.bound), g.bound > 0 }))
	least, most := float64(same[0].n), float64(same[len(same)-1].n)
	if len(all) == 0 || least == most {
		return nil
	}
	c.values(all)
	c.X.Min, c.X.Max, c.X.Scale, c.X.Tick.Marker = least, most, plot.LogScale{}, ticks
	return c
}

// nines is the position of a fraction of the rounds: 0.9, 0.99, 0.999 are equally far apart.
func nines(fraction float64) float64 { return -math.Log10(1 - fraction) }

// percentiles draws one group of times; nil if no contender has three samples.
func percentiles(g *group, hues map[string]color.Color) *chart {
	scale := g.scale()
	c := newChart(hues, "percentile of the rounds", scale.unit)
	most, all := 0, []float64{}
	for _, x := range g.results {
		most = max(most, len(x.Samples))
	}
	if most < 3 || g.unit != bench.Nanoseconds {
		return nil
	}
	high := nines(1 - 0.5/float64(most)) // the last sample is the value of all higher percentiles, of which some are shown
	for _, x := range g.results {
		sorted := slices.Sorted(slices.Values(x.Samples))
		var points plotter.XYs
		for i := range 201 {
			at := high * float64(i) / 200
			v := float64(bench.Percentile(sorted, 100*(1-math.Pow(10, -at)))) / scale.per
			points, all = append(points, plotter.XY{X: at, Y: v}), append(all, v)
		}
		if len(sorted) >= 3 {
			c.line(x.Contender, x.Contender, points)
		}
	}
	if g.bound > 0 {
		bound := float64(g.bound) / scale.per
		all = append(all, bound)
		c.line("bound", "bound", plotter.XYs{{X: 0, Y: bound}, {X: high, Y: bound}})
	}
	c.values(all)
	var ticks plot.ConstantTicks
	for _, p := range []float64{0, 50, 75, 90, 99, 99.9, 99.99} {
		ticks = append(ticks, plot.Tick{Value: nines(p / 100), Label: fmt.Sprintf("p%g", p)})
	}
	c.X.Min, c.X.Max, c.X.Tick.Marker = 0, high, ticks
	return c
}

// short shortens a text of any source, which could otherwise leave no space for the picture.
func short(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return text
}

// render draws the chart as SVG for a page.
func (c *chart) render(title string) (template.HTML, error) {
	c.Title.Text = strings.TrimSuffix(fmt.Sprintf("%s (%s)", short(title), c.unit), " ()")
	canvas := vgsvg.New(vg.Points(640), vg.Points(c.height))
	whole := vgdraw.Crop(vgdraw.New(canvas), vg.Points(4), -vg.Points(4), vg.Points(4), -vg.Points(8))
	legend := c.legend.Rectangle(whole).Size().X
	c.legend.Draw(whole)
	c.Draw(vgdraw.Crop(whole, 0, -legend-vg.Points(12), 0, 0))
	return SVG(canvas, cmp.Or(title, "ratios"))
}

// SVG makes the SVG of a canvas, for a page. Black parts get the colour of the page's text.
func SVG(canvas *vgsvg.Canvas, label string) (template.HTML, error) {
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", err
	}
	_, svg, _ := strings.Cut(text.String(), "<svg") // without the XML header
	svg = fmt.Sprintf(`<svg role="img" aria-label="%s" fill="currentColor"`, template.HTMLEscapeString(label)) + svg
	svg = strings.ReplaceAll(svg, "#000000", "currentColor")
	// Liberation Sans has the widths of Arial and Helvetica.
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif")
	return template.HTML(strings.TrimSpace(svg)), nil //nolint:gosec // gonum escapes the texts
}

// Standalone makes a file of a page's SVG, for other documents. It suits light and dark screens.
func Standalone(svg template.HTML) string {
	const style = "<style>:root{color-scheme:light dark;color:CanvasText;background:Canvas}</style>"
	return strings.Replace(string(svg), ">", ">"+style, 1) + "\n"
}
