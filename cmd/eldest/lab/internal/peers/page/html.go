package page

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
)

//go:embed page.html.tmpl page.md.tmpl
var sources embed.FS

//go:embed page.css
var css template.CSS // beside figures.CSS

var htmlTemplate = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{"inc": func(i int) int { return i + 1 }}).ParseFS(sources, "page.html.tmpl"))

// HTML writes the page. It has the report's JSON in it, and needs no network and no script.
func HTML(w io.Writer, r *peers.Report) error {
	v, err := newView(r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return htmlTemplate.Execute(w, struct {
		*view
		CSS  template.CSS
		JSON template.URL
	}{v, figures.CSS + css, template.URL("data:application/json;base64," + base64.StdEncoding.EncodeToString(data))}) //nolint:gosec // ours, and base64
}
