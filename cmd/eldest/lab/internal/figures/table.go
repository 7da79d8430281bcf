package figures

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Table writes one run as text: what was measured in which set-up, the figures by group, and what
// failed.
func Table(w io.Writer, r *bench.Report, style story.Style) error {
	s := newSheet(r)
	head := s.Scenario
	if s.Summary != "" {
		head += ": " + s.Summary
	}
	var facts []string
	for _, f := range s.Facts {
		facts = append(facts, f.Name+" "+f.Value)
	}
	parts := []string{style.Paint(story.Bold, head) + "\n" + strings.Join(facts, " · "), tables(s, style)}
	if len(s.Remarks) > 0 {
		parts = append(parts, strings.Join(s.Remarks, "\n"))
	}
	if len(s.Terms) > 0 {
		parts = append(parts, Glossary(s.Terms, ""))
	}
	for i, line := range s.Complaints {
		s.Complaints[i] = style.Paint(story.Red, line)
	}
	if len(s.Complaints) > 0 {
		parts = append(parts, strings.Join(s.Complaints, "\n"))
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "\n\n"))
	return err
}

// tables formats all groups, below one header.
func tables(s sheet, style story.Style) string {
	t := table.NewWriter()
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	t.Style().Format.Header = text.FormatDefault
	columns := []table.ColumnConfig{{Number: 1, Align: text.AlignLeft}}
	header := table.Row{""}
	for i, name := range s.Header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
		header = append(header, name)
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(header)
	for i, g := range s.Tables {
		if i > 0 {
			t.AppendRow(table.Row{" "})
		}
		t.AppendRow(table.Row{style.Paint(story.Bold, g.Title)})
		for _, row := range g.Rows {
			cells := table.Row{"  " + row.Cells[0]}
			for i, cell := range row.Cells[1:] {
				if row.Failed && s.Header[i+1] == "errors" {
					cell = style.Paint(story.Red, cell)
				}
				cells = append(cells, cell)
			}
			t.AppendRow(cells)
		}
	}
	t.SuppressTrailingSpaces()
	return t.Render()
}

// explain returns the text of a term, and which direction is better.
func explain(t bench.Term) string {
	if t.Better == "" {
		return t.Text
	}
	return t.Text + " (" + t.Better + " is better)"
}

// Glossary formats terms as text, one below the other, in lines of a hundred characters at most,
// without a newline at the end.
func Glossary(terms []bench.Term, indent string) string {
	wide := 0
	for _, t := range terms {
		wide = max(wide, utf8.RuneCountInString(t.Name))
	}
	var lines []string
	for _, t := range terms {
		name := t.Name
		for line := range strings.SplitSeq(text.WrapSoft(explain(t), 98-len(indent)-wide), "\n") {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%s%-*s  %s", indent, wide, name, line), " "))
			name = ""
		}
	}
	return strings.Join(lines, "\n")
}
