package main

import (
	"bytes"
	"fmt"
	"html"
)

// Sizes of the chart.
const (
	chartWidth = 880.0
	named      = 116.0 // the column with the contenders' names
	barHeight  = 16.0
	barStep    = 24.0
	longest    = 640.0 // the longest bar of a panel
)

// The chart has the page's colour below it, and is read on a light and on a dark one.
// No variables: not all that show SVG know them.
const chartStyle = `text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
text.title{font-weight:600}text.muted{fill:#59636e}.eldest{fill:#2a78d6}.concurrency{fill:#eb6834}.floor{fill:#9a9a94}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}text.muted{fill:#9198a1}.eldest{fill:#539bf5}.concurrency{fill:#f0834f}.floor{fill:#7d7d78}}`

var names = map[string]string{"eldest": "Eldest", "concurrency": "etcd's package", "floor": "no protocol"}

// chart draws panels one below the other, each with a scale of its own.
func chart(panels []panel, measured setting) []byte {
	var b bytes.Buffer
	y := 22.0
	for _, p := range panels {
		most := 0.0
		for _, m := range p.bars {
			most = max(most, m.value)
		}
		fmt.Fprintf(&b, `<text class="title" x="0" y="%s">%s</text>`+"\n", number(y), html.EscapeString(p.title))
		y += 12
		for _, m := range p.bars {
			length := max(longest*m.value/most, 1.5)
			fmt.Fprintf(&b, `<text class="muted" x="%s" y="%s" text-anchor="end">%s</text>`+"\n", number(named-10), number(y+13), names[m.contender])
			fmt.Fprintf(&b, `<rect class=%q x="%s" y="%s" width="%s" height="%s" rx="2"/>`+"\n", m.contender, number(named), number(y), number(length), number(barHeight))
			fmt.Fprintf(&b, `<text x="%s" y="%s">%s</text>`+"\n", number(named+length+8), number(y+13), m.label)
			y += barStep
		}
		y += 24
	}
	for _, note := range []string{
		fmt.Sprintf("Medians, contenders in turns: %v. Each panel has a scale of its own.", measured),
		"No protocol: one bare watch that sees a bare delete. docs/benchmarks.md has the method and everything else.",
	} {
		fmt.Fprintf(&b, `<text class="muted" x="0" y="%s">%s</text>`+"\n", number(y-4), note)
		y += 19
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="what elections cost, Eldest beside etcd's package">`+"\n<style>%s</style>\n", number(chartWidth), number(y+8), chartStyle)
	return []byte(head + b.String() + "</svg>\n")
}
