package benchpage

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// scale maps values to places on an axis, which gonum then takes for linear.
type scale struct {
	place func(v float64) float64
	// low and high are places, ticks the axis's marks between them.
	low, high float64
	ticks     []plot.Tick
	// log says that it is logarithmic, for the axis's label.
	log bool
}

// steep is the ratio of the largest to the smallest value from which an axis is
// logarithmic.
const steep = 10

// scaleOf picks the scale for values of a unit.
func scaleOf(unit string, values []float64) scale {
	least, most, zero, negative := math.Inf(1), 0.0, false, false
	low := 0.0
	for _, v := range values {
		switch {
		case v < 0:
			negative, low = true, min(low, v)
		case v == 0:
			zero = true
		default:
			least, most = min(least, v), max(most, v)
		}
	}
	switch {
	case most == 0 && !negative:
		return linear(unit, 0, 1)
	case negative || most/least < steep:
		return linear(unit, low, most)
	}
	return logarithmic(unit, least, most, zero)
}

// linear is a scale from low, or 0 if that is lower, to high.
func linear(unit string, low, high float64) scale {
	unitName, per := unitAt(unit, max(high, -low))
	step := niceStep((high - low) / per / 4)
	if unit == bench.Counts && per == 1 {
		step = max(step, 1) // there are no halves
	}
	first, last := math.Floor(low/per/step), math.Ceil(high/per/step)
	s := scale{place: func(v float64) float64 { return v }, low: first * step * per, high: last * step * per}
	for i := first; i <= last; i++ {
		label := strconv.FormatFloat(i*step, 'f', -1, 64)
		if i*step != math.Trunc(i*step) {
			label = strconv.FormatFloat(i*step, 'f', decimals(step), 64)
		}
		if unitName != "" && i != 0 {
			label += " " + unitName
		}
		s.ticks = append(s.ticks, plot.Tick{Value: i * step * per, Label: label})
	}
	return s
}

// logarithmic is a scale over whole steps of 1, 2, 5; zero has a place below them.
func logarithmic(unit string, least, most float64, zero bool) scale {
	marks := niceMarks(unit)
	from, to := 0, len(marks)-1
	for from < len(marks)-1 && marks[from+1].value <= least {
		from++
	}
	for to > from+1 && marks[to-1].value >= most {
		to--
	}
	s := scale{log: true, low: math.Log10(marks[from].value), high: math.Log10(marks[to].value)}
	below := s.low - (s.high-s.low)/10
	s.place = func(v float64) float64 {
		if v <= 0 {
			return below
		}
		return math.Log10(v)
	}
	few := to-from <= 6
	for _, m := range marks[from : to+1] {
		t := plot.Tick{Value: math.Log10(m.value)}
		if few || m.round {
			t.Label = m.label
		}
		s.ticks = append(s.ticks, t)
	}
	if zero {
		s.low = below
		s.ticks = append(s.ticks, plot.Tick{Value: below, Label: "0"})
	}
	return s
}

// mark is a value that an axis may show.
type mark struct {
	value float64
	label string
	round bool // a power of ten of its unit
}

// niceMarks are the marks of a unit, from the smallest to the largest.
func niceMarks(unit string) []mark {
	var marks []mark
	units := axisUnits(unit)
	if units == nil {
		units = thousands
	}
	for i, u := range units {
		for factor := 1.0; ; factor *= 10 {
			for _, digit := range []float64{1, 2, 5} {
				v := digit * factor
				marks = append(marks, mark{v * u.Per, spaced(strconv.FormatFloat(v, 'f', -1, 64), u.Name), digit == 1})
			}
			// 1 KiB follows 500 B as 1 ms follows 500 µs.
			if i < len(units)-1 && factor == 100 || factor == 1e5 {
				break
			}
		}
	}
	return marks
}

// thousands are the units of counts on an axis; in tables they have none.
var thousands = []figures.Unit{{Name: "", Per: 1}, {Name: "k", Per: 1e3}, {Name: "M", Per: 1e6}}

// axisUnits are the units of an axis; nil if they are not known.
func axisUnits(unit string) []figures.Unit {
	if unit == bench.Counts {
		return thousands
	}
	return figures.Units[unit]
}

// unitAt is the unit in which a value is at least 1.
func unitAt(unit string, v float64) (name string, per float64) {
	units := axisUnits(unit)
	if units == nil {
		return unit, 1
	}
	best := units[0]
	for _, u := range units {
		if v >= u.Per {
			best = u
		}
	}
	return best.Name, best.Per
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= v {
			return digit * power
		}
	}
	return 10 * power
}

// decimals is how many digits behind the point a step has.
func decimals(step float64) int { return max(0, int(math.Ceil(-math.Log10(step)-1e-9))) }

func spaced(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// nines is where a fraction of the rounds stands: 0.9, 0.99, 0.999 are equally far apart.
func nines(fraction float64) float64 { return -math.Log10(1 - fraction) }

// ninesTicks are the marks up to a place.
func ninesTicks(high float64) []plot.Tick {
	var ticks []plot.Tick
	for _, t := range []struct {
		fraction float64
		label    string
	}{
		{0, "min"}, {0.5, "p50"}, {0.75, "p75"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"},
	} {
		if nines(t.fraction) <= high {
			ticks = append(ticks, plot.Tick{Value: nines(t.fraction), Label: t.label})
		}
	}
	return ticks
}
