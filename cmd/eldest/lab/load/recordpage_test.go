package load

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/onrecord"
)

// cell is what the page has for a run in a row.
type cell func(*Summary) string

// number is a number as the page has it: with a decimal where it is below a limit.
func number(n, limit float64) string {
	if n < limit {
		return fmt.Sprintf("%.1f", n)
	}
	return story.Thousands(int(math.Round(n)))
}

// counted are numbers of Summary.Counts in a format.
func counted(format string, what ...string) cell {
	return func(s *Summary) string {
		var all []any
		for _, w := range what {
			all = append(all, story.Thousands(int(s.Counts[w])))
		}
		return fmt.Sprintf(format, all...)
	}
}

// failed is how many errors of some kinds reached callers.
func failed(kinds ...string) cell {
	return func(s *Summary) string {
		var n int64
		for _, kind := range kinds {
			n += s.Errors[kind]
		}
		return fmt.Sprint(n)
	}
}

// failures are the kinds of errors that have a row.
var failures = []string{
	"await: session lost", "guarded write: outcome unknown", "withdraw: outcome unknown", "observe: etcd does not answer", "observe: etcd has no leader",
}

// violated is nothing as long as nothing at all was violated.
func violated(format string) cell {
	return func(s *Summary) string { return fmt.Sprintf(format, s.Violated) }
}

// took is the median of a time and what 99 % of them took at most.
func took(what string) cell {
	return func(s *Summary) string {
		return number(s.Took[what].P50, 10) + " (" + number(s.Took[what].P99, 10) + ")"
	}
}

// memory is two medians and by how much the second is more.
func memory(unit float64, of func(*Summary) Flat) cell {
	return func(s *Summary) string {
		f, sign := of(s), "+"
		if f.Change < 0 {
			sign = "−"
		}
		return fmt.Sprintf("%s, %s (%s %s %%)", number(float64(f.Second)/unit, 100), number(float64(f.Last)/unit, 100), sign, number(math.Abs(100*f.Change), 10))
	}
}

// rows are those of the tables, by their first cell.
var rows = map[string]cell{
	"lasted": func(s *Summary) string {
		lasted := time.Duration(s.Lasted).Round(time.Second)
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", int(lasted.Minutes()), int(lasted.Seconds())%60), " 0 s")
	},
	"departures ordered": counted("%s", "departures ordered"),
	"– of leaders: resigned, session closed, crashed": counted("%s, %s, %s", "departures: resign", "departures: leader closes", "departures: leader crashes"),
	"– of waiters, with the end, when all leave: withdrew, cancelled, closed, crashed, evicted": counted("%s, %s, %s, %s, %s", "departures: withdraw",
		"departures: context is cancelled", "departures: session is closed", "departures: crash", "departures: evicted"),
	"tenures":                  counted("%s", "tenures"),
	"forwarded calls":          counted("%s times", "bursts"),
	"members killed, and back": counted("%s", "members killed"),
	"– that led etcd":          counted("%s", "members killed that led etcd"),

	"violations":                violated("**%d**"),
	"tenures that overlap":      violated("%d"),
	"candidates stuck, or lost": violated("%d"),
	"guarded writes acknowledged to candidates, and found in etcd":                    counted("%s of %s", "acknowledged writes found in etcd", "guarded writes acknowledged"),
	"calls answered OK, and found in etcd":                                            counted("%s of %s", "acknowledged calls found in etcd", "calls: OK"),
	`calls answered UNAVAILABLE, "nothing applied", and not there`:                    counted("%s", "calls: Unavailable, nothing applied"),
	"calls answered UNKNOWN, by the service, for a write without an answer of etcd's": counted("%s", "calls: Unknown"),
	"calls with another code, or none": func(s *Summary) string {
		return fmt.Sprint(s.Counts["calls"] - s.Counts["calls: OK"] - s.Counts["calls: Unavailable, nothing applied"] - s.Counts["calls: Unknown"])
	},
	"observers that missed the newest leader, or heard of an older one": func(s *Summary) string {
		return fmt.Sprintf("%d of %s", s.Violated, story.Thousands(s.Scale.Observers))
	},
	"tenures that a fault ended": counted("%s", "tenures ended by the faults"),
	"left when all had left": func(s *Summary) string {
		return "nothing, after " + number(time.Duration(s.Left).Seconds(), 10) + " s"
	},

	"heap, right after a collection, MiB": memory(1<<20, func(s *Summary) Flat { return s.Heap }),
	"in memory (RSS), MiB":                memory(1<<20, func(s *Summary) Flat { return s.RSS }),
	"goroutines":                          memory(1, func(s *Summary) Flat { return s.Goroutines }),

	"`Await`: session lost (no renewal was confirmed before the deadline), of waiters": func(s *Summary) string {
		return fmt.Sprintf("%d of %s", s.Errors["await: session lost"], story.Thousands(int(s.Counts["joins"])))
	},
	"guarded write of a candidate: outcome unknown (etcd: request timed out)": failed("guarded write: outcome unknown"),
	"`Withdraw`: outcome unknown (the session was lost meanwhile)":            failed("withdraw: outcome unknown"),
	"observers' watches: etcd silent, or without a leader":                    failed("observe: etcd does not answer", "observe: etcd has no leader"),

	"without a leader, after one resigned": took("without a leader, after: resigned"),
	"all observers have heard of a leader": took("all observers have heard of a leader"),
	"a call, of 1,000 (200) at once":       took("a call"),
}

// wanted are the cells of the column of that name: the full load, and in brackets the fifth where that differs.
func wanted(full, fifth Scale) map[string]string {
	lasts := time.Duration(full.For)
	ticks := func(pace Span) int { return int(lasts/time.Duration(pace)) - 1 }
	departures := func(s Scale) string { return story.Thousands(int(lasts.Seconds() * s.PerSecond)) }
	return map[string]string{
		"lasted":                   fmt.Sprintf("%.0f min", lasts.Minutes()),
		"departures ordered":       departures(full) + " (" + departures(fifth) + ")",
		"forwarded calls":          fmt.Sprintf("%d times %s (%d)", ticks(full.CallEvery), story.Thousands(full.Calls), fifth.Calls),
		"members killed, and back": fmt.Sprint(ticks(full.KillEvery)),
	}
}

// What docs/faults.md says of the load on record is what its runs say: all rows of all
// tables there.
func TestRecordOfLoadIsThatOfItsRuns(t *testing.T) {
	var all []*Summary // in the order of the columns
	for _, name := range []string{"load", "load-2", "load-3", "load-part"} {
		s := &Summary{}
		require.NoError(t, onrecord.Read("../../../..", name, s))
		require.Equal(t, Held, s.Verdict)
		require.Empty(t, s.Missed)
		for kind := range s.Errors {
			require.Contains(t, failures, kind, "the page has no row for it")
		}
		require.Equal(t, s.Counts["members killed"], s.Counts["members that came back"], "the page has one number for both")
		all = append(all, s)
	}
	text, err := os.ReadFile("../../../../docs/faults.md")
	require.NoError(t, err)
	_, page, _ := strings.Cut(string(text), "\n## Load\n")
	page, _, _ = strings.Cut(page, "\n## ")
	require.Contains(t, page, "revision `"+all[2].Revision[:7]+"`")
	known := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		label, cells := cells[0], cells[1:]
		if len(cells) == 0 || cells[len(cells)-1] == "a fifth of everybody" || cells[len(cells)-1] == "a fifth" || strings.HasPrefix(label, "---") {
			continue // no row, or the head of a table
		}
		if len(cells) > len(all) { // the column of what was wanted
			require.Equal(t, wanted(all[0].Scale, all[3].Scale)[label], cells[0], "%s, wanted", label)
			cells = cells[1:]
		}
		require.Len(t, cells, len(all), label)
		known[label] = true
		for i, s := range all {
			if label == "load average, from others too" { // the run knows that of its beginning and its end
				var from, to, average float64
				_, err := fmt.Sscanf(cells[i], "%g to %g", &from, &to)
				require.NoError(t, err)
				for _, text := range s.LoadAverage {
					_, err := fmt.Sscan(text, &average)
					require.NoError(t, err)
					require.True(t, from-0.5 <= average && average <= to+0.5, "%s: %s, where the run has %v", label, cells[i], average)
				}
				continue
			}
			require.Contains(t, rows, label, "no run says so")
			require.Equal(t, rows[label](s), cells[i], label)
		}
	}
	for label := range rows {
		require.Contains(t, known, label, "the page does not say so any more")
	}
}
