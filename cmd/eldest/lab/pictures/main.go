package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	eldest := flag.String("record", "", "the eldest command, whose demo is recorded first")
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	if err := run(*root, *eldest); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run writes the pictures; with a command to record it takes half a minute longer.
func run(root, eldest string) error {
	folder := filepath.Join(root, "docs", "pictures")
	if eldest != "" {
		if err := record(eldest, filepath.Join(folder, "demo.cast")); err != nil {
			return err
		}
	}
	pictures, err := draw(root)
	if err != nil {
		return err
	}
	for name, svg := range pictures {
		if err := os.WriteFile(filepath.Join(folder, name), svg, 0o644); err != nil { //nolint:gosec // pictures are for everybody
			return err
		}
	}
	return nil
}

// draw makes the pictures from what is in the repository, by their names.
func draw(root string) (map[string][]byte, error) {
	recording, err := os.Open(filepath.Join(root, "docs", "pictures", "demo.cast"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = recording.Close() }() // it was only read
	lines, err := readCast(recording)
	if err != nil {
		return nil, err
	}
	shown, err := choose(lines, acts)
	if err != nil {
		return nil, err
	}
	panels, measured, err := readPanels(root)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"demo.svg": window("go run ./cmd/eldest demo", shown), "costs.svg": chart(panels, measured)}, nil
}
