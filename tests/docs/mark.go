package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A mark is what a fenced block says of itself.
type mark struct {
	language string
	file     string // file=
	notRun   string // not-run=
	imports  string // import=
	with     string // with=
	exit     int    // exit=
	exact    bool
	anyOrder bool // any-order
}

// checked are the words whose blocks are checked without further words.
var checked = []string{"go", "sh", "console", "json", "yaml"}

// readMark reads what stands behind a fence.
func readMark(info string) (mark, error) {
	var m mark
	words, err := split(info)
	if err != nil {
		return m, err
	}
	if len(words) == 0 {
		return m, fmt.Errorf("a block must say what it is")
	}
	m.language = words[0]
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "file":
			m.file = value
		case "not-run":
			m.notRun = value
		case "import":
			m.imports = value
		case "with":
			m.with = value
		case "exact":
			m.exact = true
			continue
		case "any-order":
			m.anyOrder = true
			continue
		case "exit":
			if m.exit, err = strconv.Atoi(value); err != nil {
				return m, fmt.Errorf("exit=%s is no number", value)
			}
		default:
			return m, fmt.Errorf("%q is nothing that a block can say", word)
		}
		if value == "" {
			return m, fmt.Errorf("%s= has no value", name)
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

// split separates words at spaces that are not within double quotes.
func split(info string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, inside := false, false
	for _, c := range info {
		switch {
		case c == '"':
			quoted, inside = !quoted, true
		case c == ' ' && !quoted:
			if inside {
				words = append(words, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed: %s", info)
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// A marked is a block with its mark.
type marked struct {
	Block
	mark
}

// Marks finds blocks that do not say what they are. Those that do are returned as well.
func (r *Repository) Marks(p *Page) ([]marked, []Fault) {
	var blocks []marked
	var faults []Fault
	for _, b := range p.Blocks {
		if !b.Fenced {
			faults = append(faults, p.fault(b.Line, "mark", "an indented block cannot say what it is: fence it"))
			continue
		}
		m, err := readMark(b.Info)
		if err != nil {
			faults = append(faults, p.fault(b.Line-1, "mark", "%v (docs/README.md has the rules)", err))
			continue
		}
		blocks = append(blocks, marked{Block: b, mark: m})
	}
	return blocks, faults
}
