package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var (
	versions = flag.String("versions", "", "the `versions` to run, with commas between them; all by default")
	chosen   = flag.String("suites", "", "the `suites` to run, with commas between them; all by default")
	list     = flag.Bool("list", false, "list versions, suites and exclusions, and run nothing")
)

// errFailed is the error of a run in which a suite failed; the suite's line and output show which.
var errFailed = errors.New("a suite failed")

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "etcdversions: surplus argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcdversions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	mine, err := pick(servers, *versions, func(s server) string { return s.name })
	if err != nil {
		return err
	}
	these, err := pick(suites, *chosen, func(s suite) string { return s.name })
	if err != nil {
		return err
	}
	if *list {
		show(out, mine, these)
		return nil
	}
	root, err := rootDir()
	if err != nil {
		return err
	}
	failed := false
	for _, s := range mine {
		binary, err := s.binary(ctx)
		if err != nil {
			return fmt.Errorf("etcd %s: %w", s.name, err)
		}
		full, err := version(binary)
		if err != nil {
			return err
		}
		for _, suite := range these {
			var log bytes.Buffer
			r, err := suite.play(ctx, root, s.name, binary, &log)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Fprintf(out, "etcd %-14s %s\n", full, r)
			if !r.passed {
				failed = true
				fmt.Fprintf(out, "%s\n", log.Bytes())
			}
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// pick returns those whose names are in a list with commas, or all for "".
func pick[T any](all []T, names string, name func(T) string) ([]T, error) {
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	var picked []T
	for _, one := range all {
		if slices.Contains(wanted, name(one)) {
			picked = append(picked, one)
		}
	}
	if len(picked) != len(wanted) {
		return nil, fmt.Errorf("%q names something that does not exist; see -list", names)
	}
	return picked, nil
}

// rootDir is the directory of the repository's root, at or above the working directory.
func rootDir() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no go.work in or above %s", here)
}
