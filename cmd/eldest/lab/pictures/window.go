package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Sizes of the window, in the picture's units.
const (
	cell    = 7.25 // the width of a character
	leading = 17.0
	margin  = 18.0
	bar     = 34.0
)

// The window is dark wherever it stands: it is a terminal. Its edge is seen on a dark page, too.
const windowStyle = `.win{fill:#16181d;stroke:#3c414b}.bar{fill:#23262d}
text{font:12px ui-monospace,SFMono-Regular,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre}
.title{fill:#9aa1ad}.bold{font-weight:700;fill:#fff}.dim{fill:#868e9b}
.red{fill:#ff7b72}.green{fill:#6fcf7c}.yellow{fill:#e3b341}.cyan{fill:#6cc7d9}`

// window draws lines as a terminal shows them.
func window(title string, lines [][]piece) []byte {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(plain(line)))
	}
	w, h := 2*margin+float64(width)*cell, bar+2*margin+float64(len(lines)-1)*leading
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s">`+"\n", number(w), number(h), html.EscapeString("what "+title+" prints"))
	fmt.Fprintf(&b, "<style>%s</style>\n", windowStyle)
	fmt.Fprintf(&b, `<rect class="win" x=".5" y=".5" width="%s" height="%s" rx="9"/>`+"\n", number(w-1), number(h-1))
	fmt.Fprintf(&b, `<path class="bar" d="M1 %s V9.5 A8.5 8.5 0 0 1 9.5 1 H%s A8.5 8.5 0 0 1 %s 9.5 V%s Z"/>`+"\n", number(bar), number(w-9.5), number(w-1), number(bar))
	for i, colour := range []string{"#ec6a5e", "#f4bf4f", "#61c554"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", 20+i*19, colour)
	}
	fmt.Fprintf(&b, `<text class="title" x="%s" y="21" text-anchor="middle">%s</text>`+"\n", number(w/2), html.EscapeString(title))
	for i, line := range lines {
		column, y := 0, bar+margin+4+float64(i)*leading
		for _, p := range line {
			n := utf8.RuneCountInString(p.text)
			shown := strings.TrimLeft(p.text, " ")
			at := column + n - utf8.RuneCountInString(shown)
			shown = strings.TrimRight(shown, " ")
			column += n
			if shown == "" {
				continue
			}
			class := ""
			if p.style != "" {
				class = fmt.Sprintf(" class=%q", p.style)
			}
			fmt.Fprintf(&b, `<text%s x="%s" y="%s" textLength="%s" xml:space="preserve">%s</text>`+"\n", class, number(margin+float64(at)*cell), number(y),
				number(float64(utf8.RuneCountInString(shown))*cell), html.EscapeString(shown))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// number writes a length with two digits at most.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
