package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// piece is a part of a line in one style.
type piece struct {
	text  string
	style string // a class of the picture
}

// readCast reads the lines that an asciicast of version 2 shows.
func readCast(path string) ([][]piece, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var head struct{ Version int }
	dec := json.NewDecoder(file)
	if err := dec.Decode(&head); err != nil || head.Version != 2 {
		return nil, fmt.Errorf("%s is an asciicast of version %d (%w)", path, head.Version, err)
	}
	var text strings.Builder
	for {
		var event [3]any // the time, the kind, and what was printed
		switch err := dec.Decode(&event); {
		case errors.Is(err, io.EOF):
			return readTerminal(text.String())
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if output, ok := event[2].(string); ok && event[1] == "o" {
			text.WriteString(output)
		}
	}
}

// styles are the SGR parameters that the demo uses.
var styles = map[string]string{"": "", "0": "", "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

var sgr = regexp.MustCompile(`\x1b\[(\d*)m`)

// readTerminal splits text into lines, and each line into pieces of one SGR style.
func readTerminal(text string) (lines [][]piece, err error) {
	style := ""
	for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n") {
		var pieces []piece
		add := func(part string) {
			if part != "" {
				pieces = append(pieces, piece{part, style})
			}
		}
		from := 0
		for _, m := range sgr.FindAllStringSubmatchIndex(line, -1) {
			add(line[from:m[0]])
			from = m[1]
			var known bool
			if style, known = styles[line[m[2]:m[3]]]; !known {
				return nil, fmt.Errorf("unsupported SGR %s: %q", line[m[2]:m[3]], line)
			}
		}
		add(line[from:])
		if strings.ContainsFunc(plain(pieces), func(c rune) bool { return c < ' ' }) {
			return nil, fmt.Errorf("a control character: %q", line)
		}
		lines = append(lines, pieces)
	}
	return lines, nil
}

// plain returns a line without its styles.
func plain(line []piece) string {
	var b strings.Builder
	for _, p := range line {
		b.WriteString(p.text)
	}
	return b.String()
}

// steps are the parts of the demo that the picture shows, by the beginnings of their first lines.
var steps = []string{"eldest demo", "2.", "4.", "Hand-overs", "Checked", "All checks passed"}

// choose keeps some parts, which are separated by empty lines, and puts dots in place of the others.
func choose(lines [][]piece, parts []string) (shown [][]piece, err error) {
	keep, dots := false, false
	for i, line := range lines {
		if i == 0 || plain(lines[i-1]) == "" {
			keep = len(parts) > 0 && strings.HasPrefix(plain(line), parts[0])
			if keep {
				parts, dots = parts[1:], false
			} else if !dots {
				shown, dots = append(shown, []piece{{"⋯", "dim"}}, nil), true
			}
		}
		if keep {
			shown = append(shown, line)
		}
	}
	if len(parts) > 0 {
		return nil, fmt.Errorf("the recording has no part that begins with %q", parts[0])
	}
	return shown, nil
}
