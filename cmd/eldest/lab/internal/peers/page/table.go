package page

import (
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// ours is the system that this repository is about.
const ours = contender.Eldest

// A table has all systems with one set of settings.
type table struct {
	Setting string
	Rows    []row
}

// A row is one system.
type row struct {
	System, Title string
	Ours          bool
	Cells         []cell // one for each column
	// Skipped is why it could not be started, "" if it was; Note is the number of that note.
	Skipped string
	Note    int
}

// of returns the row of a system, or nil.
func (t *table) of(system string) *row {
	i := slices.IndexFunc(t.Rows, func(r row) bool { return r.System == system && r.Skipped == "" })
	if i < 0 {
		return nil
	}
	return &t.Rows[i]
}

// settings are those of the report, in their usual order.
func settings(r *peers.Report) (all []string) {
	for _, name := range peer.SettingNames {
		if slices.ContainsFunc(r.Results, func(x peers.Result) bool { return x.Regime == name }) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return peer.SettingNames
	}
	return all
}

// title is the name of a system in tables.
func title(r *peers.Report, system string) string {
	for _, s := range r.Systems {
		if s.Name == system && s.Title != "" {
			return s.Title
		}
	}
	return system
}

// systems are the names of all systems of the report, Eldest first: those that were measured, those of
// which it has results but no description, and those that were skipped.
func systems(r *peers.Report) (names []string) {
	for _, s := range r.Systems {
		names = append(names, s.Name)
	}
	for _, x := range r.Results {
		names = append(names, x.Contender)
	}
	for _, s := range r.Skipped {
		names = append(names, s.System)
	}
	names = unique(names)
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == ours:
			return -1
		case b == ours:
			return 1
		}
		return 0
	})
	return names
}

// skipped returns why a system could not be started, "" if it was.
func skipped(r *peers.Report, system string) string {
	if slices.ContainsFunc(r.Results, func(x peers.Result) bool { return x.Contender == system }) {
		return ""
	}
	for _, s := range r.Skipped {
		if s.System == system {
			return line(s.Reason)
		}
	}
	return ""
}

// tables answers all questions, and returns the notes in the order of their numbers.
func tables(r *peers.Report, all []column) (out []table, notes []string) {
	number := func(text string) int {
		if i := slices.Index(notes, text); i >= 0 {
			return i + 1
		}
		notes = append(notes, text)
		return len(notes)
	}
	for _, setting := range settings(r) {
		t := table{Setting: setting}
		for _, system := range systems(r) {
			its := row{System: system, Title: title(r, system), Ours: system == ours, Skipped: skipped(r, system)}
			if its.Skipped != "" {
				its.Note = number(its.Title + " was skipped: " + its.Skipped)
				t.Rows = append(t.Rows, its)
				continue
			}
			for _, c := range all {
				x := newCell(r, c, system, setting)
				for _, reason := range x.Reasons {
					where := ""
					if x.Failures != "" { // the same text may be of different settings
						where = " (" + setting + ")"
					}
					x.Notes = append(x.Notes, number(fmt.Sprintf("%s%s, %s", its.Title, where, reason)))
				}
				its.Cells = append(its.Cells, x)
			}
			t.Rows = append(t.Rows, its)
		}
		t.mark()
		out = append(out, t)
	}
	return out, notes
}

// mark marks the best of each column. Figures that look the same are equally good.
func (t *table) mark() {
	for i := range t.columns() {
		var best *cell
		for j := range t.Rows {
			if x := t.at(j, i); x != nil && x.comparable() && (best == nil || x.value < best.value) {
				best = x
			}
		}
		for j := range t.Rows {
			if x := t.at(j, i); x != nil && best != nil && x.comparable() && (x.value == best.value || x.Figure == best.Figure) {
				x.Best = true
			}
		}
	}
}

// columns is how many columns the table has.
func (t *table) columns() (n int) {
	for _, r := range t.Rows {
		n = max(n, len(r.Cells))
	}
	return n
}

// at returns a cell, or nil of a row without cells.
func (t *table) at(row, column int) *cell {
	if column >= len(t.Rows[row].Cells) {
		return nil
	}
	return &t.Rows[row].Cells[column]
}
