package docs

import (
	"go/types"
	"regexp"
	"slices"
	"strings"
)

var (
	spanTest   = regexp.MustCompile(`^((?:Test|Example|Benchmark|Fuzz)[A-Z_]\w*)(…)?(/.*)?$`)
	spanSymbol = regexp.MustCompile(`^([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\(.*)?$`)
	spanInside = regexp.MustCompile(`^(\w+(?:/\w+)+)\.([A-Z]\w*)$`)
	spanPath   = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+/?$`)
)

// Names finds tests, names in Go and paths in spans of code that do not exist.
func (r *Repository) Names(p *Page, code *Code) []Fault {
	var faults []Fault
	for _, s := range p.Spans {
		if why := r.name(s.Text, code); why != "" {
			faults = append(faults, p.fault(s.Line, "name", "`%s`: %s", s.Text, why))
		}
	}
	return faults
}

func (r *Repository) name(text string, code *Code) string {
	if m := spanTest.FindStringSubmatch(text); m != nil {
		for _, names := range r.tests {
			if slices.ContainsFunc(names, func(name string) bool {
				return name == m[1] || m[2] != "" && strings.HasPrefix(name, m[1])
			}) {
				return ""
			}
		}
		return "there is no such test"
	}
	if m := spanSymbol.FindStringSubmatch(text); m != nil {
		if path := code.ours[m[1]]; path != "" {
			return code.symbol(path, m[2], m[3])
		}
		return ""
	}
	if m := spanInside.FindStringSubmatch(text); m != nil {
		if _, folder := r.has(m[1]); folder {
			return code.symbol(Module+"/"+m[1], m[2], "")
		}
	}
	if spanPath.MatchString(text) {
		first, _, _ := strings.Cut(text, "/")
		if _, folder := r.has(first); folder {
			if found, _ := r.has(strings.TrimSuffix(text, "/")); !found {
				return "there is no such file or folder"
			}
		}
	}
	return ""
}

// symbol returns an error text if a package has no such exported name, or its type no such field or
// method.
func (c *Code) symbol(path, name, member string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	pkg, err := c.importer.Import(path)
	if err != nil {
		return err.Error()
	}
	object := pkg.Scope().Lookup(name)
	if object == nil {
		return "package " + path + " has no " + name
	}
	if member == "" {
		return ""
	}
	if found, _, _ := types.LookupFieldOrMethod(object.Type(), true, pkg, member); found == nil {
		return name + " has no " + member
	}
	return ""
}
