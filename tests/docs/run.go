package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// blockTime is how long a block may take. It allows for a machine that is ten times slower than
// usual.
const blockTime = time.Minute

// A Stage is the environment in which the commands of one page run.
type Stage struct {
	// Bin contains the eldest command; Tmp is the page's own directory.
	Bin, Tmp string
	// Endpoints are those of the page's own etcd.
	Endpoints []string
}

// prelude maps the spellings of a command to one, and skips the tests in a page.
const prelude = `go() {
	case "$1 $2" in
	"run ./cmd/eldest") shift 2; eldest "$@" ;;
	"test "*|"install "*) ;;
	*) command go "$@" ;;
	esac
}
`

// between separates the outputs of the commands of a console.
const between = "\x1e"

// Runs returns the blocks of a page that are to be run.
func Runs(blocks []marked) []marked {
	var all []marked
	for _, b := range blocks {
		if (b.language == "sh" || b.language == "console") && b.notRun == "" && b.file == "" {
			all = append(all, b)
		}
	}
	return all
}

// Run runs a page's blocks in their order, each until it ends, for a minute at most, or until ctx
// ends, and finds those whose result differs from the page.
func (r *Repository) Run(ctx context.Context, p *Page, blocks []marked, stage Stage) []Fault {
	var faults []Fault
	for _, b := range Runs(blocks) {
		all, err := steps(b)
		if err != nil {
			faults = append(faults, p.fault(b.Line, "run", "%v", err))
			continue
		}
		faults = append(faults, r.steps(ctx, p, b, all, stage)...)
	}
	return faults
}

func (r *Repository) steps(ctx context.Context, p *Page, b marked, all []step, stage Stage) (faults []Fault) {
	var script strings.Builder
	for _, s := range all {
		script.WriteString(s.command + "\nprintf '" + `\036%d\036` + "' $?\n")
	}
	out, err := r.bash(ctx, script.String(), stage)
	parts := strings.Split(out, between)
	for i, s := range all {
		if 2*i+1 >= len(parts) {
			return append(faults, p.fault(s.line, "run", "it did not end (%v):\n%s", err, parts[2*i]))
		}
		printed := strings.Split(strings.TrimSuffix(parts[2*i], "\n"), "\n")
		if parts[2*i] == "" {
			printed = nil
		}
		if parts[2*i+1] != "0" {
			faults = append(faults, p.fault(s.line, "run", "exit code %s:\n%s", parts[2*i+1], parts[2*i]))
		} else if b.language == "console" {
			if why := differs(s.output, printed); why != "" {
				faults = append(faults, p.fault(s.line, "run", "%s", why))
			}
		}
	}
	return faults
}

// bash runs a script, and kills all processes that it leaves. It returns the output; the error is
// that the script was killed, or could not be started.
func (r *Repository) bash(ctx context.Context, script string, stage Stage) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTime)
	defer cancel()
	// A file and not a pipe: a process that is left in the background would keep a pipe open.
	log, err := os.CreateTemp(stage.Tmp, "out-")
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }() // it is read again by its name
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+script)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = r.Root, log, log, groupAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.Env = append(os.Environ(),
		"PATH="+stage.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"ELDEST_ENDPOINTS="+strings.Join(stage.Endpoints, ","), "TMP="+stage.Tmp, "TMPDIR="+stage.Tmp,
		// The machine may be busy.
		"ELDEST_DIAL_TIMEOUT=30s", "ELDEST_COMMAND_TIMEOUT=30s")
	if err := cmd.Start(); err != nil {
		return "", err
	}
	_ = cmd.Wait()                 // the output contains how the script ended
	_ = killGroup(cmd.Process.Pid) // no process may be left
	if ctx.Err() != nil {
		err = fmt.Errorf("ended from outside: %w", ctx.Err())
	}
	out, readErr := os.ReadFile(log.Name())
	return string(out), errors.Join(err, readErr)
}
