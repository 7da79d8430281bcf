package layers

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Package is what the rules look at in one package. Files are named relative to
// the root of the house, with forward slashes.
type Package struct {
	// Imports are the import paths of all files but tests, for every platform.
	Imports []string
	// Goroutines are the positions of go statements outside tests.
	Goroutines []string
	// Generated are those of Imports that only generated files have.
	Generated []string
	// Lines is the length of each file, tests included and generated files excluded.
	Lines map[string]int
	// Documented: there is a doc.go with a package comment, or a main.go.
	Documented bool
}

// Read reads every package below root, nested modules included, by its name
// relative to root. Directories that hold nothing but tests count too.
func Read(root string) (map[string]*Package, error) {
	packages := make(map[string]*Package)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if file != root && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		p := packages[path.Dir(rel)]
		if p == nil {
			p = &Package{Lines: make(map[string]int)}
			packages[path.Dir(rel)] = p
		}
		return p.add(rel, source)
	})
	if err == nil && len(packages) == 0 {
		err = fmt.Errorf("no Go files below %s", root)
	}
	return packages, err
}

// add takes one file in.
func (p *Package) add(file string, source []byte) error {
	lines := bytes.Count(source, []byte("\n"))
	if strings.HasSuffix(file, "_test.go") {
		p.Lines[file] = lines
		return nil
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	generated := ast.IsGenerated(tree)
	if !generated {
		p.Lines[file] = lines
	}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		p.imports(imported, generated)
	}
	slices.Sort(p.Imports)
	slices.Sort(p.Generated)
	ast.Inspect(tree, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			p.Goroutines = append(p.Goroutines, set.Position(g.Pos()).String())
		}
		return true
	})
	// A program of one file says what it is in that file.
	if base := path.Base(file); tree.Doc != nil && (base == "doc.go" || base == "main.go" && tree.Name.Name == "main") {
		p.Documented = true
	}
	return nil
}

// imports takes one import in.
func (p *Package) imports(imported string, generated bool) {
	switch known, by := slices.Contains(p.Imports, imported), slices.Index(p.Generated, imported); {
	case known && by >= 0 && !generated:
		p.Generated = slices.Delete(p.Generated, by, by+1)
	case known:
	default:
		p.Imports = append(p.Imports, imported)
		if generated {
			p.Generated = append(p.Generated, imported)
		}
	}
}
