package peertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Main is the TestMain of an adapter. The test's executable is its servers' executable, too: as
// "bench peers-server NAME ARGUMENT..." it is server, which may be nil.
func Main(m *testing.M, server peer.Main) {
	if len(os.Args) > 3 && os.Args[1] == "bench" && os.Args[2] == "peers-server" {
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := server(ctx, os.Args[4:])
		cancel()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// Start starts the servers of a system until the test ends. The test is skipped if a program is not
// installed, and fails then in CI.
func Start(t testing.TB, s peer.System, setting string) peer.Servers {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	// Not t.TempDir: a server that has a user of its own cannot reach that.
	dir, err := os.MkdirTemp("", "peertest")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	spawner, ports := offspring.NewSpawner(), &peers.Ports{}
	programs := peers.NewPrograms(spawner, os.TempDir())
	t.Cleanup(func() {
		programs.Close()
		spawner.Close()
		ports.Close()
	})
	servers, err := s.Start(etcdtest.Context(t), peer.ServerConfig{
		Setting: setting, Dir: dir, Executable: executable,
		Run: programs.Run, Ports: ports.Take,
		Died: func(err error) { t.Errorf("a server died: %v", err) },
	})
	if errors.Is(err, peer.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, servers.Close()) })
	return servers
}
