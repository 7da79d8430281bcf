package figures

import "fmt"

// Cells are the figures of a result as tables show them, without the unit.
type Cells struct {
	Min, P50, P90, P99, Max, Mean string
	// ByMean says that it is the mean that is compared, not the median.
	ByMean bool
}

// verdicts are the metrics of which each sample is 0 or 1: no or yes.
var verdicts = map[string]bool{"two-leaders": true}

// absent is a figure that there is not.
const absent = "-"

// Cells renders one of the group's results.
func (g *Group) Cells(x *Result) Cells {
	scale := g.Scale()
	switch {
	case !x.Measured():
		return Cells{absent, absent, absent, absent, absent, absent, x.byMean()}
	case verdicts[g.Metric]:
		yes := 0
		for _, s := range x.Samples {
			if s > 0 {
				yes++
			}
		}
		// Percentiles of a yes or no say nothing, and a mean less than this.
		return Cells{Mean: fmt.Sprintf("%d of %d", yes, len(x.Samples)), ByMean: true}
	}
	return Cells{
		Min: scale.Show(x.Min), P50: scale.Show(x.P50), P90: scale.Show(x.P90), P99: scale.Show(x.P99), Max: scale.Show(x.Max),
		Mean: scale.Mean(x.mean()), ByMean: x.byMean(),
	}
}

// Typical renders what is typical of a result, with the unit.
func (g *Group) Typical(x *Result) string {
	c := g.Cells(x)
	shown := c.P50
	if c.ByMean {
		shown = c.Mean
	}
	if unit := g.Scale().Unit; unit != "" && shown != absent {
		shown += " " + unit
	}
	return shown
}

// ShownRatio renders a ratio, or that there is none.
func ShownRatio(ratio float64, ok bool) string {
	if !ok {
		return absent
	}
	return ShowRatio(ratio)
}
