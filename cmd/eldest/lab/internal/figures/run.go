package figures

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/bench"
)

// Run is one run of one scenario.
type Run struct {
	Scenario string    `json:"scenario"`
	Summary  string    `json:"summary,omitempty"`
	Time     time.Time `json:"time"`
	Go       string    `json:"go"`
	Etcd     string    `json:"etcd"`
	// Members is 0 if it is not known.
	Members int   `json:"members"`
	Setup   Setup `json:"setup"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Incomplete is why it was broken off, "" if it was not.
	Incomplete string `json:"incomplete,omitempty"`
	// Notes say what the results do not: what could not be measured, and why.
	Notes   []string `json:"notes,omitempty"`
	Results []Result `json:"results"`
}

// Setup is under which circumstances.
type Setup struct {
	bench.Setup
	// Eldest is the version of the command, Command what it was called with, without
	// secrets, and CPU the kind of processor, where that is known.
	Eldest  string `json:"eldest,omitempty"`
	Command string `json:"command,omitempty"`
	CPU     string `json:"cpu,omitempty"`
}

// Result is one quantity of one contender.
type Result struct {
	bench.Result
	Histogram []Bucket `json:"histogram,omitempty"`
}

// Measured reports whether there is anything in it but errors.
func (r *Result) Measured() bool { return len(r.Samples) > 0 }

// New makes a document of a report.
func New(report *bench.Report) Run {
	run := Run{
		Scenario: report.Scenario, Time: report.Time, Go: report.Go, Etcd: report.Etcd, Members: report.Members,
		Setup: Setup{Setup: report.Setup}, Notes: report.Notes, Results: make([]Result, 0, len(report.Results)),
	}
	for _, r := range report.Results {
		run.Results = append(run.Results, Result{Result: r, Histogram: histogram(r.Samples)})
	}
	return run
}

// Typical is the figure by which contenders are compared: the median, or of counts the
// mean. What is counted in ones and twos has medians that hide the twos.
func (r *Result) Typical() float64 {
	if r.byMean() {
		return r.mean()
	}
	return float64(r.P50)
}

func (r *Result) byMean() bool { return r.Unit == bench.Counts }

// mean is that of the samples, which documents of all versions have.
func (r *Result) mean() float64 {
	if !r.Measured() {
		return 0
	}
	sum := 0.0
	for _, s := range r.Samples {
		sum += float64(s)
	}
	return sum / float64(len(r.Samples))
}

// Failed says of which contenders all turns failed at a point, and at which, in the order
// of the results.
func (r *Run) Failed() []string {
	type point struct {
		contender, regime string
		n                 int
	}
	measured, points := map[point]bool{}, []point{}
	for i := range r.Results {
		x := &r.Results[i]
		at := point{x.Contender, x.Regime, x.N}
		if _, seen := measured[at]; !seen {
			points = append(points, at)
		}
		measured[at] = measured[at] || x.Measured()
	}
	var failed []string
	for _, at := range points {
		if measured[at] {
			continue
		}
		who := at.contender
		if at.regime != "" || at.n > 0 {
			g := Group{Regime: at.regime, N: at.n, TTL: SizesAreTTLs(r.Scenario)}
			who += fmt.Sprintf(" (%s)", g.Title())
		}
		failed = append(failed, who)
	}
	return failed
}
