package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Summary is what --json ends with.
type Summary struct {
	Event      string          `json:"event"` // "summary"
	OK         bool            `json:"ok"`
	DurationMS int64           `json:"duration_ms"`
	Checks     []story.Verdict `json:"checks"`
	Handovers  []handoverRow   `json:"handovers"`
	// Broken says why the play did not come to its end.
	Broken string `json:"broken,omitempty"`
}

// handoverRow is a Handover with its times in milliseconds.
type handoverRow struct {
	Handover
	TookMS    float64 `json:"took_ms"`
	NeitherMS float64 `json:"neither_ms"`
}

// summary judges the facts, prints what it found, and returns ErrViolated unless
// everything held, the play came to its end, and nothing was left behind (left is
// nil).
func (s *stage) summary(facts []Fact, broken, left error) error {
	sum := Summary{
		Event:      "summary",
		DurationMS: time.Since(s.tape.Start()).Milliseconds(),
		Checks:     Check(facts, s.cfg.limits()),
	}
	sum.OK = broken == nil && left == nil && len(story.Failed(sum.Checks)) == 0
	if err := errors.Join(broken, left); err != nil {
		sum.Broken = err.Error()
	}
	changes := handovers(facts)
	for _, h := range changes {
		sum.Handovers = append(sum.Handovers, handoverRow{Handover: h, TookMS: inMillis(h.Took), NeitherMS: inMillis(h.Neither)})
	}
	if s.cfg.JSON {
		s.lines.Print(sum)
	} else {
		s.printSummary(sum, changes, left)
	}
	if !sum.OK {
		return errors.Join(ErrViolated, broken, left)
	}
	return nil
}

func (s *stage) printSummary(sum Summary, changes []Handover, left error) {
	style := s.cfg.Style
	lines := []string{"", style.Paint(story.Bold, "Hand-overs")}
	for _, h := range changes {
		c := changeWords(h)
		lines = append(lines, fmt.Sprintf("  %-12s %s after %-18s %s", c.who,
			style.Paint(story.Bold, fmt.Sprintf("%8s", c.took)), c.why, style.Paint(story.Dim, c.tail)))
	}
	lines = append(lines, "", style.Paint(story.Bold, "Checked, on what the candidates, the observer and the writer reported"))
	lines = append(lines, style.Verdicts(sum.Checks)...)
	if sum.Broken != "" {
		lines = append(lines, "", style.Paint(story.Red, "The play did not come to its end: "+sum.Broken))
	}
	verdict := style.Paint(story.Green, "All of it held.")
	if !sum.OK {
		verdict = style.Paint(story.Red, "NOT all of it held.")
	}
	lines = append(lines, "", fmt.Sprintf("%s %.1f s; %s.", verdict, float64(sum.DurationMS)/1000, endWords(left)))
	s.tape.Say(lines...)
}

// endWords says what close achieved.
func endWords(err error) string {
	if err != nil {
		return "not everything could be cleaned up: " + err.Error()
	}
	return "all processes are ended, all data is removed"
}

// changeLine is one hand-over in words.
type changeLine struct{ who, took, why, tail string }

func changeWords(h Handover) changeLine {
	var tail string
	switch h.Act {
	case Delete:
		tail = fmt.Sprintf("%s knew of it after %s", h.From, story.Millis(h.Told))
	case Kill:
		tail = "its lease had to run out"
	default:
		tail = fmt.Sprintf("nobody led for %s", story.Millis(h.Neither))
	}
	causes := map[Act]string{Resign: "resigned", Kill: "was killed", Delete: "lost its key", Cut: "was cut off", Leave: "left"}
	cause, ok := causes[h.Act]
	if !ok {
		cause = "lost it by itself"
	}
	return changeLine{who: h.From + " -> " + h.To, took: story.Millis(h.Took), why: h.From + " " + cause, tail: tail}
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// opening tells what is about to happen.
func (s *stage) opening() {
	if s.cfg.JSON {
		return
	}
	how := "each act once"
	if s.cfg.Duration > 0 {
		how = fmt.Sprintf("acts for %v", s.cfg.Duration)
	}
	s.tape.Say(
		fmt.Sprintf("eldest demo: an etcd cluster of %s, %s, leases of %v; %s",
			story.Count(s.cfg.Members, "member"), story.Count(s.cfg.Candidates, "candidate"), s.cfg.TTL, how),
		s.cfg.Style.Paint(story.Dim, "Everything runs on this machine and is gone afterwards. Times are seconds since the start. Ctrl-C ends it."),
	)
}
