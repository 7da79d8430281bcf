package main

import (
	"strings"
	"unicode/utf8"
)

// window draws lines as a terminal shows them.
func window(title string, lines [][]piece) ([]byte, error) {
	const cell, leading, margin, bar = 7.25, 17.0, 18.0, 34.0
	type text struct {
		Text, Style string
		X, Y, Width float64
	}
	var pieces []text
	columns := 0
	for i, line := range lines {
		column := 0
		for _, p := range line {
			shown := strings.TrimLeft(p.text, " ")
			at := column + utf8.RuneCountInString(p.text) - utf8.RuneCountInString(shown)
			column += utf8.RuneCountInString(p.text)
			if shown = strings.TrimRight(shown, " "); shown != "" {
				pieces = append(pieces, text{
					shown, p.style, margin + float64(at)*cell, bar + margin + 4 + float64(i)*leading,
					float64(utf8.RuneCountInString(shown)) * cell,
				})
			}
		}
		columns = max(columns, column)
	}
	width, height := 2*margin+float64(columns)*cell, bar+2*margin+float64(len(lines)-1)*leading
	return render("window", map[string]any{"Title": title, "Width": width, "Height": height, "Middle": width / 2, "Pieces": pieces})
}
