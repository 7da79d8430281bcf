package figures

import (
	"math"
	"strconv"
	"time"

	"github.com/eldest-io/eldest/bench"
)

// Scale is how the figures of a group are shown: all in one unit, with as many decimals,
// so that they can be compared at a glance.
type Scale struct {
	// Unit is what stands beside the figures, "" for counts.
	Unit string
	// Per is how much of the samples' unit makes one of Unit.
	Per float64
	// Decimals is how many digits stand behind the point.
	Decimals int
}

// Unit is what figures are shown in, and how many of the samples' unit it is.
type Unit struct {
	Name string
	Per  float64
}

// Units are those of each of the samples' units, the smallest first.
var Units = map[string][]Unit{
	bench.Nanoseconds: {
		{"ns", 1}, {"µs", float64(time.Microsecond)}, {"ms", float64(time.Millisecond)}, {"s", float64(time.Second)},
	},
	bench.Bytes:  {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}},
	bench.Counts: {{"", 1}},
}

// ScaleFor picks the scale in which the smallest of the values, 0 aside, has three
// digits.
func ScaleFor(unit string, values []int64) Scale {
	least := 0.0
	for _, v := range values {
		if a := math.Abs(float64(v)); a > 0 && (least == 0 || a < least) {
			least = a
		}
	}
	known, ok := Units[unit]
	if !ok {
		known = []Unit{{unit, 1}}
	}
	best := known[0]
	for _, s := range known {
		// From 0.5 on: 0.84 ms reads better beside 95 ms than 840 µs does.
		if least >= s.Per/2 {
			best = s
		}
	}
	scale := Scale{Unit: best.Name, Per: best.Per}
	switch shown := least / best.Per; {
	case best.Per == 1: // samples are whole
	case shown < 10:
		scale.Decimals = 2
	case shown < 100:
		scale.Decimals = 1
	}
	return scale
}

// Scale is the scale of the group's medians.
func (g *Group) Scale() Scale {
	var medians []int64
	for _, x := range g.Results {
		if x.Measured() {
			medians = append(medians, x.P50)
		}
	}
	return ScaleFor(g.Unit, medians)
}

// Show renders a value without the unit.
func (s Scale) Show(v int64) string {
	return strconv.FormatFloat(float64(v)/s.Per, 'f', s.Decimals, 64)
}

// Mean renders a mean: of whole things it need not be whole.
func (s Scale) Mean(v float64) string {
	size := math.Abs(v)
	switch {
	case s.Per != 1, v == math.Trunc(v), size >= 100:
		return s.Show(int64(math.Round(v)))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// With renders a value with the unit.
func (s Scale) With(v int64) string {
	if s.Unit == "" {
		return s.Show(v)
	}
	return s.Show(v) + " " + s.Unit
}

// ShowRatio renders a ratio with two digits that mean something.
func ShowRatio(ratio float64) string {
	decimals := 2
	switch {
	case ratio == 0, ratio >= 10:
		decimals = 0
	case ratio < 0.1:
		decimals = 3
	}
	return strconv.FormatFloat(ratio, 'f', decimals, 64) + "x"
}
