package docs

import (
	"fmt"
	"slices"
	"strings"
)

// Excerpts finds blocks that differ from their file.
func (r *Repository) Excerpts(p *Page, blocks []marked) []Fault {
	var faults []Fault
	for _, b := range blocks {
		if b.file == "" {
			continue
		}
		text, err := r.text(b.file)
		if err == nil {
			err = excerpt(b.Text, text)
		}
		if err != nil {
			faults = append(faults, p.fault(b.Line, "file", "%s: %v", b.file, err))
		}
	}
	return faults
}

// excerpt returns why part is not an excerpt of whole: an excerpt has runs of lines in their order,
// with lines between them that mark omissions. Indentation and empty lines are ignored.
func excerpt(part, whole string) error {
	lines := significant(whole)
	var run []string
	flush := func() error {
		for i := 0; i+len(run) <= len(lines); i++ {
			if slices.Equal(lines[i:i+len(run)], run) {
				lines, run = lines[i+len(run):], nil
				return nil
			}
		}
		return fmt.Errorf("it has not, or not there:\n%s", strings.Join(run, "\n"))
	}
	found := false
	for _, line := range significant(part) {
		if elision(line) {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		found = true
		run = append(run, line)
	}
	if !found {
		return fmt.Errorf("the block contains no line of the file")
	}
	return flush()
}

// elision reports whether a line, or a comment, marks omitted lines.
func elision(line string) bool {
	for _, comment := range []string{"//", "#", "--", "/*"} {
		line = strings.TrimSpace(strings.TrimPrefix(line, comment))
	}
	return line == "…"
}

func significant(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
