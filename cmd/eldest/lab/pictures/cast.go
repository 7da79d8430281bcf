package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A piece is a part of a line in one style.
type piece struct {
	text  string
	style string // classes of the picture, by SGR
}

// readCast reads the lines that an asciicast of version 2 shows.
func readCast(in io.Reader) ([][]piece, error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	var text strings.Builder
	for number := 0; scanner.Scan(); number++ {
		if number == 0 {
			var head struct{ Version int }
			if err := json.Unmarshal(scanner.Bytes(), &head); err != nil || head.Version != 2 {
				return nil, fmt.Errorf("an asciicast of version %d (%w)", head.Version, err)
			}
			continue
		}
		var event []any
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", number+1, err)
		}
		if len(event) != 3 {
			return nil, fmt.Errorf("line %d of the recording has %d parts", number+1, len(event))
		}
		if output, ok := event[2].(string); ok && event[1] == "o" {
			text.WriteString(output)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return readTerminal(text.String())
}

// styles are the SGR parameters that the demo uses.
var styles = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

var sgr = regexp.MustCompile(`\x1b\[(\d*)m`)

// readTerminal takes lines with SGR apart.
func readTerminal(text string) ([][]piece, error) {
	var lines [][]piece
	style := ""
	for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n") {
		var runs []piece
		add := func(part string) {
			if part != "" {
				runs = append(runs, piece{part, style})
			}
		}
		from := 0
		for _, m := range sgr.FindAllStringSubmatchIndex(line, -1) {
			add(line[from:m[0]])
			from = m[1]
			code := line[m[2]:m[3]]
			if code == "" || code == "0" {
				style = ""
			} else if style = styles[code]; style == "" {
				return nil, fmt.Errorf("SGR %s is not known here: %q", code, line)
			}
		}
		add(line[from:])
		for _, r := range runs {
			if strings.ContainsFunc(r.text, func(c rune) bool { return c < ' ' }) {
				return nil, fmt.Errorf("a control character: %q", r.text)
			}
		}
		lines = append(lines, runs)
	}
	return lines, nil
}

// plain is a line without its styles.
func plain(line []piece) string {
	var b strings.Builder
	for _, r := range line {
		b.WriteString(r.text)
	}
	return b.String()
}

// acts are the parts of the demo that the picture has, by how their first lines begin.
var acts = []string{"eldest demo", "2.", "4.", "Hand-overs", "Checked", "All of it held"}

// choose keeps the parts that are asked for, parts being what empty lines separate. Dots
// stand for those that are left out.
func choose(lines [][]piece, parts []string) ([][]piece, error) {
	var shown [][]piece
	left := append([]string{}, parts...)
	keep, dots := false, false
	for i, line := range lines {
		if i == 0 || plain(lines[i-1]) == "" {
			keep = len(left) > 0 && strings.HasPrefix(plain(line), left[0])
			if keep {
				left, dots = left[1:], false
			} else if !dots {
				shown, dots = append(shown, []piece{{"⋯", "dim"}}, nil), true
			}
		}
		if keep {
			shown = append(shown, line)
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("the recording has no part that begins with %q", left[0])
	}
	return shown, nil
}
