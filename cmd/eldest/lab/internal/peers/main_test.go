package peers_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

// TestMain makes this executable everything that a run starts of its own program.
func TestMain(m *testing.M) {
	keeper.Serve(connect.Kept)
	if is, err := child(os.Args[1:]); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	etcdtest.Parallel(8) // they mostly wait
	goleak.VerifyTestMain(m)
}

// child runs a process of a run, if the arguments name one.
func child(args []string) (is bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	begins := func(words ...string) bool {
		return len(args) >= len(words) && slices.Equal(args[:len(words)], words)
	}
	switch {
	case begins(restless) && len(args) > 1:
		return true, runRestless(ctx, args[1])
	case begins("etcd", "member"):
		return true, memberproc.Run(ctx, args[2:], os.Stdin, os.Stdout)
	case begins("bench", "peers-participant"):
		return true, peers.Participate(ctx, append(systems.All(), fakes...), os.Stdin, os.Stdout)
	case begins("bench", "peers-server") && len(args) > 2:
		serve, ok := systems.Mains[args[2]]
		if !ok {
			return true, fmt.Errorf("no server %q", args[2])
		}
		return true, serve(args[3:])
	}
	return false, nil
}
