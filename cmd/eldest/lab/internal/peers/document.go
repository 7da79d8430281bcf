package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// ErrForeign is returned by Read for JSON that is not a report of this package.
var ErrForeign = errors.New("not the JSON of this benchmark")

// Read reads a report. It may come from any source: texts in it that cannot be shown as they are have
// been quoted.
func Read(r io.Reader) (*Report, error) {
	var report Report
	dec := json.NewDecoder(r)
	if err := dec.Decode(&report); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if report.Results == nil || report.Time.IsZero() {
		return nil, fmt.Errorf("%w: it has no results", ErrForeign)
	}
	for _, x := range report.Results {
		if _, ok := find(x.Scenario); !ok {
			return nil, fmt.Errorf("%w: a result has no known scenario", ErrForeign)
		}
	}
	plain.Texts(&report)
	return &report, nil
}

// Hopeless returns the points of a report at which all rounds failed.
func (r *Report) Hopeless() (points []string) {
	for _, x := range r.Results {
		if x.Errors > 0 && len(x.Samples) == 0 && x.None == 0 {
			points = append(points, fmt.Sprintf("%s/%s of %s (%s)", x.Scenario, x.Metric, x.Contender, x.Regime))
		}
	}
	return points
}
