package figures

import (
	"math"
	"strconv"
	"time"

	"github.com/eldest-io/eldest/bench"
)

// scale is how the figures of a group are shown: all in one unit, with as many decimals.
type scale struct {
	// unit is "" for counts; per is how much of the samples' unit makes one of it.
	unit     string
	per      float64
	decimals int
}

// units are those of each of the samples' units, the smallest first.
var units = map[string][]scale{
	bench.Nanoseconds: {
		{"ns", 1, 0}, {"µs", float64(time.Microsecond), 0}, {"ms", float64(time.Millisecond), 0}, {"s", float64(time.Second), 0},
	},
	bench.Bytes:  {{"B", 1, 0}, {"KiB", 1 << 10, 0}, {"MiB", 1 << 20, 0}, {"GiB", 1 << 30, 0}},
	bench.Counts: {{"", 1, 0}},
}

// scaleFor picks the scale in which the smallest of the values, without 0, has three digits.
func scaleFor(unit string, values []int64) scale {
	least := 0.0
	for _, v := range values {
		if a := math.Abs(float64(v)); a > 0 && (least == 0 || a < least) {
			least = a
		}
	}
	best := scale{unit: unit, per: 1}
	for i, s := range units[unit] {
		// From 0.5 on: 0.84 ms reads better beside 95 ms than 840 µs does.
		if i == 0 || least >= s.per/2 {
			best = s
		}
	}
	switch shown := least / best.per; {
	case best.per == 1: // samples are whole
	case shown < 10:
		best.decimals = 2
	case shown < 100:
		best.decimals = 1
	}
	return best
}

// scale is that of the group's medians.
func (g *group) scale() scale {
	var medians []int64
	for _, x := range g.results {
		if len(x.Samples) > 0 {
			medians = append(medians, x.P50)
		}
	}
	return scaleFor(g.unit, medians)
}

func (s scale) show(v int64) string {
	return strconv.FormatFloat(float64(v)/s.per, 'f', s.decimals, 64)
}

// mean renders a mean: of whole things it need not be whole.
func (s scale) mean(v float64) string {
	size := math.Abs(v)
	switch {
	case s.per != 1, v == math.Trunc(v), size >= 100:
		return s.show(int64(math.Round(v)))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// showRatio renders a ratio with two significant digits, "-" for none.
func showRatio(ratio float64, ok bool) string {
	decimals := 2
	switch {
	case !ok:
		return "-"
	case ratio == 0, ratio >= 10:
		decimals = 0
	case ratio < 0.1:
		decimals = 3
	}
	return strconv.FormatFloat(ratio, 'f', decimals, 64) + "x"
}
