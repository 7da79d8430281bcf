package explore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/explore"
	"github.com/eldest-io/eldest/internal/core"
)

// Scripts: what comes of a list of moves. testdata/protocol has the ordinary ones and each
// rule; testdata/model has the counter-examples of docs/model, in which the code does what
// is right, and the same with the rule taken out. -rewrite writes what is found.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l := explore.Limits{Candidates: 2, Calls: 100, Faults: 100, Deletions: 100, Ends: 100}
			if d.HasArg("candidates") {
				d.ScanArgs(t, "candidates", &l.Candidates)
			}
			step := explore.Stepper(core.Step)
			if d.HasArg("without") {
				var rule string
				d.ScanArgs(t, "without", &rule)
				require.Contains(t, broken, rule)
				step = broken[rule]
			}
			require.Equal(t, "moves", d.Cmd)
			said, err := explore.Play(l, step, strings.Split(strings.TrimSpace(d.Input), "\n"))
			var violation *explore.ViolationError
			if errors.As(err, &violation) {
				return said + violation.Err.Error() + "\n"
			}
			require.NoError(t, err, "%s\n%s", d.Pos, said)
			return said
		})
	})
}
