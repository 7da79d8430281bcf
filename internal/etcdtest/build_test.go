package etcdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailedBuildShowsTheCompiler(t *testing.T) {
	module := t.TempDir()
	write(t, module, "go.mod", "module broken\n\ngo 1.26.0\n")
	write(t, module, "internal/etcdmember/main.go", "package main\n\nfunc main() { undefinedThing() }\n")
	target := filepath.Join(t.TempDir(), "member")
	err := build(module, target)
	require.ErrorContains(t, err, "undefinedThing")
	require.NoFileExists(t, target)
	left, err := filepath.Glob(target + "*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// The key changes with everything that the binary is built from, and with nothing else.
func TestSourceKey(t *testing.T) {
	module := t.TempDir()
	for _, src := range memberSources {
		if filepath.Ext(src) == "" {
			src += "/main.go"
		}
		write(t, module, src, "one")
	}
	key := func() string {
		k, err := sourceKey(module)
		require.NoError(t, err)
		return k
	}
	first := key()
	write(t, module, "campaign.go", "not a part of a member")
	write(t, module, "internal/etcdmember/main_test.go", "nor are its tests")
	require.Equal(t, first, key())
	write(t, module, "internal/memberproc/main.go", "two")
	second := key()
	require.NotEqual(t, first, second)
	write(t, module, "go.sum", "two")
	require.NotEqual(t, second, key())
}

// Everything that the member is built from, besides its dependencies, is in the key.
func TestSourceKeyCoversThePackages(t *testing.T) {
	module, err := nestedModule()
	require.NoError(t, err)
	deps, err := localPackages(module)
	require.NoError(t, err)
	require.NotEmpty(t, deps)
	require.Subset(t, memberSources, deps)
}

func TestOldBinariesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "etcdmember-new", "")
	write(t, dir, "etcdmember-old", "")
	past := time.Now().Add(-2 * binaryLife)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "etcdmember-old"), past, past))
	removeOld(dir)
	require.FileExists(t, filepath.Join(dir, "etcdmember-new"))
	require.NoFileExists(t, filepath.Join(dir, "etcdmember-old"))
}

// localPackages lists the packages of the nested module that the member imports, as
// directories below it.
func localPackages(module string) ([]string, error) {
	const path = "github.com/eldest-io/eldest/cmd/eldest/"
	cmd := exec.Command("go", "list", "-deps", memberPackage)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for pkg := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(pkg, "github.com/eldest-io/eldest") {
			dirs = append(dirs, strings.TrimPrefix(pkg, path))
		}
	}
	return dirs, nil
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}
