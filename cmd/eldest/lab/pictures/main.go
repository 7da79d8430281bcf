package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"text/template"
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

// draw makes the pictures from the files of the repository. The keys are file names.
func draw(root string) (map[string][]byte, error) {
	lines, err := readCast(filepath.Join(root, "docs", "pictures", "demo.cast"))
	if err != nil {
		return nil, err
	}
	shown, err := choose(lines, steps)
	if err != nil {
		return nil, err
	}
	panels, measured, err := readPanels(root)
	if err != nil {
		return nil, err
	}
	demo, err := window("go run ./cmd/eldest demo", shown)
	if err != nil {
		return nil, err
	}
	costs, err := chart(panels, measured)
	return map[string][]byte{"demo.svg": demo, "costs.svg": costs}, err
}

//go:embed pictures.svg.tmpl
var source string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"number": number, "text": html.EscapeString,
	"add": func(a, b float64) float64 { return a + b },
}).Parse(source))

// number formats a length with two decimal places at most.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}
