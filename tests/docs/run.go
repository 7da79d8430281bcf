package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
		play := r.shell
		if b.language == "console" {
			play = r.console
		}
		faults = append(faults, play(ctx, p, b, stage)...)
	}
	return faults
}

func (r *Repository) shell(ctx context.Context, p *Page, b marked, stage Stage) []Fault {
	out, code, err := r.bash(ctx, "set -e\n"+b.Text, stage)
	if err != nil || code != b.exit {
		return []Fault{p.fault(b.Line, "run", "exit code %d, not %d (%v):\n%s", code, b.exit, err, out)}
	}
	return nil
}

func (r *Repository) console(ctx context.Context, p *Page, b marked, stage Stage) []Fault {
	all, err := steps(b)
	if err != nil {
		return []Fault{p.fault(b.Line, "run", "%v", err)}
	}
	var script strings.Builder
	for _, s := range all {
		script.WriteString(s.command + "\nprintf '" + `\036%d\036` + "' $?\n")
	}
	out, _, err := r.bash(ctx, script.String(), stage)
	parts := strings.Split(out, between)
	var faults []Fault
	for i, s := range all {
		if 2*i+1 >= len(parts) {
			faults = append(faults, p.fault(s.line, "run", "it did not end (%v):\n%s", err, parts[2*i]))
			break
		}
		want := 0
		if i == len(all)-1 {
			want = b.exit
		}
		if parts[2*i+1] != strconv.Itoa(want) {
			faults = append(faults, p.fault(s.line, "run", "exit code %s, not %d:\n%s", parts[2*i+1], want, parts[2*i]))
			continue
		}
		var printed []string
		for line := range strings.Lines(parts[2*i]) {
			printed = append(printed, strings.TrimRight(line, "\n"))
		}
		if why := differs(s.output, printed, b.mark); why != "" {
			faults = append(faults, p.fault(s.line, "run", "%s", why))
		}
	}
	return faults
}

// bash runs a script, and ends whatever it leaves. It returns what was printed and the
// exit code; the error is of the running, not of the script.
func (r *Repository) bash(ctx context.Context, script string, stage Stage) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTime)
	defer cancel()
	// A file and no pipe: what is left in the background would keep a pipe open.
	log, err := os.CreateTemp(stage.Tmp, "out-")
	if err != nil {
		return "", -1, err
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
		return "", -1, err
	}
	err = cmd.Wait()
	_ = killGroup(cmd.Process.Pid) // nothing may be left of it
	out, readErr := os.ReadFile(log.Name())
	if readErr != nil {
		return "", -1, readErr
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return string(out), -1, fmt.Errorf("ended from outside: %w", ctx.Err())
	case errors.As(err, &exit):
		err = nil
	}
	return string(out), cmd.ProcessState.ExitCode(), err
}
