package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// benchPapers are the outputs of a benchmark: tables on stdout, and files.
type benchPapers struct {
	cmd        *cobra.Command
	json, html *paper // nil if not wanted
	runs       []*bench.Report
}

// openPapers opens the files, so that a file that cannot be written is reported before anything is
// measured. The caller must close the papers.
func openPapers(cmd *cobra.Command, f *benchFlags) (*benchPapers, error) {
	p := &benchPapers{cmd: cmd}
	var err error
	if p.json, err = openPaper("--json", f.json, cmd.OutOrStdout()); err == nil {
		p.html, err = openPaper("--html", f.html, cmd.OutOrStdout())
	}
	return p, err
}

// add reports one more run. It rewrites the files each time, so a long series that is killed leaves
// the runs that were complete.
func (p *benchPapers) add(r *bench.Report) error {
	plain.Texts(r) // errors may have any text
	p.runs = append(p.runs, r)
	// The files come first, because writing to stdout fails if its reader has ended.
	err := errors.Join(
		p.json.write(func(w io.Writer) error { return figures.Write(w, p.runs) }),
		p.html.write(func(w io.Writer) error { return figures.Page(w, p.runs) }),
	)
	if err != nil || p.json.isStdout() || p.html.isStdout() {
		return err
	}
	out := p.cmd.OutOrStdout()
	if len(p.runs) > 1 {
		fmt.Fprintln(out)
	}
	return figures.Table(out, r, styleFor(p.cmd))
}

func (p *benchPapers) close() error { return errors.Join(p.json.close(), p.html.close()) }

// reportRuns reports runs that were measured before.
func reportRuns(cmd *cobra.Command, f *benchFlags, runs []*bench.Report) error {
	papers, err := openPapers(cmd, f)
	for _, r := range runs {
		if err == nil {
			err = papers.add(r)
		}
	}
	return errors.Join(err, papers.close())
}

// addJSONFile adds a --json that names a file; it replaces the boolean --json of all commands.
func addJSONFile(fl *pflag.FlagSet, path *string) {
	fl.StringVar(path, "json", "", "write the report as JSON to `FILE`, or to stdout instead of the table")
	fl.Lookup("json").NoOptDefVal = toStdout
}

// settleJSONFile uses an argument without a flag as the file of a --json that was given without
// "=". by lists the flags that name files.
func settleJSONFile(fl *pflag.FlagSet, path *string, args []string, by string) error {
	switch {
	case len(args) == 1 && fl.Changed("json") && *path == toStdout:
		*path = args[0]
	case len(args) == 1:
		return cli.Usagef("unexpected argument %q; use %s to name a file", args[0], by)
	case fl.Changed("json") && *path == "":
		return cli.Usagef("--json=: names no file; use --json FILE, or --json alone for stdout")
	}
	return nil
}

// paper is a regular file, which is rewritten completely each time, or stdout, a pipe or a
// terminal, which is written once, at the end. A nil paper discards everything.
type paper struct {
	path   string // "" if it is written once, at the end
	out    io.Writer
	stdout bool
	last   bytes.Buffer
}

func openPaper(flag, path string, stdout io.Writer) (*paper, error) {
	switch path {
	case "":
		return nil, nil
	case toStdout:
		return &paper{out: stdout, stdout: true}, nil
	}
	info, err := os.Stat(path)
	fresh := os.IsNotExist(err)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	switch {
	case err != nil:
		return nil, cli.Usagef("%s: %w", flag, err)
	case fresh:
		return &paper{path: path}, errors.Join(file.Close(), os.Remove(path))
	case !info.Mode().IsRegular():
		return &paper{out: file}, nil
	}
	return &paper{path: path}, file.Close()
}

func (p *paper) isStdout() bool { return p != nil && p.stdout }

// write replaces what was written before.
func (p *paper) write(render func(io.Writer) error) error {
	if p == nil {
		return nil
	}
	p.last.Reset()
	if err := render(&p.last); err != nil || p.path == "" {
		return err
	}
	return os.WriteFile(p.path, p.last.Bytes(), 0o644)
}

func (p *paper) close() error {
	if p == nil || p.out == nil {
		return nil
	}
	_, err := p.out.Write(p.last.Bytes())
	if file, ok := p.out.(*os.File); ok && !p.stdout {
		err = errors.Join(err, file.Close())
	}
	return err
}
