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

// Report is the result of one run of one scenario, and the JSON object that programs read.
type Report struct {
	Scenario string    `json:"scenario"`
	Summary  string    `json:"summary,omitempty"`
	Time     time.Time `json:"time"`
	Go       string    `json:"go"`
	Etcd     string    `json:"etcd"`
	// Members is 0 if it is unknown.
	Members int   `json:"members"`
	Setup   Setup `json:"setup"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Incomplete is why the run ended early, "" if it did not.
	Incomplete string `json:"incomplete,omitempty"`
	// Notes list what could not be measured, and why.
	Notes   []string `json:"notes,omitempty"`
	Results []Result `json:"results"`
}

// Setup is the environment of a run. The caller of Run fills in Eldest, Command and CPU.
type Setup struct {
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Storage string `json:"storage,omitempty"`
	// Processes is how many workers hosted candidates and observers.
	Processes int `json:"processes,omitempty"`
	// Load is how many background writes a second were requested, Written how many were done, by
	// regime.
	Load    int                `json:"load,omitempty"`
	Written map[string]Written `json:"written,omitempty"`
	Warmup  int                `json:"warmup"`
	// Eldest is the version of the command, Command its command line without secrets, and CPU the
	// processor's model.
	Eldest  string `json:"eldest,omitempty"`
	Command string `json:"command,omitempty"`
	CPU     string `json:"cpu,omitempty"`
}

// Written is how many background writes were done in a regime: fewer than requested if the cluster
// did not keep up.
type Written struct {
	PerSecond float64 `json:"per_second"`
	Failed    int64   `json:"failed,omitempty"`
}

// Result is one metric of one contender at one point of a scenario.
//
// Invariant: Rounds = len(Samples) + Errors, and the percentiles are those of Samples,
// 0 if there are none.
type Result struct {
	Contender string `json:"contender"`
	// Regime is the situation within the scenario, N the size, where it has one.
	Regime string `json:"regime"`
	N      int    `json:"n"`
	// Metric is what was measured, in Unit.
	Metric string  `json:"metric"`
	Rounds int     `json:"rounds"`
	Unit   string  `json:"unit"`
	Min    int64   `json:"min"`
	P50    int64   `json:"p50"`
	P90    int64   `json:"p90"`
	P99    int64   `json:"p99"`
	Max    int64   `json:"max"`
	Mean   float64 `json:"mean"`
	Sum    int64   `json:"sum"`
	Errors int     `json:"errors"`
	// FirstError is the text of the first error.
	FirstError string `json:"first_error,omitempty"`
	// Samples are in the order of the rounds; never nil in a report.
	Samples []int64 `json:"samples"`
	// Histogram has the buckets that hold samples, in order.
	Histogram []Bucket `json:"histogram,omitempty"`
}

// Bucket is how many samples are between From and To, both included. The bounds of a bucket
// differ in their fourth digit.
type Bucket struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// Summarize computes the figures from Samples and Errors.
func (r *Result) Summarize() {
	sorted := slices.Sorted(slices.Values(r.Samples))
	r.Rounds = len(sorted) + r.Errors
	r.Min, r.Max = Percentile(sorted, 0), Percentile(sorted, 100)
	r.P50, r.P90, r.P99 = Percentile(sorted, 50), Percentile(sorted, 90), Percentile(sorted, 99)
	if r.Samples == nil {
		r.Samples = []int64{}
	}
	r.Histogram, r.Sum, r.Mean = histogram(sorted), 0, 0
	for _, v := range sorted {
		r.Sum += v
	}
	if len(sorted) > 0 {
		r.Mean = float64(r.Sum) / float64(len(sorted))
	}
}

// histogram counts sorted samples in buckets.
func histogram(sorted []int64) (buckets []Bucket) {
	for _, v := range sorted {
		if last := len(buckets) - 1; last < 0 || v > buckets[last].To {
			from, to := bounds(max(v, -v))
			if v < 0 {
				from, to = -to, -from
			}
			buckets = append(buckets, Bucket{From: from, To: to})
		}
		buckets[len(buckets)-1].Count++
	}
	return buckets
}

// bounds returns the bounds of the bucket of a value, which is not negative.
func bounds(v int64) (from, to int64) {
	width := int64(1)
	for v/width >= 1000 {
		width *= 10
	}
	from = v / width * width
	return from, from + width - 1
}

// Percentile returns the nearest rank: the smallest of the sorted values such that at least p
// percent of them do not exceed it, or 0 if there are no values.
func Percentile(sorted []int64, p float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Find returns the result of a contender, or nil.
func (r *Report) Find(contender, regime string, n int, metric string) *Result {
	i := slices.IndexFunc(r.Results, func(x Result) bool {
		return x.Contender == contender && x.Regime == regime && x.N == n && x.Metric == metric
	})
	if i < 0 {
		return nil
	}
	return &r.Results[i]
}
