package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchpage"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// benchPapers is where a benchmark is reported: tables on stdout, and files.
type benchPapers struct {
	cmd  *cobra.Command
	json *paper // nil if nobody wants it
	html *paper
	runs []figures.Run
}

// openPapers opens the files, so that one which cannot be written is refused before
// anything is measured. The caller must close the papers.
func openPapers(cmd *cobra.Command, f *benchFlags) (*benchPapers, error) {
	p := &benchPapers{cmd: cmd}
	var err error
	if p.json, err = openPaper("--json", f.json, cmd.OutOrStdout()); err != nil {
		return nil, err
	}
	if p.html, err = openPaper("--html", f.html, cmd.OutOrStdout()); err != nil {
		return nil, errors.Join(err, p.json.close())
	}
	return p, nil
}

// add reports more runs. Files are written anew each time: a long series that is killed
// leaves what it had.
func (p *benchPapers) add(runs ...figures.Run) error {
	told := len(p.runs)
	for i := range runs {
		plain.Texts(&runs[i]) // the texts of errors are anybody's
	}
	p.runs = append(p.runs, runs...)
	// The files first: whoever reads stdout may have gone away.
	err := errors.Join(
		p.json.write(func(w io.Writer) error { return figures.Write(w, p.runs) }),
		p.html.write(func(w io.Writer) error { return benchpage.Write(w, p.runs) }),
	)
	if err != nil || p.json.isStdout() || p.html.isStdout() {
		return err
	}
	out := p.cmd.OutOrStdout()
	for i := told; i < len(p.runs); i++ {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := figures.Table(out, &p.runs[i], styleFor(p.cmd)); err != nil {
			return err
		}
	}
	return nil
}

// close writes to stdout what belongs there, once, and ends the files.
func (p *benchPapers) close() error { return errors.Join(p.json.close(), p.html.close()) }

// addJSONFile gives a command a --json that names a file; that of all commands is a switch.
func addJSONFile(fl *pflag.FlagSet, path *string) {
	fl.StringVar(path, "json", "", "write the report as JSON to `FILE`, or to stdout instead of the table")
	fl.Lookup("json").NoOptDefVal = toStdout
}

// settleJSONFile takes what stands without a flag for the file of a --json that was given
// without "=". by is which flags name files.
func settleJSONFile(fl *pflag.FlagSet, path *string, args []string, by string) error {
	switch {
	case len(args) == 1 && fl.Changed("json") && *path == toStdout:
		*path = args[0]
	case len(args) == 1:
		return cli.Usagef("%q: surplus; a file is named by %s", args[0], by)
	case fl.Changed("json") && *path == "":
		return cli.Usagef("--json=: names no file; use --json FILE, or --json alone for stdout")
	}
	return nil
}

// paper is a file that is written as a whole, again and again. A nil one takes nothing.
type paper struct {
	file *os.File // nil for stdout
	// made says that there was no such file before, so that an empty one is removed.
	made    bool
	written bool
	// stdout, for what goes there, gets the last version, at the end.
	stdout io.Writer
	last   bytes.Buffer
}

func openPaper(flag, path string, stdout io.Writer) (*paper, error) {
	switch path {
	case "":
		return nil, nil // nobody wants one
	case toStdout:
		return &paper{stdout: stdout}, nil
	}
	_, err := os.Stat(path)
	p := &paper{made: os.IsNotExist(err)}
	if p.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return nil, cli.Usagef("%s: %w", flag, err)
	}
	return p, nil
}

func (p *paper) isStdout() bool { return p != nil && p.file == nil }

// write replaces what was written before.
func (p *paper) write(render func(io.Writer) error) error {
	if p == nil {
		return nil
	}
	p.last.Reset()
	if err := render(&p.last); err != nil || p.file == nil {
		return err
	}
	p.written = true
	if info, err := p.file.Stat(); err == nil && info.Mode().IsRegular() {
		// A pipe or a terminal has no beginning to go back to.
		if err := p.file.Truncate(0); err != nil {
			return err
		}
		if _, err := p.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	_, err := p.file.Write(p.last.Bytes())
	return err
}

func (p *paper) close() error {
	switch {
	case p == nil:
		return nil
	case p.file == nil:
		_, err := p.stdout.Write(p.last.Bytes())
		return err
	case p.made && !p.written:
		return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
	}
	return p.file.Close()
}
