package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// around is the code around statements: they are the body of a function, in a scope of its own, so
// that they can declare any names.
const around = "func _(ctx context.Context, client *clientv3.Client%s) error {\n{\n//line %s:%d\n%s\n}\nreturn nil\n}\n"

// Programs finds Go that does not compile. Unused names are no fault: a page shows a part of a
// program.
func (r *Repository) Programs(p *Page, blocks []marked, code *Code) []Fault {
	var faults []Fault
	for _, b := range blocks {
		if b.language != "go" || b.notRun != "" || b.file != "" {
			continue
		}
		for _, err := range code.compile(p.Path, b) {
			faults = append(faults, p.fault(b.Line, "go", "%v", err))
		}
	}
	return faults
}

// compile parses and type-checks one block.
func (c *Code) compile(page string, b marked) []error {
	file, fset, err := c.parse(page, b)
	if err != nil {
		return []error{err}
	}
	var faults []error
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if e, ok := err.(types.Error); !ok || !e.Soft { //nolint:errorlint // go/types hands over the value itself
			faults = append(faults, err)
		}
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = config.Check("page", fset, []*ast.File{file}, nil) // Error receives all errors
	return faults
}

// parse reads a block as a file, as declarations, or as statements. Imports are added for the names
// that the block does not declare.
func (c *Code) parse(page string, b marked) (*ast.File, *token.FileSet, error) {
	for _, form := range []string{
		fmt.Sprintf("//line %s:%d\n%s", page, b.Line, b.Text),
		fmt.Sprintf("package page\n//line %s:%d\n%s", page, b.Line, b.Text),
		"package page\n" + fmt.Sprintf(around, parameters(b.with), page, b.Line, b.Text),
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, page, form, 0)
		if err != nil {
			continue
		}
		imports, err := c.imports(file, b.imports)
		if err != nil {
			return nil, nil, err
		}
		if len(imports) == 0 {
			return file, fset, nil
		}
		head, rest, _ := strings.Cut(form, "package page\n")
		fset = token.NewFileSet()
		file, err = parser.ParseFile(fset, page, head+"package page; "+strings.Join(imports, "; ")+"\n"+rest, 0)
		return file, fset, err
	}
	// It is none of them: return the error for statements.
	_, err := parser.ParseFile(token.NewFileSet(), page, fmt.Sprintf("package page\n"+around, parameters(b.with), page, b.Line, b.Text), 0)
	return nil, nil, err
}

func parameters(with string) string {
	if with == "" {
		return ""
	}
	return ", " + with
}

// imports returns the import declarations that a file needs and does not have.
func (c *Code) imports(file *ast.File, given string) ([]string, error) {
	if file.Name.Name != "page" {
		return nil, nil // a whole file has its own imports
	}
	named := map[string]string{}
	for word := range strings.SplitSeq(given, ",") {
		fields := strings.Fields(word)
		switch len(fields) {
		case 1:
			named[lastElement(fields[0])] = fields[0]
		case 2:
			named[fields[0]] = fields[1]
		}
	}
	for _, spec := range file.Imports { // declarations may have imports
		if spec.Name != nil {
			named[spec.Name.Name] = ""
			continue
		}
		named[lastElement(strings.Trim(spec.Path.Value, `"`))] = ""
	}
	var all []string
	for _, name := range file.Unresolved {
		path, known := named[name.Name]
		if !known {
			paths := c.known[name.Name]
			if len(paths) == 0 {
				continue // a predeclared name, or a fault for which the type checker has a better message
			}
			if len(paths) > 1 {
				return nil, fmt.Errorf("%s can be %s: say import=\"…\"", name.Name, strings.Join(paths, " or "))
			}
			path = paths[0]
		}
		if path != "" {
			all = append(all, fmt.Sprintf("import %s %q", name.Name, path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
