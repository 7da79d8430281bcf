package load

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/onrecord"
)

// A row says what stands in a run's cell, with # for each number, and which numbers
// those are.
type row func(*Summary) (cell string, numbers []float64)

// counted are numbers of Summary.Counts.
func counted(cell string, what ...string) row {
	return func(s *Summary) (string, []float64) {
		var all []float64
		for _, w := range what {
			all = append(all, float64(s.Counts[w]))
		}
		return cell, all
	}
}

// failed is how many errors of some kinds reached callers.
func failed(kinds ...string) row {
	return func(s *Summary) (string, []float64) {
		var n int64
		for _, kind := range kinds {
			n += s.Errors[kind]
		}
		return "#", []float64{float64(n)}
	}
}

// failures are the kinds of errors that have a row.
var failures = []string{
	"await: session lost", "guarded write: outcome unknown", "withdraw: outcome unknown", "observe: etcd does not answer", "observe: etcd has no leader",
}

// violated is nothing as long as nothing at all was violated.
func violated(cell string) row {
	return func(s *Summary) (string, []float64) { return cell, []float64{float64(s.Violated)} }
}

// took is the median of a time and what 99 % of them took at most.
func took(what string) row {
	return func(s *Summary) (string, []float64) { return "# (#)", []float64{s.Took[what].P50, s.Took[what].P99} }
}

// memory is two medians and by how much the second is more.
func memory(unit float64, of func(*Summary) Flat) row {
	return func(s *Summary) (string, []float64) {
		f := of(s)
		return "#, # (# %)", []float64{float64(f.Second) / unit, float64(f.Last) / unit, 100 * f.Change}
	}
}

// rows are those of the tables, by their first cell.
var rows = map[string]row{
	"lasted": func(s *Summary) (string, []float64) {
		lasted := time.Duration(s.Lasted).Round(time.Second)
		minutes, rest := math.Floor(lasted.Minutes()), (lasted % time.Minute).Seconds()
		if rest == 0 {
			return "# min", []float64{minutes}
		}
		return "# min # s", []float64{minutes, rest}
	},
	"departures ordered": counted("#", "departures ordered"),
	"– of leaders: resigned, session closed, crashed": counted("#, #, #", "departures: resign", "departures: leader closes", "departures: leader crashes"),
	"– of waiters, with the end, when all leave: withdrew, cancelled, closed, crashed, evicted": counted("#, #, #, #, #", "departures: withdraw",
		"departures: context is cancelled", "departures: session is closed", "departures: crash", "departures: evicted"),
	"tenures":                  counted("#", "tenures"),
	"forwarded calls":          counted("# times", "bursts"),
	"members killed, and back": counted("#", "members killed"),
	"– that led etcd":          counted("#", "members killed that led etcd"),

	"violations":                violated("**#**"),
	"tenures that overlap":      violated("#"),
	"candidates stuck, or lost": violated("#"),
	"guarded writes acknowledged to candidates, and found in etcd":                    counted("# of #", "acknowledged writes found in etcd", "guarded writes acknowledged"),
	"calls answered OK, and found in etcd":                                            counted("# of #", "acknowledged calls found in etcd", "calls: OK"),
	`calls answered UNAVAILABLE, "nothing applied", and not there`:                    counted("#", "calls: Unavailable, nothing applied"),
	"calls answered UNKNOWN, by the service, for a write without an answer of etcd's": counted("#", "calls: Unknown"),
	"calls with another code, or none": func(s *Summary) (string, []float64) {
		return "#", []float64{float64(s.Counts["calls"] - s.Counts["calls: OK"] - s.Counts["calls: Unavailable, nothing applied"] - s.Counts["calls: Unknown"])}
	},
	"observers that missed the newest leader, or heard of an older one": func(s *Summary) (string, []float64) {
		return "# of #", []float64{float64(s.Violated), float64(s.Scale.Observers)}
	},
	"tenures that a fault ended": counted("#", "tenures ended by the faults"),
	"left when all had left": func(s *Summary) (string, []float64) {
		return "nothing, after # s", []float64{time.Duration(s.Left).Seconds()}
	},

	"heap, right after a collection, MiB": memory(1<<20, func(s *Summary) Flat { return s.Heap }),
	"in memory (RSS), MiB":                memory(1<<20, func(s *Summary) Flat { return s.RSS }),
	"goroutines":                          memory(1, func(s *Summary) Flat { return s.Goroutines }),

	"`Await`: session lost (no renewal was confirmed before the deadline), of waiters": func(s *Summary) (string, []float64) {
		return "# of #", []float64{float64(s.Errors["await: session lost"]), float64(s.Counts["joins"])}
	},
	"guarded write of a candidate: outcome unknown (etcd: request timed out)": failed("guarded write: outcome unknown"),
	"`Withdraw`: outcome unknown (the session was lost meanwhile)":            failed("withdraw: outcome unknown"),
	"observers' watches: etcd silent, or without a leader":                    failed("observe: etcd does not answer", "observe: etcd has no leader"),

	"without a leader, after one resigned": took("without a leader, after: resigned"),
	"all observers have heard of a leader": took("all observers have heard of a leader"),
	"a call, of 1,000 (200) at once":       took("a call"),
}

// wanted are the numbers of the column of that name: those of the full load, and in
// brackets those of the fifth where they differ.
func wanted(full, fifth Scale) map[string][]float64 {
	seconds := time.Duration(full.For).Seconds()
	beats := func(pace Span) float64 { return seconds/time.Duration(pace).Seconds() - 1 }
	return map[string][]float64{
		"lasted":                   {seconds / 60},
		"departures ordered":       {seconds * full.PerSecond, seconds * fifth.PerSecond},
		"forwarded calls":          {beats(full.CallEvery), float64(full.Calls), float64(fifth.Calls)},
		"members killed, and back": {beats(full.KillEvery)},
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
	lines := table(page)
	require.NotEmpty(t, lines)
	for label, cells := range lines {
		if len(cells) > len(all) { // the column of what was wanted
			require.True(t, shows(cells[0], wanted(all[0].Scale, all[3].Scale)[label]), "%s, wanted: %s", label, cells[0])
			cells = cells[1:]
		}
		require.Len(t, cells, len(all), label)
		for i, s := range all {
			if label == "load average, from others too" { // the run knows that of its beginning and its end
				for _, average := range s.LoadAverage {
					require.True(t, spans(cells[i], average), "%s: %s, where the run has %s", label, cells[i], average)
				}
				continue
			}
			require.Contains(t, rows, label, "no run says so")
			cell, numbers := rows[label](s)
			require.Equal(t, cell, number.ReplaceAllString(cells[i], "#"), "%s: %s", label, cells[i])
			require.True(t, shows(cells[i], numbers), "%s: %s, where the run has %v", label, cells[i], numbers)
		}
	}
	for label := range rows {
		require.Contains(t, lines, label, "the page does not say so any more")
	}
}

// table are the rows of a page's tables without those of the heads, by their first cell.
func table(page string) map[string][]string {
	rows := map[string][]string{}
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		isRule := func(at int) bool { return at < len(lines) && strings.HasPrefix(lines[at], "|---") }
		if !strings.HasPrefix(line, "|") || isRule(i) || isRule(i+1) {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for at := range cells {
			cells[at] = strings.TrimSpace(cells[at])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

var number = regexp.MustCompile(`([−+] )?\d{1,3}(,\d{3})*(\.\d+)?`)

// shown are the numbers in a cell, and of each half a unit of its last digit.
func shown(cell string) (numbers, halves []float64) {
	for _, text := range number.FindAllString(cell, -1) {
		n, err := strconv.ParseFloat(strings.NewReplacer(",", "", " ", "", "−", "-").Replace(text), 64)
		if err != nil {
			n = math.NaN() // is no number that a run has
		}
		_, decimals, _ := strings.Cut(text, ".")
		numbers, halves = append(numbers, n), append(halves, math.Pow10(-len(decimals))/2)
	}
	return numbers, halves
}

// shows reports whether the numbers in a cell are these, rounded to the digits that it has.
func shows(cell string, want []float64) bool {
	numbers, halves := shown(cell)
	if len(numbers) != len(want) {
		return false
	}
	for i, n := range numbers {
		if !(math.Abs(n-want[i]) <= halves[i]+1e-9) {
			return false
		}
	}
	return true
}

// spans reports whether a cell like "1 to 11" has a number in between, as precisely as it
// says.
func spans(cell, between string) bool {
	n, err := strconv.ParseFloat(between, 64)
	numbers, halves := shown(cell)
	return err == nil && len(numbers) == 2 && numbers[0]-halves[0] <= n && n <= numbers[1]+halves[1]
}
