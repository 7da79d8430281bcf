package figures

import (
	"embed"
	"html/template"
	"io"

	"github.com/eldest-io/eldest/bench"
)

//go:embed page.html.tmpl
var sources embed.FS

// CSS is the style sheet of all pages with figures.
//
//go:embed page.css
var CSS template.CSS

var pageTemplate = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{"explain": explain}).ParseFS(sources, "page.html.tmpl"))

// chapter is the part of the page about one run.
type chapter struct {
	sheet
	Pictures []pictures
}

// Page writes the page for runs, in their order.
func Page(w io.Writer, runs []*bench.Report) error {
	page := struct {
		CSS      template.CSS
		Title    string
		Chapters []chapter
	}{CSS: CSS, Title: "Elections on etcd, measured"}
	for _, r := range runs {
		drawn, err := draw(r)
		if err != nil {
			return err
		}
		page.Chapters = append(page.Chapters, chapter{newSheet(r), drawn})
	}
	if len(runs) == 1 {
		page.Title = "Elections on etcd: " + runs[0].Scenario
	}
	return pageTemplate.Execute(w, page)
}
