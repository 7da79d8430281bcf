package figures

import (
	"math"
	"strconv"
	"time"

	"github.com/eldest-io/eldest/bench"
)

// scale is the unit in which the figures of a group are shown, "" for counts; per is how many of
// the samples' unit make one of it.
type scale struct {
	unit string
	per  float64
}

// units has the scales for each unit of samples, the smallest first.
var units = map[string][]scale{
	bench.Nanoseconds: {{"ns", 1}, {"µs", float64(time.Microsecond)}, {"ms", float64(time.Millisecond)}, {"s", float64(time.Second)}},
	bench.Bytes:       {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}},
	bench.Counts:      {{"", 1}},
}

// scale returns the largest scale in which the smallest of the group's medians, without 0, is at
// least a half: beside 95 ms, 0.84 ms is easier to read than 840 µs.
func (g *group) scale() scale {
	least := 0.0
	for _, x := range g.results {
		if a := math.Abs(float64(x.P50)); len(x.Samples) > 0 && a > 0 && (least == 0 || a < least) {
			least = a
		}
	}
	best := scale{g.unit, 1}
	for i, s := range units[g.unit] {
		if i == 0 || least >= s.per/2 {
			best = s
		}
	}
	return best
}

// show formats a value: with two decimals, unless it is whole.
func (s scale) show(v float64) string {
	decimals := 2
	if s.per == 1 && v == math.Trunc(v) {
		decimals = 0
	}
	return strconv.FormatFloat(v/s.per, 'f', decimals, 64)
}

// showRatio formats a ratio with two significant digits, or "-" for none.
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
