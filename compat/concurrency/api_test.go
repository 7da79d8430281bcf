package concurrency_test

import (
	"context"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	their "go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/compat/concurrency"
)

const (
	ourPath   = "github.com/eldest-io/eldest/compat/concurrency"
	theirPath = "go.etcd.io/etcd/client/v3/concurrency"
)

// Every exported identifier and method of etcd's package exists here, with the same kind and type
// except for the package's path; constants have the same values. Nothing more is exported, so that
// programs can go back to etcd's package.
func TestSameAPI(t *testing.T) {
	t.Parallel()
	if _, pointers := any((*their.Election).Observe).(func(*their.Election, context.Context) <-chan *clientv3.GetResponse); !pointers {
		t.Skip("SKIPPED: etcd's client is 3.6, and the drop-in has the API of 3.7 (docs/etcd-versions.md)")
	}
	ours, theirs := load(t)
	require.NotEmpty(t, theirs.Scope().Names())
	compared := 0
	for _, name := range theirs.Scope().Names() {
		wanted := theirs.Scope().Lookup(name)
		if !wanted.Exported() {
			continue
		}
		found := ours.Scope().Lookup(name)
		if !assertTrue(t, found != nil, "%s is missing", name) {
			continue
		}
		require.IsType(t, wanted, found, name)
		require.Equal(t, text(wanted.Type()), text(found.Type()), name)
		if c, ok := wanted.(*types.Const); ok {
			require.True(t, constant.Compare(c.Val(), token.EQL, found.(*types.Const).Val()), "%s has another value", name)
		}
		if _, ok := wanted.(*types.TypeName); ok {
			require.Equal(t, shape(wanted.Type()), shape(found.Type()), name)
		}
		compared++
	}
	require.Greater(t, compared, 25, "INVALID: hardly anything was compared")
	for _, name := range ours.Scope().Names() {
		if ours.Scope().Lookup(name).Exported() {
			assertTrue(t, theirs.Scope().Lookup(name) != nil, "%s is not in etcd's package", name)
		}
	}
}

func assertTrue(t *testing.T, ok bool, format string, args ...any) bool {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
	return ok
}

// The texts of the errors are the same, because people search for them in logs.
func TestSameErrors(t *testing.T) {
	for _, pair := range [][2]error{
		{concurrency.ErrElectionNotLeader, their.ErrElectionNotLeader},
		{concurrency.ErrElectionNoLeader, their.ErrElectionNoLeader},
		{concurrency.ErrLocked, their.ErrLocked},
		{concurrency.ErrSessionExpired, their.ErrSessionExpired},
		{concurrency.ErrLockReleased, their.ErrLockReleased},
	} {
		require.EqualError(t, pair[0], pair[1].Error())
	}
}

// Only transactional memory is imported from etcd's package, and only in one file.
func TestOnlySTMIsEtcds(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	importing := []string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range file.Imports {
			if path, err := strconv.Unquote(imported.Path.Value); err == nil && path == theirPath {
				importing = append(importing, name)
			}
		}
	}
	require.Equal(t, []string{"stm.go"}, importing)
	file, err := parser.ParseFile(token.NewFileSet(), "stm.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "concurrency" {
				require.NotRegexp(t, "Session|Election|Mutex|Lock", s.Sel.Name)
			}
		}
		return true
	})
}

// load reads the types of both packages from the compiler's export data.
func load(t *testing.T) (ours, theirs *types.Package) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ourPath, theirPath).Output()
	require.NoError(t, err)
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	ours, err = from.Import(ourPath)
	require.NoError(t, err)
	theirs, err = from.Import(theirPath)
	require.NoError(t, err)
	return ours, theirs
}

// text returns a type as text, without the paths of the two packages and without the names of
// parameters, which are not part of the type.
func text(of types.Type) string {
	if f, ok := of.(*types.Signature); ok {
		of = types.NewSignatureType(nil, nil, nil, nameless(f.Params()), nameless(f.Results()), f.Variadic())
	}
	return types.TypeString(types.Unalias(of), func(p *types.Package) string {
		if p.Path() == ourPath || p.Path() == theirPath {
			return ""
		}
		return p.Path()
	})
}

func nameless(of *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range of.Variables() {
		all = append(all, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(all...)
}

// shape returns what users of a type see: its methods, its exported fields, and its underlying type
// if that is no struct.
func shape(of types.Type) []string {
	seen := []string{}
	methods := types.NewMethodSet(types.NewPointer(of))
	for method := range methods.Methods() {
		if method.Obj().Exported() {
			seen = append(seen, method.Obj().Name()+" "+text(method.Type()))
		}
	}
	switch under := of.Underlying().(type) {
	case *types.Struct:
		for field := range under.Fields() {
			if field.Exported() {
				seen = append(seen, field.Name()+" "+text(field.Type()))
			}
		}
	default:
		seen = append(seen, text(under))
	}
	return seen
}
