package story

import (
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Verdict is what one check found.
type Verdict struct {
	// Name is the property, as a phrase.
	Name string `json:"check"`
	// OK is true if nothing contradicts it and there was something to judge.
	OK bool `json:"ok"`
	// Detail says on what the verdict rests.
	Detail string `json:"detail"`
	// Problems are the violations.
	Problems []string `json:"problems,omitempty"`
}

// Judge turns violations into a verdict. Nothing to judge is no success: a check
// that had no material would be green whatever was done.
func Judge(name string, material int, problems []string, detail string, args ...any) Verdict {
	if material == 0 {
		problems = append(problems, "nothing happened that could have been checked")
	}
	return Verdict{Name: name, OK: len(problems) == 0, Detail: fmt.Sprintf(detail, args...), Problems: problems}
}

// Texts says what the oracle found, for Judge.
func Texts(found ...[]oracle.Violation) (problems []string) {
	for _, list := range found {
		for _, v := range list {
			problems = append(problems, v.Text)
		}
	}
	return problems
}

// Failed returns the verdicts that are not OK.
func Failed(verdicts []Verdict) []Verdict {
	var failed []Verdict
	for _, v := range verdicts {
		if !v.OK {
			failed = append(failed, v)
		}
	}
	return failed
}

// maxProblems of one check are shown to people; --json has them all.
const maxProblems = 5

// Verdicts renders verdicts, and what contradicts them, as lines.
func (s Style) Verdicts(verdicts []Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		lines = append(lines, fmt.Sprintf("  %s %-31s %s", s.mark(v.OK), v.Name, s.Paint(Dim, v.Detail)))
		for i, p := range v.Problems {
			if i == maxProblems {
				lines = append(lines, fmt.Sprintf("           and %d more", len(v.Problems)-i))
				break
			}
			lines = append(lines, "           "+s.Paint(Red, p))
		}
	}
	return lines
}
