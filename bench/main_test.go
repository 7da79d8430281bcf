package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

// workerEndpoints is set where this binary is to be a worker: the endpoints of its
// site.
const workerEndpoints = "ELDEST_BENCH_TEST_WORKER"

func TestMain(m *testing.M) {
	keeper.Serve(func(_ context.Context, with []byte) (*clientv3.Client, error) {
		return clientv3.New(siteAt(strings.Split(string(with), ",")).Client)
	})
	if endpoints := os.Getenv(workerEndpoints); endpoints != "" {
		contender.KeeperWith = []byte(endpoints)
		if err := Work(context.Background(), siteAt(strings.Split(endpoints, ",")), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most of them wait for leases, and use nothing meanwhile.
	etcdtest.Parallel(16)
	etcdtest.Main(m)
}

// siteAt is a site whose workers are this binary once more.
func siteAt(endpoints []string) Site {
	return Site{
		Client: clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()},
		Spawn: func(context.Context) (*Spawned, error) {
			cmd := exec.Command(os.Args[0])
			// The race detector would have each wait a second at its end.
			cmd.Env = append(os.Environ(), workerEndpoints+"="+strings.Join(endpoints, ","), "GORACE=atexit_sleep_ms=0")
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				return nil, err
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				return nil, err
			}
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			return &Spawned{In: in, Out: out, Kill: func() error {
				if cmd.ProcessState == nil {
					_ = cmd.Process.Kill()
					_ = cmd.Wait() // it was killed, or has ended by itself
				}
				return nil
			}}, nil
		},
	}
}
