package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// patience bounds every wait of these tests.
const patience = clitest.Patience

// object is a line of JSON.
type object = clitest.Object

// givesUp in the environment is job.GiveUp of a command and of its keeper.
const givesUp = "ELDEST_TEST_GIVE_UP"

// If this binary is called by the name of the command, it is the command: tests start real processes,
// and scripts and programs find them by that name. They end with their parent. The keeper of "eldest
// run" ends with its owner, and that of --keeper after its owner.
func init() {
	if filepath.Base(os.Args[0]) != "eldest" {
		return
	}
	if os.Getenv("ELDEST_KEEPER_OF") == "" && (len(os.Args) < 2 || os.Args[1] != "run-keeper") {
		clitest.EndWithParent()
	}
	if limit, err := time.ParseDuration(os.Getenv(givesUp)); err == nil {
		job.GiveUp = limit
	}
	main()
}

func TestMain(m *testing.M) {
	// The tests wait for leases, stopped processes and timeouts far more than they compute.
	etcdtest.Parallel(20)
	testscript.Main(clean{m}, map[string]func(){"eldest": main, "witness": func() {}})
}

// adoptOrphans makes this process adopt orphans, as the first process of a container does. Elsewhere the
// kernel wakes a stopped keeper when its owner dies; here only the death signal that eldest sets does.
var adoptOrphans = func() {}

// clean runs the tests, stops the idle etcds, and fails if goroutines are left.
type clean struct{ m *testing.M }

func (c clean) Run() int {
	adoptOrphans()
	code := c.m.Run()
	for _, c := range idle.clusters {
		_ = c.Close()
	}
	if code != 0 { // tests were aborted: leaks mean nothing
		return code
	}
	if err := goleak.Find(etcdtest.Embedded...); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		return 1
	}
	return 0
}
