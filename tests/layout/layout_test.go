package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// still are the packages that start no goroutine, with the reason.
var still = map[string]string{
	".":                     "the root has only types and errors, no logic",
	"keys":                  "the key layout is arithmetic on strings",
	"txn":                   "a transaction is one request and leaves nothing running",
	"identity":              "an identity does nothing",
	"hooks":                 "hooks are called on goroutines that other packages own",
	"metrics":               "numbers are computed at a scrape",
	"traces":                "spans are written on the goroutine of the event",
	"fence":                 "a request is admitted on the goroutine that serves it",
	"internal/absent":       "a check takes no time",
	"internal/clockctx":     "carrying a clock takes no time",
	"internal/onrecord":     "a run is read on the goroutine of its caller",
	"internal/rawframe":     "a message is moved on its caller's goroutine",
	"internal/retry":        "its callers wait",
	"internal/rpcerr":       "reading an error takes no time",
	"cmd/eldest/lab/oracle": "a checker is a pure function",
}

var (
	// list is the first glob of a package's list, which identifies the package.
	list     = regexp.MustCompile(`files: \["\$\{base-path\}/(\S+\.go)"`)
	wild     = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`)
	nameless = regexp.MustCompile(`(^|/)(utils?|helpers?|common|types|misc|shared)(/|(_test)?\.go$)`)
)

// faults reads every Go file of all modules.
func faults(t *testing.T, tree fs.FS) (found []string) {
	config, err := fs.ReadFile(tree, ".golangci.yml")
	require.NoError(t, err)
	var globs []string
	for _, m := range list.FindAllStringSubmatch(string(config), -1) {
		globs = append(globs, wild.Replace(regexp.QuoteMeta(m[1])))
	}
	planned := regexp.MustCompile("^(" + strings.Join(globs, "|") + ")$")
	documented := map[string]bool{}
	require.NoError(t, fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		dir, base := path.Split(file)
		dir = path.Clean(dir)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (base == "testdata" || base[0] == '.' || base[0] == '_'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(base) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, file)
		require.NoError(t, err)
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		documented[dir] = documented[dir] || parsed.Doc != nil && (base == "doc.go" || base == "main.go" && parsed.Name.Name == "main")
		if !planned.MatchString(file) {
			found = append(found, file+": its package has no list in .golangci.yml, so its imports are not checked")
		}
		if nameless.MatchString(file) {
			found = append(found, file+": a file and a package are named for the one thing that they contain")
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok && still[dir] != "" && !strings.HasSuffix(base, "_test.go") {
				found = append(found, set.Position(g.Pos()).String()+": starts a goroutine, but "+still[dir])
			}
			return true
		})
		return nil
	}))
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			found = append(found, dir+": has no doc.go with a package comment, with which a reader starts")
		}
	}
	return found
}

func TestLayout(t *testing.T) { require.Empty(t, faults(t, os.DirFS("../.."))) }

func TestFaultsAreFound(t *testing.T) {
	const config, comment = `files: ["${base-path}/txn/*.go"] files: ["${base-path}/tests/**.go", "!${base-path}/new/**"]`, "// P.\n"
	tree := fstest.MapFS{".golangci.yml": {Data: []byte(config)}}
	for file, source := range map[string]string{
		"txn/doc.go":            comment + "package txn",
		"txn/a_windows.go":      "package txn; func f() { go f() }",
		"txn/a_test.go":         "package txn; func g() { go f() }",
		"txn/inner/doc.go":      comment + "package inner",
		"new/main.go":           comment + "package main",
		"tests/a/a_test.go":     comment + "package a",
		"tests/b/doc.go":        "package b",
		"tests/c/doc.go":        comment + "package c",
		"tests/c/util_test.go":  "package c",
		"tests/c/testdata/d.go": "not Go",
		"tests/.hidden/util.go": "not Go",
		"tests/shared/c/doc.go": comment + "package c",
	} {
		tree[file] = &fstest.MapFile{Data: []byte(source)}
	}
	var found []string
	for _, fault := range faults(t, tree) {
		where, _, _ := strings.Cut(fault, ": ")
		found = append(found, where)
	}
	require.Equal(t, []string{
		"new/main.go", "tests/c/util_test.go", "tests/shared/c/doc.go", "txn/a_windows.go:1:25", "txn/inner/doc.go",
		"tests/a", "tests/b",
	}, found)
}
