//go:build linux

package lab

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
)

// chaosLine says how far a run is.
func chaosLine(now chaos.Progress, passed, limit time.Duration) string {
	if now.Round == 0 {
		return "chaos: getting ready"
	}
	total := ""
	if now.Total > 0 {
		total = fmt.Sprintf("/%d", now.Total)
	}
	line := fmt.Sprintf("chaos %d%s  %s", now.Done+1, total, clock(passed))
	switch {
	case limit > 0:
		line += " of " + clock(limit)
	case now.Done >= 5 && now.Total > 0:
		line += fmt.Sprintf(", about %s left", clock(passed/time.Duration(now.Done)*time.Duration(now.Total-now.Done)))
	}
	if now.Violations > 0 {
		line += fmt.Sprintf("  %d VIOLATIONS", now.Violations)
	}
	if now.Invalid > 0 {
		line += fmt.Sprintf("  %d invalid", now.Invalid)
	}
	return fmt.Sprintf("%s  seed %d round %d: %s", line, now.Series, now.Round, now.Text)
}
