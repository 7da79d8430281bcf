package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// A step is a command of a console and its output.
type step struct {
	line    int
	command string
	output  []string
}

// steps reads a block of a console, or of a shell, which is one step that ends at its first
// failure.
func steps(b marked) (all []step, err error) {
	if b.language == "sh" {
		return []step{{line: b.Line, command: "(set -e\n" + b.Text + ")"}}, nil
	}
	number := b.Line - 1
	for line := range strings.Lines(b.Text) {
		number++
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, step{line: number, command: command})
		case len(all) == 0:
			return nil, fmt.Errorf("a console begins with \"$ \" and a command")
		case isMore && len(all[len(all)-1].output) == 0:
			all[len(all)-1].command += "\n" + more
		default:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("an empty console")
	}
	return all, nil
}

// shapes are the parts of the output that differ from run to run, the longer ones first.
var shapes = []struct {
	pattern *regexp.Regexp
	shape   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?`), "<time>"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|ms|s|m|h))+\b`), "<duration>"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ns|µs|ms|s)\b`), "<duration>"},
	{regexp.MustCompile(`\b[0-9a-f]*(\d[a-f]|[a-f]\d)[0-9a-f]{6,}\b`), "<hex>"},
	{regexp.MustCompile(`\b\d{9,}\b`), "<hex>"}, // an ID may contain no letter
	{regexp.MustCompile(`\b\d+(\.\d+)?\b`), "<number>"},
	{regexp.MustCompile(`[ \t]+`), " "}, // the width of columns depends on their content
	{regexp.MustCompile(`[-─]{3,}`), "---"},
}

func shape(line string) string {
	for _, s := range shapes {
		line = s.pattern.ReplaceAllString(line, s.shape)
	}
	return strings.TrimSpace(line)
}

// differs returns how the output differs from the page, or "".
func differs(shown, printed []string) string {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range shown {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		for i, part := range strings.Split(shape(line), "…") {
			if i > 0 {
				pattern.WriteString(`.*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString(`\z`)
	var text strings.Builder
	for _, line := range printed {
		text.WriteString(shape(line) + "\n")
	}
	if regexp.MustCompile(pattern.String()).MatchString(text.String()) {
		return ""
	}
	return fmt.Sprintf("printed\n\t%s\nwhere the page has\n\t%s", strings.Join(printed, "\n\t"), strings.Join(shown, "\n\t"))
}
