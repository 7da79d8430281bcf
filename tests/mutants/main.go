package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

var (
	which   = flag.String("run", "", "only mutants whose names match this `pattern`")
	list    = flag.Bool("list", false, "list the mutants and run none")
	dry     = flag.Bool("check", false, "see whether every patch applies, every test is there and every expectation is specific, and run none")
	timeout = flag.Duration("timeout", 2*time.Minute, "how long a test may take, building it not counted")
	jobs    = flag.Int("jobs", 1, "how many mutants at a time, each in a copy of its own")
	keep    = flag.String("logs", "", "keep the output of the tests in this `directory`")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 { // without -run all mutants would run, for half an hour
		fmt.Fprintf(os.Stderr, "mutants: %q: surplus; some of them are named by -run PATTERN\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := play(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, out io.Writer) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := rootOf(here)
	if err != nil {
		return err
	}
	all, err := chosen(filepath.Join(root, "tests", "mutants"), *which)
	if err != nil {
		return err
	}
	switch {
	case *list:
		return show(out, all)
	case *dry:
		return verify(ctx, out, root, all)
	}
	fmt.Fprintf(os.Stderr, "%s; the tests of each package are built first, which takes a minute or two where nothing is in Go's cache\n", count(len(all)))
	results, err := playAll(ctx, setting{root: root, jobs: *jobs, timeout: *timeout}, all, func(r result) { line(out, r) })
	if err != nil {
		return err
	}
	return sum(out, results)
}

// chosen loads the mutants whose names match a pattern; none at all is an error.
func chosen(dir, pattern string) ([]*mutant, error) {
	want, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	all, err := load(dir)
	if err != nil {
		return nil, err
	}
	var some []*mutant
	for _, m := range all {
		if want.MatchString(m.Name) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no mutant in %s matches %q", dir, pattern)
	}
	return some, nil
}

func verify(ctx context.Context, out io.Writer, root string, all []*mutant) error {
	faults := check(ctx, root, all)
	for _, f := range faults {
		fmt.Fprintln(out, f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d of %d mutants cannot be run", len(faults), len(all))
	}
	fmt.Fprintf(out, "%d mutants: every patch applies, every test exists, every expectation is valid\n", len(all))
	return nil
}

// errAlive is what the command ends with if anything but "killed" was found.
var errAlive = errors.New("not every mutant was killed")
