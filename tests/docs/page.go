package docs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// A Fault is one place where a page has an error.
type Fault struct {
	Page string
	Line int
	// Kind is one word, as in the package comment.
	Kind string
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s: %s", f.Page, f.Line, f.Kind, f.Text) }

// A Page is a Markdown file.
type Page struct {
	// Path is relative to the root of the repository, with slashes.
	Path    string
	Anchors map[string]bool
	Links   []Link
	Spans   []Span
	Blocks  []Block
}

// A Link is the target of a link or an image.
type Link struct {
	Line   int
	Target string
}

// A Span is code within a sentence.
type Span struct {
	Line int
	Text string
}

// A Block is a block of code.
type Block struct {
	// Line is the number of the first line within the block.
	Line int
	// Info is the text after the fence. Invariant: empty if not Fenced.
	Info   string
	Fenced bool
	Text   string
}

func (p *Page) fault(line int, kind, format string, args ...any) Fault {
	return Fault{Page: p.Path, Line: line, Kind: kind, Text: fmt.Sprintf(format, args...)}
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

// Parse reads a page. It cannot fail: every text is valid CommonMark.
func Parse(path string, source []byte) *Page {
	p := &Page{Path: path, Anchors: map[string]bool{}}
	r := reader{page: p, source: source, slugs: map[string]int{}}
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), r.visit) // visit returns no error
	return p
}

type reader struct {
	page   *Page
	source []byte
	line   int // of the block that is being read
	slugs  map[string]int
}

func (r *reader) lineAt(offset int) int { return bytes.Count(r.source[:offset], []byte("\n")) + 1 }

func (r *reader) visit(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if node.Type() == ast.TypeBlock && node.Lines().Len() > 0 {
		r.line = r.lineAt(node.Lines().At(0).Start)
	}
	switch node := node.(type) {
	case *ast.Heading:
		r.page.Anchors[slug(plain(node, r.source), r.slugs)] = true
	case *ast.Text:
		r.line = r.lineAt(node.Segment.Start)
	case *ast.Link:
		r.link(string(node.Destination), plainLine(node, r))
	case *ast.Image:
		r.link(string(node.Destination), plainLine(node, r))
	case *ast.AutoLink:
		r.link(string(node.URL(r.source)), r.line)
	case *ast.CodeSpan:
		r.page.Spans = append(r.page.Spans, Span{Line: plainLine(node, r), Text: strings.ReplaceAll(plain(node, r.source), "\n", " ")})
		return ast.WalkSkipChildren, nil
	case *ast.RawHTML:
		r.html(string(node.Segments.Value(r.source)), r.lineAt(node.Segments.At(0).Start))
	case *ast.HTMLBlock:
		r.html(string(node.Lines().Value(r.source)), r.line)
	case *ast.FencedCodeBlock:
		block := Block{Line: r.line, Fenced: true, Text: string(node.Lines().Value(r.source))}
		if node.Info != nil {
			block.Info = string(node.Info.Value(r.source))
			block.Line = r.lineAt(node.Info.Segment.Start) + 1
		}
		r.page.Blocks = append(r.page.Blocks, block)
	case *ast.CodeBlock:
		r.page.Blocks = append(r.page.Blocks, Block{Line: r.line, Text: string(node.Lines().Value(r.source))})
	}
	return ast.WalkContinue, nil
}

func (r *reader) link(target string, line int) {
	r.page.Links = append(r.page.Links, Link{Line: line, Target: target})
}

// plain is the text of a node without its markup.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// plainLine is the line on which an inline node has its first text, or else the last line that was
// read.
func plainLine(node ast.Node, r *reader) int {
	for child := node.FirstChild(); child != nil; child = child.FirstChild() {
		if t, ok := child.(*ast.Text); ok {
			return r.lineAt(t.Segment.Start)
		}
	}
	return r.line
}
