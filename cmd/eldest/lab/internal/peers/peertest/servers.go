package peertest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchsite"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Main is the TestMain of an adapter. The test's executable is its servers' executable, too: as
// "bench peers-server NAME ARGUMENT..." it is server, which may be nil.
func Main(m *testing.M, server peer.Main) {
	if len(os.Args) > 3 && os.Args[1] == "bench" && os.Args[2] == "peers-server" {
		fmt.Fprintln(os.Stderr, server(os.Args[4:]))
		os.Exit(1)
	}
	etcdtest.Parallel(8) // they mostly wait
	goleak.VerifyTestMain(m)
}

// Start starts the servers of a system until the test ends. The test is skipped if a program is not
// installed, and fails then in CI.
func Start(t testing.TB, s peer.System, setting string) *peer.Servers {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	// In memory, if possible. Not t.TempDir: a server that has a user of its own cannot reach that.
	storage, err := benchsite.Settle("", 1<<30)
	require.NoError(t, err)
	dir, err := os.MkdirTemp(storage.Dir, "peertest")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	spawner, died := offspring.NewSpawner(), func(err error) { t.Errorf("a server died: %v", err) }
	fleet := peer.NewFleet(spawner, died)
	t.Cleanup(func() {
		fleet.Close()
		spawner.Close()
	})
	servers, err := s.Start(etcdtest.Context(t), peer.ServerConfig{
		Setting: setting, Dir: dir, Executable: executable, Fleet: fleet, Died: died,
	})
	if errors.Is(err, peer.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED: %v", err)
	}
	require.NoError(t, err)
	if servers.Close != nil {
		t.Cleanup(func() { require.NoError(t, servers.Close()) })
	}
	return servers
}
