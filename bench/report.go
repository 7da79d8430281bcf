package bench

import (
	"math"
	"slices"
	"time"
)

// Units of samples.
const (
	Nanoseconds = "ns"
	Bytes       = "bytes"
	Counts      = "count"
)

// Report is what a run of one scenario found.
type Report struct {
	Scenario string    `json:"scenario"`
	Time     time.Time `json:"time"`
	Go       string    `json:"go"`
	Etcd     string    `json:"etcd"`
	Members  int       `json:"members"`
	Setup    Setup     `json:"setup"`
	// Notes say what the results do not: what could not be measured, and why.
	Notes   []string `json:"notes,omitempty"`
	Results []Result `json:"results"`
}

// Setup is under which circumstances.
type Setup struct {
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Storage string `json:"storage,omitempty"`
	// Processes is how many workers hosted candidates and observers.
	Processes int `json:"processes,omitempty"`
	// Load is how many background writes a second were asked for, Written what
	// became of that, by regime.
	Load    int                `json:"load,omitempty"`
	Written map[string]Written `json:"written,omitempty"`
	Warmup  int                `json:"warmup"`
}

// Result is one quantity of one contender at one point of a scenario.
//
// Invariant: Rounds = len(Samples) + Errors, and the percentiles are those of Samples,
// 0 if there are none.
type Result struct {
	Contender string `json:"contender"`
	// Regime is the circumstances within the scenario, N the size, where it has one.
	Regime string `json:"regime"`
	N      int    `json:"n"`
	// Metric is what was measured, in Unit.
	Metric string `json:"metric"`
	Rounds int    `json:"rounds"`
	Unit   string `json:"unit"`
	Min    int64  `json:"min"`
	P50    int64  `json:"p50"`
	P90    int64  `json:"p90"`
	P99    int64  `json:"p99"`
	Max    int64  `json:"max"`
	// Mean and Sum say more than percentiles where few things are counted: how many
	// of the rounds had one, say.
	Mean   float64 `json:"mean"`
	Sum    int64   `json:"sum"`
	Errors int     `json:"errors"`
	// FirstError is the text of the first of them.
	FirstError string `json:"first_error,omitempty"`
	// Samples are in the order of the rounds; never nil in a report.
	Samples []int64 `json:"samples"`
}

// summarize computes the figures from the samples.
func (r *Result) summarize() {
	sorted := slices.Sorted(slices.Values(r.Samples))
	r.Rounds = len(sorted) + r.Errors
	r.Min, r.Max = Percentile(sorted, 0), Percentile(sorted, 100)
	r.P50, r.P90, r.P99 = Percentile(sorted, 50), Percentile(sorted, 90), Percentile(sorted, 99)
	if r.Samples == nil {
		r.Samples = []int64{}
	}
	r.Sum, r.Mean = 0, 0
	for _, v := range sorted {
		r.Sum += v
	}
	if len(sorted) > 0 {
		r.Mean = float64(r.Sum) / float64(len(sorted))
	}
}

// Percentile returns the nearest rank: the smallest of the sorted values that at least
// p percent of them do not exceed, 0 for none at all.
func Percentile(sorted []int64, p float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Find returns the result of a contender, or nil.
func (r *Report) Find(contender, regime string, n int, metric string) *Result {
	for i := range r.Results {
		x := &r.Results[i]
		if x.Contender == contender && x.Regime == regime && x.N == n && x.Metric == metric {
			return x
		}
	}
	return nil
}
