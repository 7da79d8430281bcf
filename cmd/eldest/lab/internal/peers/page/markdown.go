package page

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/template"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Data is the name of the reference run in docs/data, to which the page links.
const Data = "peers"

var markdownTemplate = template.Must(template.New("page.md.tmpl").Funcs(template.FuncMap{
	"md": escape, "cell": markdownCell, "link": markdownLink, "fence": fence, "inc": func(i int) int { return i + 1 },
	"data": func() string { return Data },
}).ParseFS(sources, "page.md.tmpl"))

// Markdown writes docs/results/elections.md. The result of Chart must be beside it, as elections.svg.
func Markdown(w io.Writer, r *peers.Report) error {
	v, err := newView(r)
	if err != nil {
		return err
	}
	return markdownTemplate.Execute(w, v)
}

// special are the characters that have a meaning in Markdown, or in HTML within it.
var special = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `#`, `\#`, `~`, `\~`, `!`, `\!`, `$`, `\$`,
	`&`, "&amp;", `<`, "&lt;", `>`, "&gt;",
)

// escape makes one line of Markdown that shows a text as it is.
func escape(text any) string {
	return special.Replace(strings.Join(strings.Fields(fmt.Sprint(text)), " "))
}

// fence makes one line of a text in a fenced block, which it cannot end.
func fence(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "```", "'''")
}

// markdownCell is a cell of the table, without the details. The best is bold.
func markdownCell(c cell) string {
	figure := escape(c.Figure)
	if c.Best {
		figure = "**" + figure + "**"
	}
	for _, without := range []string{c.Failures, c.Gap} {
		if without != "" {
			figure += ", " + escape(without)
		}
	}
	return figure + references(c.Notes)
}

// references are the numbers of notes.
func references(notes []int) string {
	if len(notes) == 0 {
		return ""
	}
	return " <sup>" + strings.Trim(strings.ReplaceAll(fmt.Sprint(notes), " ", ", "), "[]") + "</sup>"
}

// markdownLink is a link to the web, or the text alone of any other.
func markdownLink(l peer.Link) string {
	name := escape(l.Text)
	if name == "" {
		name = escape(l.URL)
	}
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return name
	}
	return fmt.Sprintf("[%s](%s)", name, strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "|", "%7C").Replace(u.String()))
}
