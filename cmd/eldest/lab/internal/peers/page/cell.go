package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// state is what a cell has.
type state string

const (
	measured state = "measured" // a figure
	never    state = "never"    // rounds, in none of which the event happened within the limit
	failed   state = "failed"   // rounds, of which all failed, or all but those without the event
	lacking  state = "lacking"  // the system has no such scenario
	missing  state = "missing"  // nothing
)

// A cell answers a column's question for one system with one set of settings. It is never empty.
type cell struct {
	State state
	// Figure is the answer, Detail what belongs to it.
	Figure, Detail string
	// Failures says how many rounds failed, Gap how many did not have the event; "" for none.
	Failures, Gap string
	// Reasons explain what is not a figure; Notes are their numbers below the table.
	Reasons []string
	Notes   []int
	// Best is true for the least figure of the column.
	Best bool

	value, least, most float64
	unfinished         bool // some rounds failed or did not have the event
}

// comparable reports whether the cell can be the best of its column.
func (c *cell) comparable() bool { return c.State == measured && !c.unfinished }

// text is the cell in a sentence.
func (c *cell) text() string {
	return strings.Join(slices.DeleteFunc([]string{c.Figure, c.Detail, c.Gap, c.Failures}, func(s string) bool { return s == "" }), "; ")
}

// find returns a system's result of a source, or nil.
func find(r *peers.Report, s source, system, setting string, sized bool, n int) *peers.Result {
	for i := range r.Results {
		x := &r.Results[i]
		if x.Scenario == s.Scenario && x.Metric == s.Metric && x.Contender == system && x.Regime == setting && (!sized || x.N == n) {
			return x
		}
	}
	return nil
}

// lack returns why a system does not have a scenario, with the scenario's name; "" if it has it.
func lack(r *peers.Report, s source, system, setting string) string {
	for _, l := range r.Lacks {
		if l.System == system && (l.Setting == "" || l.Setting == setting) && (l.Scenario == s.Scenario || l.Scenario == s.String()) {
			return l.Scenario + ": has none: " + line(l.Reason)
		}
	}
	return ""
}

// newCell answers the question of a column.
func newCell(r *peers.Report, c column, system, setting string) cell {
	var found []*peers.Result
	var out cell
	lacks := 0
	for _, s := range c.Sources {
		x := find(r, s, system, setting, c.Sized, c.N)
		if x != nil {
			found = append(found, x)
			continue
		}
		reason := lack(r, s, system, setting)
		if reason != "" {
			lacks++
		} else {
			reason = s.String() + ": not measured: " + absence(r, system)
			out.unfinished = true
		}
		out.Reasons = append(out.Reasons, reason)
	}
	switch {
	case len(found) == 0 && lacks == len(c.Sources):
		out.State, out.Figure = lacking, "has none"
	case len(found) == 0:
		out.State, out.Figure = missing, "not measured"
	default:
		out.measure(c, found)
	}
	out.Reasons = unique(out.Reasons)
	return out
}

// absence says why there is no result.
func absence(r *peers.Report, system string) string {
	for _, s := range r.Skipped {
		if s.System == system {
			return "skipped: " + line(s.Reason)
		}
	}
	if r.Incomplete != "" {
		return "the run ended early: " + line(r.Incomplete)
	}
	return "the report has no reason"
}

// measure fills in the figures of results, of which there is at least one.
func (c *cell) measure(of column, found []*peers.Result) {
	var samples, hits, errors, none, all int
	var limit time.Duration
	var parts []string
	for _, x := range found {
		its := 0
		for _, s := range x.Samples {
			if s > 0 {
				its++
			}
		}
		hits, samples, errors, none = hits+its, samples+len(x.Samples), errors+x.Errors, none+x.None
		limit = max(limit, x.Limit)
		if len(x.Samples) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d of %d", x.Scenario, its, len(x.Samples)))
		}
		if x.Errors > 0 {
			c.Reasons = append(c.Reasons, fmt.Sprintf("%s: %d of %s failed, the first with: %s",
				x.Scenario, x.Errors, story.Count(x.Rounds+x.None, "round"), line(x.FirstError)))
		}
	}
	all = samples + errors + none
	c.unfinished = c.unfinished || errors > 0 || none > 0
	if errors > 0 {
		c.Failures = fmt.Sprintf("%d of %s failed", errors, story.Count(all, "round"))
	}
	within := "none"
	if of.Rounds {
		within = "no next leader"
	}
	if limit > 0 {
		within += " within " + span(limit)
	}
	x := found[0]
	switch {
	case samples == 0 && none > 0 && errors == 0:
		c.State, c.Figure, c.Detail = never, within, story.Count(all, "round")
		return
	case samples == 0 && none > 0:
		c.State, c.Figure, c.Gap = failed, "error", fmt.Sprintf("%s in %d of %d", within, none, all)
		return
	case samples == 0 && errors > 0:
		c.State, c.Figure = failed, "error"
		return
	case samples == 0:
		c.State, c.Figure, c.Reasons = missing, "not measured", append(c.Reasons, "no round was measured")
		return
	case of.Rounds:
		c.value = float64(hits) / float64(samples)
		c.least, c.most = c.value, c.value
		c.Figure = fmt.Sprintf("%d of %d", hits, samples)
		c.Detail = strings.Join(parts, ", ")
		if len(of.Sources) == 1 {
			c.Detail = "rounds"
		}
	default:
		c.value, c.least, c.most = float64(x.P50), float64(x.Min), float64(x.Max)
		c.Figure = show(c.value, x.Unit)
		c.Detail = story.Count(samples, "round")
		if samples > 1 {
			c.Detail = fmt.Sprintf("max %s, %s", show(c.most, x.Unit), c.Detail)
		}
	}
	c.State = measured
	if none > 0 {
		c.Gap = fmt.Sprintf("%s in %d of %d", within, none, all)
	}
}

// unique removes texts that were before.
func unique(texts []string) (once []string) {
	for _, t := range texts {
		if t != "" && !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return once
}
