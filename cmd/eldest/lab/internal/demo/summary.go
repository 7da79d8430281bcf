package demo

import (
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Summary is what --json ends with.
type Summary struct {
	scenario.Result
	Handovers []handoverRow `json:"handovers"`
}

// handoverRow is a Handover with its times in milliseconds.
type handoverRow struct {
	Handover
	TookMS    float64 `json:"took_ms"`
	NeitherMS float64 `json:"neither_ms"`
}

// Check judges the facts.
func (s *stage) Check(facts []Fact) []story.Verdict { return Check(facts, s.cfg.limits()) }

// Summary words what was found.
func (s *stage) Summary(facts []Fact, r scenario.Result) scenario.Summary {
	sum := Summary{Result: r}
	var rows []string
	for _, h := range handovers(facts) {
		sum.Handovers = append(sum.Handovers, handoverRow{Handover: h, TookMS: story.InMillis(h.Took), NeitherMS: story.InMillis(h.Neither)})
		c := changeWords(h)
		rows = append(rows, fmt.Sprintf("%-12s %s after %-18s %s", c.who,
			s.Style.Paint(story.Bold, fmt.Sprintf("%8s", c.took)), c.why, s.Style.Paint(story.Dim, c.tail)))
	}
	return scenario.Summary{
		Object: sum, Title: "Hand-overs", Rows: rows,
		Basis: "Checked, on what the candidates, the observer and the writer reported",
	}
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
	case Silence:
		tail = "its heartbeats had stopped"
	default:
		tail = fmt.Sprintf("nobody led for %s", story.Millis(h.Neither))
	}
	causes := map[Act]string{Resign: "resigned", Kill: "was killed", Silence: "was killed", Delete: "lost its key", Cut: "was cut off", Leave: "left"}
	cause, ok := causes[h.Act]
	if !ok {
		cause = "lost it by itself"
	}
	return changeLine{who: h.From + " -> " + h.To, took: story.Millis(h.Took), why: h.From + " " + cause, tail: tail}
}
