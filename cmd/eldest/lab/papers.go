package lab

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/page"
)

// toStdout is the file name that means stdout.
const toStdout = "-"

// paperFlags are the flags that name the outputs of a command that measures: files, "-" for stdout, "" for none.
type paperFlags struct {
	json, html, markdown string
	progress             bool
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

// addTo adds the flags that all such commands have.
func (f *paperFlags) addTo(fl *pflag.FlagSet) {
	addJSONFile(fl, &f.json)
	fl.StringVar(&f.html, "html", "", "write a page with pictures to `FILE`")
	fl.BoolVar(&f.progress, "progress", false, "report progress on stderr even if that is no terminal, a line every 15 s")
}

// settle completes and checks the flags of these names.
func (f *paperFlags) settle(fl *pflag.FlagSet, args []string, names ...string) error {
	list := "--" + strings.Join(names[:len(names)-1], ", --") + " or --" + names[len(names)-1]
	if err := settleJSONFile(fl, &f.json, args, list); err != nil {
		return err
	}
	stdout := 0
	for _, name := range names {
		switch flag := fl.Lookup(name); flag.Value.String() {
		case "":
			if flag.Changed {
				return cli.Usagef("--%s: names no file", name)
			}
		case toStdout:
			stdout++
		}
	}
	if stdout > 1 {
		return cli.Usagef("only one of %s can be written to stdout; give the others files", list)
	}
	return nil
}

// papers are the outputs of a command that measures: files, and a table on stdout unless another one is written there.
type papers struct {
	out   io.Writer
	table func(io.Writer) error
	all   []rendered
}

// rendered is a paper, and what renders the present state of a report.
type rendered struct {
	*paper
	by func(io.Writer) error
}

// renderers are those of all outputs; those without a flag are nil.
type renderers struct{ table, json, html, markdown, picture func(io.Writer) error }

// picture is the name of the picture of a Markdown page, which is beside it.
const picture = "elections.svg"

// openPapers opens the files, so that one that cannot be written is reported before anything is measured. The caller
// must close the papers.
func openPapers(cmd *cobra.Command, f paperFlags, r renderers) (*papers, error) {
	p := &papers{out: cmd.OutOrStdout(), table: r.table}
	beside := ""
	if f.markdown != "" && f.markdown != toStdout {
		beside = filepath.Join(filepath.Dir(f.markdown), picture)
	}
	for _, of := range []struct {
		flag, path string
		by         func(io.Writer) error
	}{{"--json", f.json, r.json}, {"--html", f.html, r.html}, {"--markdown", f.markdown, r.markdown}, {"--markdown", beside, r.picture}} {
		opened, err := openPaper(of.flag, of.path, p.out)
		if err != nil {
			return p, err
		}
		p.all = append(p.all, rendered{opened, of.by})
	}
	return p, nil
}

// write writes all outputs again. The files come first, because writing to stdout fails if its reader has ended.
func (p *papers) write() error {
	var err error
	stdout := false
	for _, each := range p.all {
		err = errors.Join(err, each.write(each.by))
		stdout = stdout || each.isStdout()
	}
	if err != nil || stdout {
		return err
	}
	return p.table(p.out)
}

func (p *papers) close() (err error) {
	for _, each := range p.all {
		err = errors.Join(err, each.close())
	}
	return err
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

// write replaces what was written before. A picture without anything to draw is not written.
func (p *paper) write(render func(io.Writer) error) error {
	if p == nil {
		return nil
	}
	p.last.Reset()
	err := render(&p.last)
	switch {
	case errors.Is(err, page.ErrNothing):
		return nil
	case err != nil || p.path == "":
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
