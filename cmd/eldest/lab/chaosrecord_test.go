package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/onrecord"
)

// What docs/faults.md says of the runs on record is what their reports say.
func TestRecordOfChaosIsThatOfItsReports(t *testing.T) {
	page, err := os.ReadFile("../../../docs/faults.md")
	require.NoError(t, err)
	rows := map[string]string{} // by first cell
	for line := range strings.Lines(string(page)) {
		if cells := strings.SplitN(line, "|", 3); len(cells) == 3 {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(line)
		}
	}
	ours, theirs := record(t, "eldest"), record(t, "concurrency")
	for _, r := range []*chaos.Report{ours, theirs} {
		violations := "0"
		if len(r.Violations) > 0 {
			bad := map[[2]uint64]bool{}
			for _, v := range r.Violations {
				bad[[2]uint64{v.Seed, uint64(v.Round)}] = true
			}
			violations = fmt.Sprintf("%d in %d rounds", len(r.Violations), len(bad))
		}
		require.Equal(t, fmt.Sprintf("| %s | %s | %.0f min | %d to %d | %d | %s | %s / %s / %s | %d | %s | %s | %s |",
			r.Contender, story.Thousands(r.Rounds), r.Seconds/60, r.Series[0].Seed, r.Series[len(r.Series)-1].Seed, len(r.InvalidBecause),
			story.Thousands(r.Tenures), story.Thousands(r.Acked), story.Thousands(r.Refused), story.Thousands(r.Unclear), r.LongStops,
			story.Thousands(r.Samples), story.Thousands(r.Fenced), violations), rows[r.Contender])
	}
	require.Empty(t, ours.Violations)
	require.Equal(t, len(ours.Lines), len(theirs.Lines))
	for i, l := range ours.Lines {
		require.Equal(t, fmt.Sprintf("| `%s` | %s | %s |", l.Fault, effect(l), effect(theirs.Lines[i])), rows[string(l.Fault)])
	}
}

func record(t *testing.T, contender string) *chaos.Report {
	var r chaos.Report
	require.NoError(t, onrecord.Read("../../..", "chaos-"+contender, &r))
	require.Equal(t, contender, r.Contender)
	return &r
}

func effect(l chaos.FaultLine) string {
	took := fmt.Sprint(l.TookEffect)
	if l.Unsupported > 0 {
		took = "n/a"
	}
	return fmt.Sprintf("%d | %s | %d", l.Injected, took, l.Violations)
}
