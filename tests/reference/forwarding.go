package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest/internal/onrecord"
)

// forwarding has the fields that are read from the run of "eldest bench forwarding".
type forwarding struct {
	Incomplete string
	Results    []forwardingResult
}

type forwardingResult struct {
	Contender, Regime, Metric string
	N, Errors                 int
	P50, P99                  float64
}

// The contenders of the run, its kinds of calls, sizes of messages and numbers of callers, and the
// texts of those.
var (
	ways  = []string{"direct", "forwarded", "floor"}
	kinds = [][2]string{{"unary", "unary"}, {"server-stream", "server stream"}, {"bidi-stream", "both directions"}}
	sizes = [][2]string{{"100B", "100 B"}, {"4KiB", "4 KiB"}, {"1MiB", "1 MiB"}}
	crowd = []int{1, 4, 16, 64}
)

// readForwarding reads the run. It fails if the run is not complete or if a turn failed.
func readForwarding(root string) (*forwarding, error) {
	var f forwarding
	if err := onrecord.Read(root, "bench-forwarding", &f); err != nil {
		return nil, err
	}
	if f.Incomplete != "" {
		return nil, fmt.Errorf("the run bench-forwarding is incomplete: %s", f.Incomplete)
	}
	seen := 0
	for _, x := range f.Results {
		if x.Errors > 0 {
			return nil, fmt.Errorf("the run bench-forwarding has errors of %s, %s", x.Contender, x.Regime)
		}
		if x.Metric == "processor" {
			seen++
		}
	}
	if want := len(ways) * len(kinds) * len(sizes) * len(crowd); seen != want {
		return nil, fmt.Errorf("the run bench-forwarding has %d points, not %d", seen, want)
	}
	return &f, nil
}

// cells returns the columns of a metric: the value of each contender in units of per, with its p99
// for the time of a call, and the ratios.
func (f *forwarding) cells(regime string, n int, metric string, per float64) string {
	found := map[string]forwardingResult{}
	for _, x := range f.Results {
		if x.Regime == regime && x.N == n && x.Metric == metric {
			found[x.Contender] = x
		}
	}
	var b strings.Builder
	for _, way := range ways {
		b.WriteString(" | " + digits(found[way].P50/per))
		if metric == "call" {
			b.WriteString(" (" + digits(found[way].P99/per) + ")")
		}
	}
	ratio := func(of, to string) string { return strconv.FormatFloat(found[of].P50/found[to].P50, 'f', 2, 64) }
	fmt.Fprintf(&b, " | **%s** | %s |\n", ratio("forwarded", "direct"), ratio("direct", "floor"))
	return b.String()
}

// The units of the tables.
const (
	micro = 1e3
	mebi  = 1 << 20
)

const waysHead = " | direct | forwarded | floor | forwarded / direct | direct / floor |\n"

// forwardingSummary is the table of docs/benchmarks.md.
func forwardingSummary(f *forwarding) string {
	var b strings.Builder
	b.WriteString("| |" + waysHead[2:] + "|---|--:|--:|--:|--:|--:|\n")
	for _, row := range []struct {
		text, regime, metric string
		n                    int
		per                  float64
	}{
		{"unary, 100 B, 1 caller: µs, p50 (p99)", "unary-100B", "call", 1, micro},
		{"unary, 1 MiB, 1 caller: µs, p50 (p99)", "unary-1MiB", "call", 1, micro},
		{"unary, 100 B, 64 callers: calls a second", "unary-100B", "rate", 64, 1},
		{"unary, 100 B, 16 callers: processor time of a call, µs", "unary-100B", "processor", 16, micro},
		{"server streams, 4 KiB, 16 callers: MiB a second", "server-stream-4KiB", "bytes", 16, mebi},
		{"server streams, 1 MiB, 16 callers: MiB a second", "server-stream-1MiB", "bytes", 16, mebi},
		{"streams in both directions, 4 KiB, 16 callers: MiB a second", "bidi-stream-4KiB", "bytes", 16, mebi},
		{"streams in both directions, 1 MiB, 16 callers: MiB a second", "bidi-stream-1MiB", "bytes", 16, mebi},
	} {
		b.WriteString("| " + row.text + f.cells(row.regime, row.n, row.metric, row.per))
	}
	return b.String()
}

// forwardingTables is the section of the page of the reference runs.
func forwardingTables(f *forwarding) string {
	var b strings.Builder
	b.WriteString("\n## Forwarded calls\n\nMedians: of the calls for the time of a call, else of the turns. What the columns are: " +
		"[benchmarks](../benchmarks.md#calls-through-a-follower).\n")
	table := func(title string, kinds [][2]string, crowd []int, metric string, per float64) {
		fmt.Fprintf(&b, "\n### %s\n\n| calls | message | callers%s|---|---|--:|--:|--:|--:|--:|--:|\n", title, waysHead)
		for _, kind := range kinds {
			for _, size := range sizes {
				for _, n := range crowd {
					fmt.Fprintf(&b, "| %s | %s | %d%s", kind[1], size[1], n, f.cells(kind[0]+"-"+size[0], n, metric, per))
				}
			}
		}
	}
	table("Time of a unary call, µs, p50 (p99)", kinds[:1], crowd, "call", micro)
	table("Unary calls a second", kinds[:1], crowd, "rate", 1)
	table("Streams, MiB a second in each direction", kinds[1:], crowd, "bytes", mebi)
	table("Processor time of a call, or of a message of a stream, µs", kinds, []int{1, 16}, "processor", micro)
	return b.String()
}
