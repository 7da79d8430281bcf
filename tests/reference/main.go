// Command reference writes the generated pages of docs/reference: the mutants from the headers of
// their patches, the regressions from tests/regressions/rows.txt, and the tables of the reference
// runs from docs/data.
//
//	docs/reference/generate          # writes the pages
//	docs/reference/generate -check   # writes nothing, and fails if a page would change
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// folder is the directory of the pages, relative to the root of the repository.
const folder = "docs/reference"

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a page would change")
	root := flag.String("root", ".", "the `folder` of the repository")
	flag.Parse()
	if err := generate(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// generate writes all pages, or compares them.
func generate(root string, check bool) error {
	mutants, err := readMutants(root)
	if err != nil {
		return err
	}
	regressions, err := readRegressions(root)
	if err != nil {
		return err
	}
	runs, err := readRuns(root)
	if err != nil {
		return err
	}
	var faults []error
	for name, page := range map[string]string{
		"mutants.md": mutantsPage(mutants), "regressions.md": regressionsPage(regressions, mutants), "runs.md": runsPage(runs),
	} {
		path := filepath.Join(root, folder, name)
		if !check {
			faults = append(faults, os.WriteFile(path, []byte(page), 0o644))
			continue
		}
		committed, err := os.ReadFile(path)
		if err == nil && string(committed) != page {
			err = fmt.Errorf("%s/%s is not current: run docs/reference/generate", folder, name)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
