package docs

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// external reports whether a link leads out of the repository.
func external(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme != "" || u.Host != "")
}

// External returns the external addresses of all links, sorted, each once.
func (r *Repository) External() []string {
	var all []string
	for _, p := range r.Pages {
		for _, l := range p.Links {
			if external(l.Target) {
				all = append(all, l.Target)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var lines = regexp.MustCompile(`^L(\d+)(?:-L(\d+))?$`)

// Links finds links whose target does not exist.
func (r *Repository) Links(p *Page) []Fault {
	var faults []Fault
	for _, l := range p.Links {
		if external(l.Target) {
			if u, _ := url.Parse(l.Target); u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
				faults = append(faults, p.fault(l.Line, "link", "%s is not an address that a reader can open", l.Target))
			}
			continue
		}
		if why := r.leads(p, l.Target); why != "" {
			faults = append(faults, p.fault(l.Line, "link", "%s: %s", l.Target, why))
		}
	}
	return faults
}

// leads returns why a link within the repository has no target, or "".
func (r *Repository) leads(p *Page, target string) string {
	name, anchor, anchored := strings.Cut(target, "#")
	name, err := url.PathUnescape(name)
	if err != nil {
		return err.Error()
	}
	file := p.Path
	if name != "" {
		if strings.HasPrefix(name, "/") {
			return "it must be relative"
		}
		file = path.Join(path.Dir(p.Path), name)
	}
	found, folder := r.has(file)
	if !found {
		return "there is no " + file
	}
	if !anchored {
		return ""
	}
	if folder {
		return "a folder has no anchors"
	}
	pages := append([]*Page{p}, r.Pages...)
	if i := slices.IndexFunc(pages, func(q *Page) bool { return q.Path == file }); i >= 0 {
		if !pages[i].Anchors[anchor] {
			return file + " has no such heading"
		}
		return ""
	}
	m := lines.FindStringSubmatch(anchor)
	if m == nil {
		return "the anchor of a file that is not a page must be #L and a line number"
	}
	text, err := r.text(file)
	if err != nil {
		return err.Error()
	}
	for _, number := range m[1:] {
		if n, _ := strconv.Atoi(number); n > strings.Count(text, "\n") {
			return file + " has no line " + number
		}
	}
	return ""
}
