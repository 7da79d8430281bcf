package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A word is one that readers may not understand, and its replacement.
type word struct {
	pattern *regexp.Regexp
	instead string
	// pages means that it is searched in pages only: the code still contains it.
	pages bool
}

func everywhere(pattern, instead string) word {
	return word{pattern: bounded(pattern), instead: instead}
}

func inPages(pattern, instead string) word {
	return word{pattern: bounded(pattern), instead: instead, pages: true}
}

func bounded(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
}

// worst are the words. A word is moved from inPages to everywhere when the code does not contain it
// any more.
var worst = []word{
	everywhere("at night", "monitoring"),
	everywhere("plan of the house", "dependency rules"),
	everywhere("dies without a word", "crashes"),
	everywhere("with an account that may less", "with a restricted account"),
	everywhere("worse here are", "Eldest is slower or larger in"),
	everywhere("stands? again", "campaigns again"),
	inPages("told of|hears? of|heard of", "is notified of, receives"),
	inPages("lets? go", "releases, is deleted, expires"),
	everywhere("rooms", "packages"),
	everywhere("the house|crew|referee", "module, supervisor, monitor"),
	everywhere("on record", "reference run"),
	everywhere("asked twice|put once more", "hedged"),
	everywhere("whoever|somebody|anybody|everybody", "name the actor: the client, a candidate, all observers"),
	everywhere("nobody's", "orphaned, unknown cause"),
	inPages("farewell", "resigning, leaving"),
	inPages("ghosts?|phantoms?", "orphaned key, candidate without a key"),
	everywhere("without a word", "silently, crashes"),
}

// Words finds the worst words in all pages that are not generated, and in the comments and
// strings of all files in Go; of tests, in the comments.
func (r *Repository) Words() (faults []Fault, err error) {
	for name, folder := range r.files {
		if folder || strings.Contains(name, "testdata/") {
			continue
		}
		var texts map[int]string
		switch {
		case strings.HasSuffix(name, ".md"):
			texts, err = r.prose(name)
		case strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "tests/docs/words"):
			texts, err = r.said(name)
		}
		if err != nil {
			return nil, err
		}
		for line, text := range texts {
			for _, w := range worst {
				if w.pages && strings.HasSuffix(name, ".go") {
					continue
				}
				for _, at := range w.pattern.FindAllStringIndex(text, -1) {
					faults = append(faults, Fault{Page: name, Line: line + strings.Count(text[:at[0]], "\n"), Kind: "word",
						Text: fmt.Sprintf("%q: write %s", text[at[0]:at[1]], w.instead)})
				}
			}
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return faults, nil
}

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	span   = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")
)

// prose is a page without its blocks, spans of code and addresses, as one text.
func (r *Repository) prose(name string) (map[int]string, error) {
	text, err := r.text(name)
	if err != nil || strings.Contains(text[:min(len(text), 400)], "enerated") { // its source is checked instead
		return nil, err
	}
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) + " " }
	return map[int]string{1: span.ReplaceAllStringFunc(fenced.ReplaceAllStringFunc(text, blank), blank)}, nil
}

// said are the comments of a Go file, and the strings unless it is a test, by their lines.
func (r *Repository) said(name string) (map[int]string, error) {
	source, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(name)))
	if err != nil || bytes.Contains(source, []byte("// Code generated ")) {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	texts := map[int]string{}
	add := func(at token.Pos, text string) { texts[files.Position(at).Line] += " " + text }
	for _, group := range file.Comments {
		add(group.Pos(), strings.ReplaceAll(group.Text(), "// ", ""))
	}
	if strings.HasSuffix(name, "_test.go") {
		return texts, nil // their strings are test data and messages
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			add(literal.Pos(), literal.Value)
		}
		return true
	})
	return texts, nil
}
