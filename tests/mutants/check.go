package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
)

// check returns why mutants cannot be run: a patch does not apply to the tree, or a test does not
// exist. It builds nothing.
func check(ctx context.Context, root string, all []*mutant) (faults []string) {
	tests := map[string]map[string]bool{}
	for _, m := range all {
		if err := apply(ctx, root, m, "--check"); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %s: %v", m.Name, stale, err))
		}
		if tests[m.Package] == nil {
			tests[m.Package] = testsOf(filepath.Join(root, m.Package))
		}
		if !tests[m.Package][m.top()] {
			faults = append(faults, fmt.Sprintf("%s: there is no %s in %s", m.Name, m.top(), m.Package))
		}
	}
	return faults
}

// testsOf lists the functions of the test files in a directory.
func testsOf(dir string) map[string]bool {
	found := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is valid
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler will report it better
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}
