package docs

import (
	"net/url"
	"path"
	"strings"
)

// Reach finds pages below docs/ to which no path of links leads from docs/README.md. A link to a
// directory leads to the pages in it.
func (r *Repository) Reach() []Fault {
	pages := map[string]*Page{}
	for _, p := range r.Pages {
		pages[p.Path] = p
	}
	reached := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		if _, folder := r.has(name); folder {
			for other := range pages {
				if path.Dir(other) == name {
					visit(other)
				}
			}
			return
		}
		p := pages[name]
		if p == nil {
			return
		}
		for _, l := range p.Links {
			target, _, _ := strings.Cut(l.Target, "#")
			target, err := url.PathUnescape(target)
			// Only links within the documentation: the README at the root links to everything.
			if to := path.Join(path.Dir(name), target); err == nil && target != "" && !external(l.Target) && strings.HasPrefix(to, "docs/") {
				visit(to)
			}
		}
	}
	visit("docs/README.md")
	var faults []Fault
	for _, p := range r.Pages {
		if strings.HasPrefix(p.Path, "docs/") && !reached[p.Path] {
			faults = append(faults, p.fault(1, "reach", "no link leads here from docs/README.md"))
		}
	}
	return faults
}
