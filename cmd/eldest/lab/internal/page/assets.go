package page

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
)

// assets are the files of the page.
//
//go:embed assets
var assets embed.FS

// kinds are the content types of assets, by extension. The system's table is not used: it may be
// wrong, and browsers refuse scripts of another type.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// serveAsset serves an embedded file.
func serveAsset(w http.ResponseWriter, name string) {
	data, err := fs.ReadFile(assets, path.Join("assets", name))
	kind := kinds[path.Ext(name)]
	if err != nil || kind == "" || !fs.ValidPath(name) {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	writing(w)
	_, _ = w.Write(data) // the client may have gone
}
