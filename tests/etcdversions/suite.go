package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is a set of tests that runs with one server.
type suite struct {
	name string
	// packages are the packages of the tests, from the root; none for a command.
	packages string
	// flag is a flag of the tests that takes the version; "" is none.
	flag string
	// command runs what is no package of tests.
	command func(ctx context.Context, root string) (*exec.Cmd, error)
	limit   time.Duration
}

// suites are in the order in which they run.
var suites = []suite{
	{name: "acceptance", packages: ".", limit: 3 * time.Minute},
	{name: "etcdtest", packages: "./internal/etcdtest", limit: 3 * time.Minute},
	{name: "library", packages: "./lease ./election ./elector ./observe ./transfer ./txn ./keeper ./compat/concurrency", limit: 5 * time.Minute},
	{name: "regressions", packages: "./tests/regressions", limit: 5 * time.Minute},
	{name: "drop-in", packages: "./tests/dropin", limit: 4 * time.Minute},
	{name: "interop", packages: "./tests/interop", limit: 2 * time.Minute},
	{name: "chaos", command: chaos, limit: 5 * time.Minute},
	{name: "mixed", packages: "./tests/etcdversions", flag: "-rolling", limit: 5 * time.Minute},
}

// exclusion is a test, or a whole suite, that is left out with a version.
type exclusion struct {
	version, suite string
	test           string // a pattern for go test's -skip; "" is the suite
	reason         string
}

const majority = "it fails: the member list of 3.4 is not linearizable, so no majority confirms a renewal " +
	"(docs/etcd-versions.md)"

const learners = "a learner before 3.6 refuses a watch with the code Unavailable; etcd's client tries again " +
	"and reports nothing, so the test never receives the refusal that it needs"

// exclusions are all that is left out.
var exclusions = []exclusion{
	{version: "3.4", suite: "library", test: "^TestRenewedByAnEtcdLeaderThatWasStopped$", reason: majority},
	{version: "3.4", suite: "library", test: "^TestRequirement51PartitionOfEtcdsLeader$", reason: majority},
	{version: "3.4", suite: "library", test: "^TestLearnerAmongTheEndpoints$", reason: learners},
	{version: "3.5", suite: "library", test: "^TestLearnerAmongTheEndpoints$", reason: learners},
	{version: "3.4", suite: "mixed", reason: "it is where the oldest upgrade begins: see 3.5"},
}

// chaos builds the command, in the cache beside the servers, and runs a minute of faults.
func chaos(ctx context.Context, root string) (*exec.Cmd, error) {
	dir, err := cache()
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "eldest")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join(root, "cmd", "eldest")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building eldest: %w\n%s", err, out)
	}
	return exec.CommandContext(ctx, binary, "chaos", "--duration", "60s", "--seed", "1"), nil
}

// result is what a suite has shown with a version.
type result struct {
	suite  string
	passed bool
	took   time.Duration // 0: it was left out
	left   []exclusion
}

// play runs a suite with the etcd at binary, and copies its output to out. A suite that is left out as a
// whole is not run, and is passed.
func (s suite) play(ctx context.Context, root, version, binary string, out io.Writer) (result, error) {
	r := result{suite: s.name}
	var skip []string
	for _, e := range exclusions {
		if e.version == version && e.suite == s.name {
			r.left = append(r.left, e)
			skip = append(skip, e.test)
		}
	}
	if slices.Contains(skip, "") {
		r.passed = true
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cmd, err := s.make(ctx, root, version, strings.Join(skip, "|"))
	if err != nil {
		return r, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "ELDEST_ETCD="+binary)
	// The suite is a process group: go test does not end what it runs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	begun := time.Now()
	r.passed = cmd.Run() == nil
	r.took = time.Since(begun)
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left after the limit
	}
	return r, nil
}

// make returns the suite's command.
func (s suite) make(ctx context.Context, root, version, skip string) (*exec.Cmd, error) {
	if s.command != nil {
		return s.command(ctx, root)
	}
	args := []string{"test", "-count=1", "-vet=off", "-ldflags=-w", "-p", "1", "-timeout", s.limit.String()}
	if skip != "" {
		args = append(args, "-skip", skip)
	}
	args = append(args, strings.Fields(s.packages)...)
	if s.flag != "" {
		args = append(args, s.flag, version)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	return cmd, nil
}
