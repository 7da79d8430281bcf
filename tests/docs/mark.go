package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// A marked is a block with the content of its first line.
type marked struct {
	Block
	mark
}

type mark struct {
	language string
	file     string // file=
	notRun   string // not-run=
	imports  string // import=
	with     string // with=
}

// checked are the languages whose blocks are checked without further words.
var checked = []string{"go", "sh", "console", "json", "yaml"}

// readMark reads the words after a fence.
func readMark(info string) (m mark, err error) {
	words, err := shell.Fields(info, nil)
	if err != nil {
		return m, err
	}
	if len(words) == 0 {
		return m, fmt.Errorf("a block must have a language")
	}
	m.language = words[0]
	texts := map[string]*string{"file": &m.file, "not-run": &m.notRun, "import": &m.imports, "with": &m.with}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case texts[name] == nil:
			return m, fmt.Errorf("%q cannot be in the first line of a block", word)
		case value == "":
			return m, fmt.Errorf("%s= has no value", name)
		default:
			*texts[name] = value
		}
	}
	switch {
	case m.file != "" && m.notRun != "":
		return m, fmt.Errorf("file= and not-run= do not go together")
	case m.file == "" && m.notRun == "" && !slices.Contains(checked, m.language):
		return m, fmt.Errorf("a block of %q needs file=PATH, or not-run=\"REASON\"", m.language)
	}
	return m, nil
}

// Marks finds blocks without the words that describe them, and returns the others.
func (r *Repository) Marks(p *Page) (blocks []marked, faults []Fault) {
	for _, b := range p.Blocks {
		if !b.Fenced {
			faults = append(faults, p.fault(b.Line, "mark", "an indented block cannot have a language: fence it"))
			continue
		}
		m, err := readMark(b.Info)
		if err != nil {
			faults = append(faults, p.fault(b.Line-1, "mark", "%v (docs/README.md has the rules)", err))
			continue
		}
		blocks = append(blocks, marked{b, m})
	}
	return blocks, faults
}
