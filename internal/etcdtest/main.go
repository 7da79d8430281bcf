package etcdtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared is the one-member cluster of this test binary, started by its first user.
var shared struct {
	sync.Mutex
	cluster *Cluster
	err     error
}

// Shared returns a cluster of one member that all tests of the package share. The first call starts
// it and Main closes it. Tests must use election names of their own on it and must not compact it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.cluster, shared.err = New(ctx, Config{})
	}
	if shared.err != nil {
		t.Fatalf("starting the shared etcd: %v", shared.err)
	}
	c := shared.cluster
	t.Cleanup(func() { c.showLogs(t) })
	return c
}

// Embedded are the goroutines that etcd members inside the tests' own process leave. Both ends of
// the HTTP connections between such members are in that process; when a member stops, its idle
// connections end only by their time-outs of seconds.
var Embedded = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
}

// Parallel sets how many tests of the package run in parallel, unless -parallel, which is read
// later, sets another number: tests with an etcd wait most of the time, and not for a processor.
// Call it in TestMain.
func Parallel(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		fmt.Fprintf(os.Stderr, "etcdtest: %v\n", err)
		os.Exit(1)
	}
}

// Main runs a package's tests, closes the shared cluster, fails if any goroutine is
// left, and ends the process with the tests' exit code. Use it as TestMain:
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//
// allow adds goroutines that the package's tests may leave. Eight tests run in parallel, unless
// -parallel or the package has set another number before.
func Main(m *testing.M, allow ...goleak.Option) {
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		Parallel(8)
	}
	code := m.Run()
	shared.Lock()
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "etcdtest: closing the shared etcd: %v\n", err)
			code = max(code, 1)
		}
	}
	shared.Unlock()
	// After a failed run leaks prove nothing: tests were aborted.
	if code == 0 {
		if err := goleak.Find(allow...); err != nil {
			fmt.Fprintf(os.Stderr, "etcdtest: goroutines are left: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
