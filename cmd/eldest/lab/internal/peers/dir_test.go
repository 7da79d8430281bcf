package peers_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// restless is the argument with which this executable is a run that goes on for an hour, with data in a directory.
const restless = "restless"

// runRestless is that run.
func runRestless(ctx context.Context, dir string) error {
	endless := peer.System{Name: "endless", Start: func(ctx context.Context, _ peer.ServerConfig) (*peer.Servers, error) {
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
	_, err := peers.Run(ctx, peers.Options{Systems: []peer.System{endless}, Dir: dir})
	return err
}

// A run removes what runs that were killed have left, and nothing of runs that go on.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	o := options(t, "raft")
	o.Systems, o.Scenarios = []peer.System{hasty}, []string{peers.Handover}
	data := func(name string) []string {
		all, err := filepath.Glob(filepath.Join(o.Dir, name))
		require.NoError(t, err)
		return all
	}
	run := func() {
		_, err := peers.Run(etcdtest.Context(t), o)
		require.NoError(t, err)
	}
	require.NoError(t, os.Mkdir(filepath.Join(o.Dir, "other"), 0o700))
	cmd := exec.Command(o.Executable, restless, o.Dir)
	require.NoError(t, cmd.Start())
	killed := false
	defer func() {
		if !killed {
			_, _ = cmd.Process.Kill(), cmd.Wait()
		}
	}()
	const inside = "eldest-peers-*/*-endless"
	etcdtest.Eventually(t, func() bool { return len(data(inside)) == 1 }, "the run has begun")
	run()
	require.Len(t, data(inside), 1)

	killed = true
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Len(t, data(inside), 1)
	run()
	require.Empty(t, data("eldest-peers-*"))
	require.Len(t, data("other"), 1)
}
