package diagram

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Distances, in pixels.
const (
	column  = 344 // between two lifelines
	side    = 64  // left of the first lifeline and right of the last
	top     = 104 // of the first message
	leading = 14  // between two lines of a text
	gap     = 13  // between two messages
	wide    = 54  // characters in a line, at most
	bold    = 48  // characters in a line of which all are bold
)

// BarWidth is the width of a bar, in pixels.
const BarWidth = 8

// columns orders the lifelines: the clients, with etcd in the middle.
func columns(entries []transcript.Entry) []string {
	var who []string
	for _, e := range entries {
		if e.Lane != "" && !slices.Contains(who, e.Lane) {
			who = append(who, e.Lane)
		}
	}
	return slices.Insert(who, (len(who)+1)/2, Etcd)
}

// wrapped breaks a text into lines of at most a width, at spaces if possible.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for utf8.RuneCountInString(line) > width {
			runes := []rune(line)
			lines, line = append(lines, string(runes[:width])), string(runes[width:])
		}
	}
	return append(lines, line)
}

// said returns the lines of a message: the method on the first, each part on lines of its own
// unless all fits on one.
func said(e transcript.Entry) []string {
	all := e
	all.Lost = false
	limit := wide
	if e.Kind == wiretap.Request {
		limit = bold
	}
	if text := all.Text(); utf8.RuneCountInString(text) <= limit {
		return []string{text}
	}
	lines := []string{e.Verb}
	for _, part := range e.Parts {
		for i, line := range wrapped(part, wide-2) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, line)
		}
	}
	return lines
}
