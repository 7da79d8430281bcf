package etcdtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// memberPackage is the command that runs one member, inside the nested module. A change in
// memberSources makes a new build necessary.
const memberPackage = "./internal/etcdmember"

var memberSources = []string{"go.mod", "go.sum", "internal/etcdmember", "internal/memberproc", "internal/devcluster", "internal/gate"}

// binaries that no test has used for this long are removed.
const binaryLife = 24 * time.Hour

// memberBinary builds the member's binary, once per process, and returns its path.
var memberBinary = sync.OnceValues(func() (string, error) {
	module, err := nestedModule()
	if err != nil {
		return "", err
	}
	key, err := sourceKey(module)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "etcdmember-"+key)
	// Many packages are tested at the same time: one builds, the others wait.
	unlock, err := lockFile(filepath.Join(dir, "build.flock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		return path, os.Chtimes(path, now, now)
	}
	removeOld(dir)
	return path, build(module, path)
})

// build compiles into a temporary name first, so that a build that is interrupted
// leaves nothing that looks like a binary.
func build(module, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-o", tmp, memberPackage)
	cmd.Dir = module
	// The nested module's go.mod alone decides what is built, not a workspace around it or the
	// flags of the test run.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.Remove(tmp) // there may be none
		return fmt.Errorf("etcdtest: building the member in %s: %w\n%s", module, err, out)
	}
	return os.Rename(tmp, path)
}

// nestedModule finds cmd/eldest: from the path of this source file or, in a binary that was built
// without paths, upwards from the working directory.
func nestedModule() (string, error) {
	starts := make([]string, 0, 2)
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, dir := range starts {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			module := filepath.Join(dir, "cmd", "eldest")
			if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
				return module, nil
			}
		}
	}
	return "", fmt.Errorf("etcdtest: no cmd/eldest above any of %q", starts)
}

// sourceKey hashes everything that the binary is built from: the sources, the versions of its
// dependencies (go.mod, go.sum) and the toolchain. Reading them takes a millisecond; asking go
// build whether anything changed takes a second.
func sourceKey(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, src := range memberSources {
		err := filepath.WalkDir(filepath.Join(module, src), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rel, err := filepath.Rel(module, path)
			if err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(h, filepath.ToSlash(rel))
			_, err = io.Copy(h, f)
			return errors.Join(err, f.Close())
		})
		if err != nil {
			return "", fmt.Errorf("etcdtest: reading the member's sources: %w", err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// cacheDir is where binaries are kept between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // there is no home directory, as in some containers
	}
	dir := filepath.Join(base, "eldest-etcdtest")
	return dir, os.MkdirAll(dir, 0o755)
}

// removeOld removes binaries that no test has used for binaryLife. The caller holds the lock.
func removeOld(dir string) {
	old, err := filepath.Glob(filepath.Join(dir, "etcdmember-*"))
	if err != nil {
		return
	}
	old = slices.DeleteFunc(old, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || time.Since(info.ModTime()) < binaryLife
	})
	for _, path := range old {
		_ = os.Remove(path) // the next build tries again
	}
}
