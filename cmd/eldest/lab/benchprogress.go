package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

// progressLine says how far a benchmark has come; ttl: its Ns are TTLs.
func progressLine(title string, now bench.Progress, ttl bool, passed time.Duration) string {
	if now.Total == 0 {
		return title + ": getting ready"
	}
	where := []string{title}
	if now.Regime != "" {
		where = append(where, now.Regime)
	}
	if now.N > 0 {
		where = append(where, figures.Size(now.N, ttl))
	}
	line := fmt.Sprintf("%s %s  %d/%d  %s", strings.Join(where, " "), now.Contender, now.Done, now.Total, clock(passed))
	// The turns to come need not take as long as those that are over.
	if now.Done >= 10 || now.Done > 0 && passed > 5*time.Second {
		line += fmt.Sprintf(", about %s left", clock(passed/time.Duration(now.Done)*time.Duration(now.Total-now.Done)))
	}
	return line
}

// clock renders a span as people read it.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}
