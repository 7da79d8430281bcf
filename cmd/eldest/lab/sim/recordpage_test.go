package sim

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/onrecord"
)

// What docs/faults.md says of the runs on record is what their summaries say.
func TestRecordIsThatOfItsSummaries(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/faults.md")
	require.NoError(t, err)
	page := string(text)
	for _, impl := range []string{contender.Eldest, contender.Concurrency} {
		var l ledger
		require.NoError(t, onrecord.Read("../../../..", "simulation-"+impl, &l))
		require.True(t, l.Complete)
		require.Equal(t, impl, l.Election)
		require.Regexp(t, "^[0-9a-f]{40}$", l.Revision, "a revision, and no changes")
		require.Contains(t, page, "revision `"+l.Revision[:7]+"`")
		for _, st := range []style{ordinary, dense, quiet} {
			require.Contains(t, page, summaryRow(string(st), l.Seeds[st], l.Styles[st]))
		}
		require.Contains(t, page, summaryRow("all", "", l.Total))
		if impl == contender.Eldest {
			require.Empty(t, l.Total.Violations)
			require.GreaterOrEqual(t, l.Total.Tenures, 1_000_000)
			require.GreaterOrEqual(t, l.Total.Years, 1.0)
			for name, n := range l.Total.Struck {
				require.Contains(t, page, fmt.Sprintf("| %s | %s |", name, story.Thousands(n)))
			}
			continue
		}
		for invariant, n := range l.Total.Violations {
			found := l.Total.Found[invariant]
			require.Regexp(t, fmt.Sprintf(`\| %s: [^|]+ \| %s \| %s \| `, invariant, story.Thousands(n), story.Thousands(found.Scenarios)), page)
		}
	}
}

func summaryRow(name, seeds string, s *sum) string {
	violations := 0
	for _, n := range s.Violations {
		violations += n
	}
	long := fmt.Sprintf("%.1f days", 365*s.Years)
	if s.Years > 0.5 {
		long = fmt.Sprintf("%.2f years", s.Years)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", name, seeds,
		story.Thousands(s.Scenarios), story.Thousands(s.Tenures), story.Thousands(s.Acked), long, story.Thousands(violations))
}
