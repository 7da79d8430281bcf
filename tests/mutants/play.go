package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// result is the result of one mutant.
type result struct {
	*mutant
	verdict verdict
	took    time.Duration // until the test failed, building it not counted
	why     string
}

// patience is how long a test waits for a condition, if it uses ELDEST_PATIENCE.
const patience = 15 * time.Second

// player runs tests in one tree.
type player struct {
	tree    tree
	bin     string // the directory of the test binaries
	timeout time.Duration
}

// play runs the test of some mutants on the unchanged code, and, if it passes, with each of them.
func (p *player) play(ctx context.Context, same []*mutant, tell func(result)) {
	healthy, why, _ := p.test(ctx, same[0].proof, "as it is")
	for _, m := range same {
		switch healthy {
		case survived:
			tell(p.mutated(ctx, m))
		case failed:
			tell(result{mutant: m, verdict: unhealthy, why: shorten(strings.Join(why, " | "))})
		default:
			tell(result{mutant: m, verdict: healthy, why: "without the mutant. " + shorten(strings.Join(why, " | "))})
		}
	}
}

// mutated applies one mutant and runs its test.
func (p *player) mutated(ctx context.Context, m *mutant) (r result) {
	r.mutant = m
	restore, err := p.tree.mutate(ctx, m)
	defer func() {
		if err := restore(); err != nil {
			r.verdict, r.why = broken, fmt.Sprintf("restoring: %v", err)
		}
	}()
	if err != nil {
		r.verdict, r.why = stale, oneLine(err.Error())
		return r
	}
	v, why, took := p.test(ctx, m.proof, m.Name)
	r.verdict, r.why = m.of(v, why)
	r.took = took
	return r
}

// test builds and runs one test on the tree as it is at that time.
func (p *player) test(ctx context.Context, what proof, name string) (verdict, []string, time.Duration) {
	bin := filepath.Join(p.bin, "mutant.test")
	// Without paths, so that build results for one copy of the tree can be used for the next.
	args := []string{"test", "-c", "-vet=off", "-trimpath", "-o", bin}
	if what.Race {
		args = append(args, "-race")
	}
	out, _, err := run(ctx, p.tree.dir, 10*time.Minute, "go", append(args, "./"+what.Package)...)
	if ctx.Err() != nil {
		return broken, []string{"interrupted"}, 0
	}
	if err != nil {
		return unbuilt, []string{oneLine(string(out))}, 0
	}
	if _, err := os.Stat(bin); err != nil {
		return absent, []string{"the package has no tests"}, 0
	}
	defer func() { _ = os.Remove(bin) }()
	begin := time.Now()
	// Subtests, most of which wait until their timeouts, run in parallel.
	out, late, err := run(ctx, filepath.Join(p.tree.dir, what.Package), p.timeout, bin, "-test.v", "-test.failfast", "-test.parallel=16",
		"-test.run="+what.pattern(), "-test.count="+strconv.Itoa(what.Count), "-test.timeout="+p.timeout.String())
	took := time.Since(begin)
	if ctx.Err() != nil {
		return broken, []string{"interrupted"}, took
	}
	var exit *exec.ExitError
	if err != nil && !late && !errors.As(err, &exit) {
		return broken, []string{err.Error()}, took
	}
	v, why := judge(what, string(out), err == nil, late)
	if *keep != "" {
		_ = os.WriteFile(filepath.Join(*keep, name+"-"+what.top()+".log"), out, 0o644)
	}
	return v, why, took
}

// run runs a program in a directory. When the time is up it kills the program and all processes
// that it has started.
func run(ctx context.Context, dir string, limit time.Duration, name string, args ...string) (out []byte, late bool, err error) {
	// The program's own limit, if it has one, comes first and gives a better report.
	bounded, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(bounded, name, args...)
	cmd.Dir = dir
	// Most of these tests fail after a wait, which the first variable shortens. With the second one they run all
	// cases of which an ordinary run has a share.
	cmd.Env = append(os.Environ(), "PWD="+dir, "ELDEST_PATIENCE="+patience.String(), "ELDEST_ALL=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err = cmd.CombinedOutput()
	return out, bounded.Err() != nil && ctx.Err() == nil, err
}
