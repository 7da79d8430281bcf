package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	title := flag.String("title", "", "what to write above the diagram")
	claim := flag.String("claim", "", "the assertion that the last step violates")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *title, *claim); err != nil {
		fmt.Fprintln(os.Stderr, "modeltrace:", err)
		os.Exit(1)
	}
}

// run draws one trace. It writes all of the diagram or nothing.
func run(in io.Reader, out io.Writer, title, claim string) error {
	steps, err := parse(in)
	if err != nil {
		return err
	}
	var svg bytes.Buffer
	if err := draw(&svg, steps, title, claim); err != nil {
		return err
	}
	_, err = out.Write(svg.Bytes())
	return err
}
