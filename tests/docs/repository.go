package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// A Repository is the tree of files, read once.
type Repository struct {
	Root string
	// Pages are all Markdown files.
	Pages []*Page
	// files has every file and directory, by its path from the root with slashes; true is a
	// directory. The root is ".".
	files map[string]bool
	// tests has, for each directory, the names of its tests, benchmarks, fuzz targets and examples.
	tests map[string][]string
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// Open reads the tree at root. Names that start with a dot are left out, except .ci.
func Open(root string) (*Repository, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &Repository{Root: root, files: map[string]bool{}, tests: map[string][]string{}}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if base := entry.Name(); relative != "." && strings.HasPrefix(base, ".") && base != ".ci" {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		r.files[relative] = entry.IsDir()
		return r.read(name, relative)
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", root, err)
	}
	return r, nil
}

func (r *Repository) read(name, relative string) error {
	page, test := strings.HasSuffix(relative, ".md"), strings.HasSuffix(relative, "_test.go")
	if r.files[relative] || !page && !test || strings.Contains(relative, "testdata/") {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if page {
		r.Pages = append(r.Pages, Parse(relative, data))
		return nil
	}
	for _, m := range testName.FindAllSubmatch(data, -1) {
		folder := path.Dir(relative)
		r.tests[folder] = append(r.tests[folder], string(m[1]))
	}
	return nil
}

// has reports whether there is such a file or directory, and which of the two.
func (r *Repository) has(name string) (found, folder bool) {
	folder, found = r.files[path.Clean(name)]
	return found, folder
}

// text returns the content of a file of the repository.
func (r *Repository) text(name string) (string, error) {
	if found, folder := r.has(name); !found || folder {
		return "", fmt.Errorf("there is no file %s", name)
	}
	data, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(name)))
	return string(data), err
}
