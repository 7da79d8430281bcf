package clitest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
)

// Line runs a command line to its end.
func Line(t testing.TB, root *cobra.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Execute(t.Context(), root, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

// Build builds the command "eldest" from this repository and returns its path. root is the
// directory of the command, dir where the result is put.
func Build(root, dir string, flags ...string) (path string, err error) {
	path = dir + "/eldest"
	// Without debug information, which takes a good part of the linker's time.
	out, err := exec.Command("go", append(append([]string{"build", "-ldflags=-w", "-o", path}, flags...), root)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building eldest: %w: %s", err, out)
	}
	return path, nil
}

// Hostile has one of each kind of text that controls a terminal or misleads a reader: it clears the
// screen, sets the title, changes the direction of what follows, hides a letter, has an 8-bit control
// sequence in UTF-8 and a raw one, deletes, and returns to the beginning of the line.
const Hostile = "x\x1b[2J\x1b]0;owned\x07\u202ecod.exe\u200b\u009b31m\x9b31m\x7f\rnobody\u2028"

// RequireTame requires that nothing in an output controls a terminal.
func RequireTame(t testing.TB, where, output string) {
	t.Helper()
	for i, r := range output {
		require.True(t, r == '\n' || r == '\t' || strconv.IsPrint(r), "%s: %q in %q", where, r, output[max(0, i-40):min(len(output), i+40)])
	}
	require.True(t, len(output) == len(strings.ToValidUTF8(output, "")), "%s: %q is not UTF-8", where, output)
}
