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

// blockTime is how long a block may take: what runs on a machine that is ten times
// slower than it should be is not at fault.
const blockTime = time.Minute

// A Stage is where the commands of one page run.
type Stage struct {
	// Bin has the eldest command; Tmp is the page's own folder.
	Bin, Tmp string
	// Endpoints are those of an etcd that the page has for itself.
	Endpoints []string
}

// prelude makes the spellings of a command one, and leaves tests to the tests.
const prelude = `go() {
	case "$1 $2" in
	"run ./cmd/eldest") shift 2; eldest "$@" ;;
	"test "*|"install "*) ;;
	*) command go "$@" ;;
	esac
}
`

// between parts what the commands of a console print.
const between = "\x1e"

// Runs are those blocks of a page that are to be run.
func Runs(blocks []marked) []marked {
	var all []marked
	for _, b := range blocks {
		if (b.language == "sh" || b.language == "console") && b.notRun == "" && b.file == "" {
			all = append(all, b)
		}
	}
	return all
}

// Run runs a page's blocks in their order, each until it ends, for a minute at most, or
// until ctx ends, and finds those that do otherwise than the page says.
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
			if why := differs(s.output, printed, b.mark); why != "" {
				faults = append(faults, p.fault(s.line, "run", "%s", why))
			}
		}
	}
	return faults
}

// bash runs a script, and ends all that it leaves. It returns what was printed; the error says that it was
// ended from outside, or not run at all.
func (r *Repository) bash(ctx context.Context, script string, stage Stage) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTime)
	defer cancel()
	// A file and no pipe: what is left in the background would keep a pipe open.
	log, err := os.CreateTemp(stage.Tmp, "out-")
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }() // it was only written to be read again
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
	_ = cmd.Wait()                 // the script says how it ended
	_ = killGroup(cmd.Process.Pid) // nothing may be left of it
	if ctx.Err() != nil {
		err = fmt.Errorf("ended from outside: %w", ctx.Err())
	}
	out, readErr := os.ReadFile(log.Name())
	return string(out), errors.Join(err, readErr)
}
