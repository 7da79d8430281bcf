package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
)

// unknown is the reason if there is none.
const unknown = "No reason is known."

// A deficit is a cell in which Eldest is not the best of the column.
type deficit struct {
	Setting, Column string
	// Ours is Eldest's cell, Best the best one's, with the systems' titles.
	Ours, Best string
	// Before are all systems with a lower figure, the best first, "" if there are none to compare.
	Before string
	// Times is how many times the best figure is Eldest's, "" if that cannot be said.
	Times string
	// Overlap is true if the slowest round of the best is slower than the fastest one of Eldest.
	Overlap bool
	Reason  string
}

// deficits compares Eldest with all others. ok is false if Eldest was not measured.
func deficits(r *peers.Report, all []column, of []table) (found []deficit, ok bool) {
	for _, t := range of {
		its := t.of(ours)
		if its == nil {
			continue
		}
		ok = true
		for i, c := range all {
			mine := &its.Cells[i]
			if mine.Best {
				continue
			}
			var best []row
			for j := range t.Rows {
				if x := t.at(j, i); x != nil && x.Best {
					best = append(best, t.Rows[j])
				}
			}
			d := deficit{Setting: t.Setting, Column: c.Title, Ours: mine.text(), Best: "no system has a figure without failures"}
			var names []string
			for _, b := range best {
				names = append(names, b.Title)
			}
			if len(best) > 0 {
				its := &best[0].Cells[i]
				d.Best = list(names) + ": " + its.text()
				if mine.State == measured {
					d.Before = before(&t, i, mine)
					d.Overlap = !c.Rounds && its.most >= mine.least
					if !c.Rounds && its.value > 0 {
						d.Times = times(mine.value / its.value)
					}
				}
			}
			d.Reason = reason(r, c, t.Setting, mine, best)
			found = append(found, d)
		}
	}
	return found, ok
}

// times formats a ratio of 1 or more.
func times(ratio float64) string {
	decimals := 0
	switch {
	case ratio < 1.1:
		decimals = 2
	case ratio < 10:
		decimals = 1
	}
	return strconv.FormatFloat(ratio, 'f', decimals, 64)
}

// before lists the systems with a lower figure than Eldest's, the lowest first.
func before(t *table, column int, mine *cell) string {
	type entry struct {
		text  string
		value float64
	}
	var all []entry
	for j, r := range t.Rows {
		if x := t.at(j, column); x != nil && !r.Ours && x.State == measured && x.value < mine.value && x.Figure != mine.Figure {
			all = append(all, entry{r.Title + " " + x.Figure, x.value})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	var texts []string
	for _, e := range all {
		texts = append(texts, e.text)
	}
	return strings.Join(texts, ", ")
}
