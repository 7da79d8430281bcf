package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

// workerEndpoints is set when this binary runs as a worker: the endpoints of its site.
const workerEndpoints = "ELDEST_BENCH_TEST_WORKER"

func TestMain(m *testing.M) {
	keeper.Serve(func(_ context.Context, with []byte) (*clientv3.Client, error) {
		return clientv3.New(siteAt(strings.Split(string(with), ",")).Client)
	})
	switch endpoints := os.Getenv(workerEndpoints); endpoints {
	case "":
	case "fail":
		fmt.Fprintln(os.Stderr, "as it was told")
		os.Exit(3)
	default:
		contender.KeeperWith = []byte(endpoints)
		if err := Work(context.Background(), siteAt(strings.Split(endpoints, ",")), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most of the tests wait for leases and use no processor meanwhile.
	etcdtest.Parallel(24)
	etcdtest.Main(m)
}

func siteOf(c *etcdtest.Cluster) Site {
	s := siteAt(c.Endpoints())
	s.Members = c.Size()
	return s
}

// siteAt is a site whose workers are this binary.
func siteAt(endpoints []string) Site {
	return Site{Client: clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()}, Worker: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		// With the race detector each process would wait a second at its end.
		cmd.Env = append(os.Environ(), workerEndpoints+"="+strings.Join(endpoints, ","), "GORACE=atexit_sleep_ms=0")
		return cmd
	}}
}

// testTime limits each wait of a test.
const testTime = 2 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

// testRun is a run in which a test does the measuring.
func testRun(t *testing.T, contenders ...string) *run {
	r, err := newRun(testContext(t), siteOf(etcdtest.Shared(t)), Options{Contenders: contenders})
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// awaitQueued waits until so many candidates are queued in an election.
func awaitQueued(t *testing.T, election string, n int64) {
	t.Helper()
	client := etcdtest.Shared(t).Client(t)
	require.Eventually(t, func() bool {
		got, err := client.Get(t.Context(), election+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && got.Count == n
	}, testTime, time.Millisecond)
}
