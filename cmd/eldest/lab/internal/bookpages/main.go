// Command bookpages writes the message traces that the book shows: it runs the program of each
// chapter on its own etcd, through a wiretap, and writes the recorded messages into the chapter and
// into a drawing beside it. docs/book/generate runs it.
//
//	bookpages -root DIR            writes docs/book/*.md and docs/book/*.svg
//	bookpages -root DIR -check     writes nothing, and fails if something would change
//
// The normal form sorts the messages that can be sorted (see package transcript). Not guaranteed:
// that a program with concurrent requests gives the same trace in each run; each program must
// ensure that itself.
//
// A chapter has a block, which is replaced as a whole:
//
//	<!-- trace NAME -->
//	...
//	<!-- end trace -->
//
// and shows NAME.svg. NAME is a directory of examples/book with a main.go. Each of these has
// a block in one chapter.
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
	"syscall"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	check := flag.Bool("check", false, "write nothing; fail if something would change")
	flag.Parse()
	if err := runInterruptibly(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "bookpages:", err)
		os.Exit(1)
	}
}

// runInterruptibly ends at the first signal, and leaves no process running.
func runInterruptibly(root string, check bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Stderr, root, check)
}

// errDrifted is returned if pages differ from the programs' traces.
var errDrifted = errors.New("the book is not current; run docs/book/generate")

// run makes all pages, and writes or checks them.
func run(ctx context.Context, log io.Writer, root string, check bool) error {
	b, err := open(root)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "eldest-book-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if err := build(ctx, root, bin); err != nil {
		return err
	}
	traces, err := traceAll(ctx, bin, b.names)
	if err != nil {
		return err
	}
	drifted := false
	for i, name := range b.names {
		diff, err := b.put(name, traces[i], check)
		if err == nil && diff != "" {
			// A second run is allowed: on an overloaded machine, programs renew leases that they do
			// not renew in other runs.
			fmt.Fprintf(log, "%s; retrying once: %s\n", name, diff)
			if traces[i], err = trace(ctx, filepath.Join(bin, name)); err == nil {
				diff, err = b.put(name, traces[i], check)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if diff != "" {
			fmt.Fprintf(log, "%s: %s\n", name, diff)
			drifted = true
		}
	}
	if drifted {
		return errDrifted
	}
	return b.write(check)
}
