package docs

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A Command is the eldest command as its help describes it.
type Command struct {
	// Path is the path of the executable.
	Path string

	mu   sync.Mutex
	help map[string]string
}

// Help is the help text of a command of eldest.
func (c *Command) Help(ctx context.Context, args ...string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join(args, " ")
	if text, ok := c.help[key]; ok {
		return text, nil
	}
	out, err := exec.CommandContext(ctx, c.Path, append(slices.Clone(args), "--help")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("eldest %s --help: %w\n%s", key, err, out)
	}
	if c.help == nil {
		c.help = map[string]string{}
	}
	c.help[key] = string(out)
	return string(out), nil
}

// Commands finds commands that cannot work, in blocks, run or not, and in spans of code: the
// command, a flag of eldest, the package, the test or the script does not exist.
func (r *Repository) Commands(ctx context.Context, p *Page, blocks []marked, eldest *Command) []Fault {
	var faults []Fault
	for _, b := range blocks {
		if b.language != "sh" && b.language != "console" {
			continue
		}
		all, err := steps(b)
		if err != nil {
			faults = append(faults, p.fault(b.Line, "parse", "%v", err))
			continue
		}
		text := ""
		for _, s := range all {
			text += s.command + "\n"
		}
		for _, why := range r.script(ctx, text, eldest, len(Runs([]marked{b})) > 0) {
			faults = append(faults, p.fault(b.Line, "command", "%s", why))
		}
	}
	for _, s := range p.Spans {
		// Only commands, not text about one: `eldest run ELECTION --grace 2s`, not `eldest killed`.
		if first := strings.Fields(s.Text); len(first) < 2 || first[0] != "eldest" && first[0] != "go" || strings.ContainsAny(s.Text, "…") {
			continue
		}
		for _, why := range r.script(ctx, s.Text, eldest, false) {
			if !strings.Contains(why, noCommand) {
				faults = append(faults, p.fault(s.Line, "command", "%s", why))
			}
		}
	}
	return faults
}

// script returns what cannot work in a script or, if it is to be run, what must not be in it.
func (r *Repository) script(ctx context.Context, text string, eldest *Command, run bool) []string {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return []string{"it is not valid shell: " + err.Error()}
	}
	var faults []string
	if run {
		faults = harmless(file)
	}
	folder := "."
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var args []string
		for _, word := range call.Args {
			literal, err := expand.Literal(&expand.Config{}, word) // with a nil Config all would share one
			if err != nil {
				literal = "$"
			}
			args = append(args, literal)
		}
		if args[0] == "cd" && len(args) == 2 {
			folder = path.Join(folder, args[1])
		}
		if why := r.command(ctx, folder, args, eldest); why != "" {
			faults = append(faults, fmt.Sprintf("%s: %s", strings.Join(args, " "), why))
		}
		return true
	})
	return faults
}

func (r *Repository) command(ctx context.Context, folder string, args []string, eldest *Command) string {
	switch {
	case args[0] == "eldest":
		return eldest.accepts(ctx, args[1:])
	case args[0] == "go" && len(args) > 2 && args[1] == "run" && args[2] == "./cmd/eldest":
		return eldest.accepts(ctx, args[3:])
	case args[0] == "go" && len(args) > 1 && slices.Contains([]string{"run", "install", "build", "vet", "test", "doc"}, args[1]):
		return r.goCommand(folder, args[1:])
	case strings.Contains(args[0], "/") && !strings.HasPrefix(args[0], "/") && !strings.Contains(args[0], "$"):
		if found, isFolder := r.has(path.Join(folder, args[0])); !found || isFolder {
			return "there is no such script"
		}
	}
	return ""
}

const noCommand = "eldest has no command "

var flagInHelp = regexp.MustCompile(`(?m)^\s+(?:(-\w), )?(--[\w-]+)`)

// accepts returns why eldest would not accept these words: only the command and the names of flags
// are checked.
func (c *Command) accepts(ctx context.Context, args []string) string {
	var names []string
	help, err := c.Help(ctx)
	for _, arg := range args {
		if err != nil || strings.HasPrefix(arg, "-") {
			break
		}
		if !strings.Contains(help, " [command] --help") {
			break // the next words are its arguments
		}
		if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(arg) + ` +\S`).MatchString(help) {
			return noCommand + arg
		}
		names = append(names, arg)
		help, err = c.Help(ctx, names...)
	}
	if err != nil {
		return err.Error()
	}
	for _, arg := range args {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		if len(name) < 2 || name[0] != '-' || name[1] >= '0' && name[1] <= '9' {
			continue
		}
		if !slices.ContainsFunc(flagInHelp.FindAllStringSubmatch(help, -1), func(m []string) bool { return m[1] == name || m[2] == name }) {
			return fmt.Sprintf("eldest %s has no flag %s", strings.Join(names, " "), name)
		}
	}
	return ""
}
