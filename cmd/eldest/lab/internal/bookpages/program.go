package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/capture"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// limit bounds a program's run, and the start of its etcd.
const limit = 2 * time.Minute

// build builds all programs of the book, under the names of their directories.
func build(ctx context.Context, root, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, "./examples/book/...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building examples/book: %w\n%s", err, out)
	}
	return nil
}

// abreast is how many programs run at a time. Most of the time they wait.
const abreast = 3

// traceAll runs programs, each on its own etcd.
func traceAll(ctx context.Context, bin string, names []string) ([][]transcript.Entry, error) {
	traces, errs := make([][]transcript.Entry, len(names)), make([]error, len(names))
	turns := make(chan struct{}, abreast)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if traces[i], errs[i] = trace(ctx, filepath.Join(bin, name)); errs[i] != nil {
				errs[i] = fmt.Errorf("examples/book/%s: %w", name, errs[i])
			}
		})
	}
	wg.Wait()
	return traces, errors.Join(errs...)
}

// trace runs a program on its own etcd, and returns the recorded messages.
func trace(ctx context.Context, program string) ([]transcript.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := capture.Start(ctx, capture.Config{})
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	code, err := c.Run(ctx, capture.Program{Args: []string{program}, Out: &said, Err: &said})
	messages, closed := c.Close()
	switch {
	case err != nil || closed != nil:
		return nil, errors.Join(err, closed)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w; its output:\n%s", context.Cause(ctx), said.Bytes())
	case code != 0:
		return nil, fmt.Errorf("exit code %d; its output:\n%s", code, said.Bytes())
	case len(messages) == 0:
		return nil, errors.New("it sent no request to etcd at ELDEST_ENDPOINTS")
	}
	return transcript.Normalise(messages), nil
}
