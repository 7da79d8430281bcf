package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// patience bounds builds: it is much longer than they take.
const patience = 10 * time.Minute

var tree = sync.OnceValues(func() (*Repository, error) { return Open("../..") })

var code = sync.OnceValues(func() (*Code, error) {
	r, err := tree()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return LoadCode(ctx, r)
})

// bin is a directory for binaries; TestMain makes and removes it.
var bin string

var eldest = sync.OnceValues(func() (*Command, error) {
	path := filepath.Join(bin, "eldest")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", path, ".")
	build.Dir = "../../cmd/eldest"
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building eldest: %w\n%s", err, out)
	}
	return &Command{Path: path}, nil
})

func TestMain(m *testing.M) { os.Exit(all(m)) }

func all(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "eldest-docs-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }() // an error does not matter: the directory is temporary
		bin = dir
		etcdtest.Parallel(8) // pages that are run mostly wait
		if code = m.Run(); code != 0 {
			return code
		}
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Every page of the repository fulfils the requirements of docs/README.md.
func TestPages(t *testing.T) {
	t.Parallel()
	built := etcdtest.Go(func() error { return etcdtest.Err(eldest()) }) // while the code is loaded
	r, err := tree()
	require.NoError(t, err)
	require.Greater(t, len(r.Pages), 25, "the pages are not found")
	code, err := code()
	require.NoError(t, err)
	require.NoError(t, <-built)
	command, err := eldest()
	require.NoError(t, err)
	report(t, r.Reach())
	for _, p := range r.Pages {
		t.Run(p.Path, func(t *testing.T) {
			t.Parallel()
			report(t, r.all(t.Context(), p, code, command, func() Stage { return stage(t) }))
		})
	}
}

// stage makes a Stage with an etcd, which lives until the test ends.
func stage(t *testing.T) Stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	etcd, err := etcdtest.New(ctx, etcdtest.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, etcd.Close()) })
	return Stage{Bin: bin, Tmp: t.TempDir(), Endpoints: etcd.Endpoints()}
}

// all runs all checks of one page. A stage is made if a block is to be run.
func (r *Repository) all(ctx context.Context, p *Page, code *Code, command *Command, stage func() Stage) []Fault {
	blocks, faults := r.Marks(p)
	faults = append(faults, r.Links(p)...)
	faults = append(faults, r.Names(p, code)...)
	faults = append(faults, r.Excerpts(p, blocks)...)
	faults = append(faults, r.Data(p, blocks)...)
	faults = append(faults, r.Programs(p, blocks, code)...)
	commands := r.Commands(ctx, p, blocks, command)
	faults = append(faults, commands...)
	// A command with a fault could have any effect, so the page is not run.
	if len(commands) == 0 && len(Runs(blocks)) > 0 {
		faults = append(faults, r.Run(ctx, p, blocks, stage())...)
	}
	return faults
}

func report(t *testing.T, faults []Fault) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// TestExternal lists the external addresses. None is fetched: whether an address answers today
// proves nothing about the page.
func TestExternal(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	all := r.External()
	require.NotEmpty(t, all)
	for _, address := range all {
		t.Log(address)
	}
}
