package figures

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/eldest-io/eldest/bench"
)

// SizesAreTTLs reports whether the Ns of a scenario are TTLs, in milliseconds.
func SizesAreTTLs(scenario string) bool {
	s, err := bench.Named(scenario)
	return err == nil && len(s.Defaults.TTLs) > 0 && len(s.Defaults.Sizes) == 0
}

// Terms are the words of the run that its scenario explains: the regimes first, then the
// metrics, each as far as it occurs.
func (r *Run) Terms() []bench.Term {
	s, err := bench.Named(r.Scenario)
	if err != nil {
		return nil // of another version, which had others
	}
	var used []bench.Term
	add := func(terms []bench.Term, is func(x *Result, name string) bool) {
		for _, t := range terms {
			if slices.ContainsFunc(r.Results, func(x Result) bool { return is(&x, t.Name) }) {
				used = append(used, t)
			}
		}
	}
	add(s.Regimes, func(x *Result, name string) bool { return x.Regime == name })
	add(s.Metrics, func(x *Result, name string) bool { return x.Metric == name })
	return used
}

// Bounded reports whether there is a bound.
func (r *Run) Bounded() bool {
	return slices.ContainsFunc(r.Groups(), func(g Group) bool { return g.Bound > 0 })
}

// Explain is the text of a term, and which direction is good.
func Explain(t bench.Term) string {
	if t.Better == "" {
		return t.Text
	}
	return t.Text + " (" + t.Better + " is better)"
}

// lineWidth is how wide a glossary is at most.
const lineWidth = 100

// Glossary renders terms for people, one below the other, without a newline at the end;
// "" for none.
func Glossary(terms []bench.Term, indent string) string {
	wide := 0
	for _, t := range terms {
		wide = max(wide, utf8.RuneCountInString(t.Name))
	}
	var lines []string
	for _, t := range terms {
		head := indent + t.Name + strings.Repeat(" ", wide-utf8.RuneCountInString(t.Name)) + "  "
		for line := range strings.SplitSeq(text.WrapSoft(Explain(t), lineWidth-len(indent)-wide-2), "\n") {
			lines = append(lines, strings.TrimRight(head+line, " "))
			head = strings.Repeat(" ", len(indent)+wide+2)
		}
	}
	return strings.Join(lines, "\n")
}
