package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/diagram"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// book is docs/book: its current content and its new content.
type book struct {
	dir   string
	names []string          // of the programs, sorted
	in    map[string]string // program to the file of its chapter
	was   map[string]string // file to its current content
	shall map[string]string
}

// open reads the book. Every program must have a block in it, and every block must name a program.
func open(root string) (*book, error) {
	b := &book{dir: filepath.Join(root, "docs", "book"), in: map[string]string{}, was: map[string]string{}, shall: map[string]string{}}
	programs, err := filepath.Glob(filepath.Join(root, "examples", "book", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		b.names = append(b.names, filepath.Base(filepath.Dir(p)))
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if ext := filepath.Ext(file); ext != ".md" && ext != ".svg" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		b.was[filepath.Base(file)] = string(data)
	}
	return b, b.chapters()
}

// chapters finds the blocks of all chapters and checks them.
func (b *book) chapters() error {
	for file, text := range b.was {
		if filepath.Ext(file) != ".md" {
			continue
		}
		b.shall[file] = text
		for _, name := range blocks(text) {
			switch {
			case !slices.Contains(b.names, name):
				return fmt.Errorf("docs/book/%s: there is no examples/book/%s", file, name)
			case b.in[name] != "":
				return fmt.Errorf("docs/book/%s: %s is in %s already", file, name, b.in[name])
			case !strings.Contains(text, "("+name+".svg)"):
				return fmt.Errorf("docs/book/%s: the picture %s.svg is not shown", file, name)
			}
			b.in[name] = file
		}
	}
	for _, name := range b.names {
		if b.in[name] == "" {
			return fmt.Errorf("no chapter of docs/book has a block for examples/book/%s", name)
		}
	}
	return nil
}

const (
	opening = "<!-- trace "
	closing = "<!-- end trace -->"
	// info is the line that opens a block: docs/README.md has the rules.
	info = `text not-run="what its program said, kept current by docs/book/generate"`
)

// blocks returns the names of a text's blocks, in order.
func blocks(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), opening); ok {
			names = append(names, strings.TrimSuffix(rest, " -->"))
		}
	}
	return names
}

// replaced returns a text with the content of one block replaced.
func replaced(text, name, with string) (string, error) {
	before, rest, ok := strings.Cut(text, opening+name+" -->\n")
	if !ok {
		return "", fmt.Errorf("%q is not a line of its own", opening+name+" -->")
	}
	block, after, ok := strings.Cut(rest, closing)
	if !ok || strings.Contains(block, opening) {
		return "", fmt.Errorf("the block of %s does not end: %q is missing", name, closing)
	}
	return before + opening + name + " -->\n" + with + closing + after, nil
}

// put writes a program's messages into its chapter and its picture. If check is set, it instead
// returns the difference from the current content, if there is one.
func (b *book) put(name string, entries []transcript.Entry, check bool) (string, error) {
	file := b.in[name]
	var text, picture bytes.Buffer
	text.WriteString("\n```" + info + "\n")
	err := errors.Join(transcript.Print(&text, entries), diagram.Draw(&picture, name, entries))
	text.WriteString("```\n\n")
	if err != nil {
		return "", err
	}
	chapter, err := replaced(b.shall[file], name, text.String())
	if err != nil {
		return "", fmt.Errorf("docs/book/%s: %w", file, err)
	}
	if check {
		if diff := difference(b.shall[file], chapter); diff != "" {
			return "docs/book/" + file + diff, nil
		}
		if diff := difference(b.was[name+".svg"], picture.String()); diff != "" {
			return "docs/book/" + name + ".svg" + diff, nil
		}
	}
	b.shall[file], b.shall[name+".svg"] = chapter, picture.String()
	return "", nil
}

// write writes the files that have changed, unless check is set.
func (b *book) write(check bool) error {
	for file, text := range b.shall {
		if check || text == b.was[file] {
			continue
		}
		if err := os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o644); err != nil { //nolint:gosec // a page of the repository
			return err
		}
	}
	return nil
}

// difference returns the first lines that differ in two texts, or "" if the texts are equal.
func difference(was, is string) string {
	if was == is {
		return ""
	}
	old, now := strings.Split(was, "\n"), strings.Split(is, "\n")
	at := 0
	for at < min(len(old), len(now)) && old[at] == now[at] {
		at++
	}
	var b strings.Builder
	fmt.Fprintf(&b, ", from line %d:\n", at+1)
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"- ", old}, {"+ ", now}} {
		for _, line := range side.lines[at:min(at+8, len(side.lines))] {
			b.WriteString(side.mark + line + "\n")
		}
	}
	return b.String()
}
