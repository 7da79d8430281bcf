package main

import (
	"fmt"
	"io"
	"time"
)

// String is the result as a line of the output, followed by what was left out and why.
func (r result) String() string {
	line := r.suite + ": FAILED"
	switch {
	case r.passed && r.took == 0:
		line = r.suite + ": left out"
	case r.passed:
		line = fmt.Sprintf("%s: passed (%v)", r.suite, r.took.Round(time.Second))
	}
	for _, e := range r.left {
		line += "\n\t" + e.String()
	}
	return line
}

// String is the exclusion as a line.
func (e exclusion) String() string {
	what := e.suite
	if e.test != "" {
		what += " " + e.test
	}
	return fmt.Sprintf("left out with %s: %s: %s", e.version, what, e.reason)
}

// show lists what a run would do.
func show(out io.Writer, mine []server, these []suite) {
	for _, s := range mine {
		from := "the module proxy, " + s.release
		if s.release == "" {
			from = "Debian's package etcd-server"
		}
		fmt.Fprintf(out, "etcd %s: %s\n", s.name, from)
	}
	for _, s := range these {
		fmt.Fprintf(out, "suite %s\n", s.name)
	}
	for _, e := range exclusions {
		fmt.Fprintln(out, e)
	}
}
