package diagram

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	svg "github.com/ajstarks/svgo"
)

// Sheet is a sequence diagram in progress. Messages and notes are drawn from the top to the bottom;
// lifelines and bars, whose lengths are known only at the end, are drawn under them. It is made by
// NewSheet, and is not safe for concurrent use.
type Sheet struct {
	*svg.SVG     // the elements over the bars
	Y        int // where the next message is drawn
	layout   Layout
	lanes    []string

	over, bars bytes.Buffer
}

// Layout has the widths of a diagram, in pixels.
type Layout struct {
	Column      int // between two lifelines
	Left, Right int // left of the first lifeline, and right of the last one
}

// Etcd is the name of etcd's lifeline.
const Etcd = "etcd"

// NewSheet returns a sheet with these lifelines, from the left; Etcd is one of them.
func NewSheet(layout Layout, lanes []string) *Sheet {
	s := &Sheet{Y: top, layout: layout, lanes: lanes}
	s.SVG = svg.New(&s.over)
	return s
}

// Class returns the attribute of an element that has a class of the style.
func Class(name string) string { return fmt.Sprintf("class=%q", name) }

// X returns the position of a lane's lifeline; an unknown lane has that of the first one.
func (s *Sheet) X(lane string) int {
	return s.layout.Left + s.layout.Column*max(0, slices.Index(s.lanes, lane))
}

// Width returns the width of the whole diagram.
func (s *Sheet) Width() int {
	return s.layout.Left + s.layout.Column*(len(s.lanes)-1) + s.layout.Right
}

// Arrow draws a message between Etcd and a lane, which is sent at y1 and arrives at y2; a lost
// message ends in a cross before its target. If y1 and y2 are equal, its text is above the arrow,
// between the lane's lifeline and its neighbour on etcd's side; otherwise below the arrow and
// beside the lane's lifeline, away from messages that are sent meanwhile. The first line of a
// request is bold. The look is a class: request, answer or news.
func (s *Sheet) Arrow(look, from, to string, y1, y2 int, lost bool, lines ...string) {
	lane := from
	if from == Etcd {
		lane = to
	}
	toLeft := s.X(lane) > s.X(Etcd)
	x1, x2, inset := s.X(from), s.X(to), BarWidth+3
	if x1 > x2 {
		inset = -inset
	}
	x1, x2 = x1+inset, x2-inset
	for i, line := range lines {
		x, y, class := s.X(lane)+14, y1-4-leading*(len(lines)-1-i), "said"
		switch width := textWidth(line); {
		case toLeft && y1 != y2:
			x -= 28 + width
		case toLeft:
			x += 10 - s.layout.Column // past the head of a request's arrow
		}
		if y1 != y2 {
			at := func(x int) int { return y1 + (y2-y1)*(x-x1)/(x2-x1) }
			y = max(at(x), at(x+textWidth(line))) + leading*(i+1) - 3
		}
		if i == 0 && look == "request" {
			class = "said asked"
		}
		s.Text(x, y, line, Class(class), `xml:space="preserve"`)
	}
	head := `marker-end="url(#head)"`
	if lost {
		x2 = x1 + (x2-x1)*3/4
		s.Path(fmt.Sprintf("M%d,%d l10,10 m0,-10 l-10,10", x2-5, y2-5), Class("lost"))
		head = ""
	}
	s.Line(x1, y1, x2, y2, Class(look), head)
}

// Note draws a box with its middle at x, or as near to x as the diagram is wide. The box begins at
// Y; its height is returned.
func (s *Sheet) Note(look string, x int, lines ...string) int {
	width, height := NoteWidth(lines...), leading*len(lines)+8
	x = min(max(x-width/2, 4), s.Width()-width-4)
	s.Rect(x, s.Y, width, height, Class(look))
	for i, line := range lines {
		s.Text(x+width/2, s.Y+leading*(i+1)-1, line, Class("noted"))
	}
	return height
}

// NoteWidth returns the width of a note.
func NoteWidth(lines ...string) int {
	width := 0
	for _, line := range lines {
		width = max(width, textWidth(line))
	}
	return width + 16
}

func textWidth(line string) int { return 6 * utf8.RuneCountInString(line) }

// Bar draws a bar whose left side is offset to the right of a lane's lifeline.
func (s *Sheet) Bar(look, lane string, offset, from, to int) {
	svg.New(&s.bars).Rect(s.X(lane)+offset, from, BarWidth, max(4, to-from), Class(look))
}

// Legend explains bars and lines below the diagram, by pairs of a class and a text.
func (s *Sheet) Legend(says ...[2]string) {
	s.Y += 2 * leading
	x := 24
	for _, say := range says {
		if say[0] == "news" {
			s.Line(x-8, s.Y-4, x+10, s.Y-4, Class("news"))
		} else {
			s.Rect(x, s.Y-11, BarWidth, 14, Class(say[0]))
		}
		s.Text(x+16, s.Y, say[1], Class("small"))
		x += 6*len(say[1]) + 40
	}
	s.Y += leading
}

// Write writes the diagram as an SVG document that ends at Y; its lifelines end at bottom. The
// document is written at once; the only error is the writer's.
func (s *Sheet) Write(out io.Writer, title string, bottom int) error {
	var doc bytes.Buffer
	under := svg.New(&doc)
	under.Startview(s.Width(), s.Y, 0, 0, s.Width(), s.Y)
	under.Title(title)
	under.Style("text/css", style)
	under.Def()
	under.Marker("head", 8, 4, 9, 8, `orient="auto"`, `markerUnits="userSpaceOnUse"`)
	under.Path("M0,0 L9,4 L0,8 z")
	under.MarkerEnd()
	under.DefEnd()
	under.Rect(0, 0, s.Width(), s.Y, `class="paper"`)
	under.Text(s.Width()/2, 28, title, `class="title"`)
	for _, lane := range s.lanes {
		under.Line(s.X(lane), top-36, s.X(lane), bottom, `class="life"`)
		under.Text(s.X(lane), top-46, lane, `class="who"`)
	}
	_, _ = s.bars.WriteTo(&doc)
	_, _ = s.over.WriteTo(&doc)
	under.End()
	_, err := out.Write(doc.Bytes())
	return err
}
