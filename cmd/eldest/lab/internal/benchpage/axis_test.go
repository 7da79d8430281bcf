package benchpage

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"

	"github.com/eldest-io/eldest/bench"
)

// labels are those of ticks that have any.
func labels(ticks []plot.Tick) []string {
	var texts []string
	for _, t := range ticks {
		if t.Label != "" {
			texts = append(texts, t.Label)
		}
	}
	return texts
}

func TestScaleOfValues(t *testing.T) {
	for name, c := range map[string]struct {
		unit   string
		values []float64
		log    bool
		labels []string
	}{
		"narrow":          {bench.Nanoseconds, []float64{1e6, 3.5e6}, false, []string{"0", "1 ms", "2 ms", "3 ms", "4 ms"}},
		"wide":            {bench.Nanoseconds, []float64{8e5, 9e7}, true, []string{"1 ms", "10 ms", "100 ms"}},
		"a little wide":   {bench.Nanoseconds, []float64{1e6, 1.1e7}, true, []string{"1 ms", "2 ms", "5 ms", "10 ms", "20 ms"}},
		"negative":        {bench.Nanoseconds, []float64{-4e8, 5e8}, false, []string{"-500 ms", "0", "500 ms"}},
		"all negative":    {bench.Nanoseconds, []float64{-4e8, -1e6}, false, []string{"-400 ms", "-300 ms", "-200 ms", "-100 ms", "0"}},
		"counts":          {bench.Counts, []float64{1, 1000}, true, []string{"1", "10", "100", "1 k"}},
		"counts and zero": {bench.Counts, []float64{0, 1, 1000}, true, []string{"1", "10", "100", "1 k", "0"}},
		"bytes":           {bench.Bytes, []float64{900, 9e6}, true, []string{"1 KiB", "10 KiB", "100 KiB", "1 MiB", "10 MiB"}},
		"few":             {bench.Counts, []float64{1, 2}, false, []string{"0", "1", "2"}},
		"nothing":         {bench.Counts, nil, false, []string{"0", "1"}},
		"zero":            {bench.Counts, []float64{0, 0}, false, []string{"0", "1"}},
		"foreign unit":    {"parsecs", []float64{1, 2}, false, []string{"0", "0.5 parsecs", "1 parsecs", "1.5 parsecs", "2 parsecs"}},
		"seconds":         {bench.Nanoseconds, []float64{2.1e9, 2.9e9}, false, []string{"0", "1 s", "2 s", "3 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scaleOf(c.unit, c.values)
			require.Equal(t, c.log, s.log)
			require.Equal(t, c.labels, labels(s.ticks))
			for _, v := range c.values {
				require.GreaterOrEqual(t, s.place(v), s.low-1e-9)
				require.LessOrEqual(t, s.place(v), s.high+1e-9)
			}
			require.Less(t, s.low, s.high)
		})
	}
}

// Whatever the values, the axis holds them and has marks that people can read.
func TestScalesHoldTheirValues(t *testing.T) {
	for _, unit := range []string{bench.Nanoseconds, bench.Bytes, bench.Counts} {
		for exponent := range 8 {
			for _, span := range []float64{1, 1.5, 9, 11, 1e4} {
				least := 3 * math.Pow(10, float64(exponent))
				t.Run(fmt.Sprint(unit, least, span), func(t *testing.T) {
					s := scaleOf(unit, []float64{least, least * span})
					require.LessOrEqual(t, s.low, s.place(least)+1e-9)
					require.GreaterOrEqual(t, s.high, s.place(least*span)-1e-9)
					require.GreaterOrEqual(t, len(labels(s.ticks)), 2)
					require.LessOrEqual(t, len(labels(s.ticks)), 9)
				})
			}
		}
	}
}

func TestNines(t *testing.T) {
	require.InDelta(t, nines(0.99)-nines(0.9), nines(0.999)-nines(0.99), 1e-9)
	require.Zero(t, nines(0))
	require.Equal(t, []string{"min", "p50", "p75", "p90", "p99"}, labels(ninesTicks(nines(0.9975))))
}
