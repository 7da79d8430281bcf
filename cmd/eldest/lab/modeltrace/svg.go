package main

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// svg collects elements; classes are those of style.
type svg struct{ strings.Builder }

func (s *svg) line(class string, x1, y1, x2, y2 int) {
	fmt.Fprintf(s, "<line class=%q x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", class, x1, y1, x2, y2)
}

func (s *svg) rect(class string, x, y, width, height int) {
	fmt.Fprintf(s, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, x, y, width, height)
}

// text is centered, label begins at x.
func (s *svg) text(class string, x, y int, text string) {
	fmt.Fprintf(s, "<text class=%q text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

func (s *svg) label(class string, x, y int, text string) {
	fmt.Fprintf(s, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

// arrow goes from one lifeline to another; it slants where the message took time.
func (d *diagram) arrow(class, from, to string, y1, y2 int, text string) {
	x1, x2 := d.x(from), d.x(to)
	gap := bar + 3
	if x1 > x2 {
		gap = -gap
	}
	fmt.Fprintf(d, "<line class=%q marker-end=\"url(#head)\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", class, x1+gap, y1, x2-gap, y2)
	// Beside the candidate's end, where no other lifeline is in the way.
	near, y := x1, y1
	if from == "etcd" {
		near, y = x2, y2
	}
	if y1 != y2 {
		y += (y1 + y2 - 2*y) / 3
	}
	d.text("said", near-max(column/2, 7*len(text)/2+2*bar), y-5, text)
}

// note is a box on a lifeline. What comes from outside is done to etcd.
func (d *diagram) note(who, text string) {
	class := "note"
	if who == "outside" {
		class, who = "outside", "etcd"
	}
	width := 13*len(text)/2 + 16
	x := d.x(who) + 2*bar + 4
	if who == "etcd" {
		x = max(8, d.x(who)-width/2)
	}
	d.rect(class, x, d.y-15, width, 21)
	d.text("noted", x+width/2, d.y, text)
}

// claim says what the last step violates.
func (d *diagram) claim(text string) {
	d.y += row / 3
	d.rect("violated", 16, d.y-4, d.width()-32, 28)
	d.text("claim", d.width()/2, d.y+15, "violated: "+text)
	d.y += row + 10
}

func (d *diagram) legend() {
	d.y += 14
	d.rect("key", 24, d.y-10, bar, 14)
	d.label("small", 40, d.y, "its key is in etcd")
	d.rect("leads", 170, d.y-10, bar, 14)
	d.label("small", 186, d.y, "it is sure that it leads")
	d.y += 20
}

const style = `
svg { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #1c1c1c }
.title { font-size: 17px; font-weight: 600 }
.who { font-size: 15px; font-weight: 600 }
.life { stroke: #8a8a8a }
.tick { stroke: #b9b9b9; stroke-dasharray: 2 5 }
.time, .small { font-size: 11px; fill: #666 }
.said, .noted { font-size: 12px }
.said, .small, .time { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round }
.request { stroke: #1c1c1c; stroke-width: 1.3 }
.reply { stroke: #1c1c1c; stroke-dasharray: 6 3 }
.news { stroke: #7a3e9d; stroke-width: 1.5 }
.note { fill: #f3f0e6; stroke: #b8b09a }
.outside { fill: #fbe3df; stroke: #c0392b }
.key { fill: #4c86c6 }
.leads { fill: #e08a1e }
.violated { fill: #c0392b }
.claim { fill: #fff; font-weight: 600 }
`

// write puts a document together.
func write(out io.Writer, width, height int, layers ...*svg) error {
	var doc strings.Builder
	fmt.Fprintf(&doc, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", width, height, width, height)
	fmt.Fprintf(&doc, "<style>%s</style>\n", style)
	doc.WriteString("<defs><marker id=\"head\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\"><path d=\"M0,0 L9,4 L0,8 z\"/></marker></defs>\n")
	fmt.Fprintf(&doc, "<rect fill=\"#fff\" width=\"%d\" height=\"%d\"/>\n", width, height)
	for _, layer := range layers {
		doc.WriteString(layer.String())
	}
	doc.WriteString("</svg>\n")
	_, err := io.WriteString(out, doc.String())
	return err
}
