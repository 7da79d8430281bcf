package diagram

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	svg "github.com/ajstarks/svgo"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// drawing is one in the making: messages are written from the top to the bottom, over the
// bars and lifelines, whose lengths are known only at the end.
type drawing struct {
	columns    []string
	over       *svg.SVG
	text       bytes.Buffer
	y          int
	bars       bars
	news, keys bool // there are events, and bars: the legend says what they are
}

// Draw writes the transcript of a normal form as an SVG document. It writes all of it or
// nothing but the writer's error.
func Draw(out io.Writer, title string, entries []transcript.Entry) error {
	d := &drawing{columns: columns(entries), y: top}
	d.over = svg.New(&d.text)
	d.bars.lane = make(map[string]string)
	for _, e := range entries {
		d.entry(e)
	}
	d.bars.close(d.y)
	bottom := d.y + gap
	d.legend(bottom + 2*leading)

	var doc bytes.Buffer
	width, height := 2*side+column*(len(d.columns)-1), bottom+3*leading
	under := svg.New(&doc)
	under.Startview(width, height, 0, 0, width, height)
	under.Title(title)
	under.Style("text/css", style)
	under.Def()
	under.Marker("head", 8, 4, 9, 8, `orient="auto"`, `markerUnits="userSpaceOnUse"`)
	under.Path("M0,0 L9,4 L0,8 z")
	under.MarkerEnd()
	under.DefEnd()
	under.Rect(0, 0, width, height, `class="paper"`)
	under.Text(width/2, 28, title, `class="title"`)
	for i, who := range d.columns {
		under.Line(side+i*column, top-36, side+i*column, bottom, `class="life"`)
		under.Text(side+i*column, top-46, who, `class="who"`)
	}
	for _, b := range d.bars.drawn {
		under.Rect(d.x(b.lane)+b.offset(), b.from, bar, max(4, b.to-b.from), class(b.kind))
	}
	_, _ = d.text.WriteTo(&doc)
	under.End()
	_, err := out.Write(doc.Bytes())
	return err
}

func class(name string) string { return fmt.Sprintf("class=%q", name) }

func (d *drawing) x(who string) int { return side + column*max(0, slices.Index(d.columns, who)) }

// classes are the looks of messages.
var classes = map[transcript.Kind]string{
	transcript.Ask: "request", transcript.Answer: "answer", transcript.Event: "news", transcript.End: "answer",
}

func (d *drawing) entry(e transcript.Entry) {
	defer func() {
		d.bars.change(e, d.y)
		d.keys = d.keys || len(e.Gained) > 0
		d.y += gap
	}()
	if e.Kind == transcript.Note {
		d.note(e)
		return
	}
	d.news = d.news || e.Kind == transcript.Event
	// The text stands between the lifeline and its neighbour on etcd's side.
	lane, middle := d.x(e.Lane), d.x(etcd)
	toRight := lane < middle
	near := lane + 14
	if !toRight {
		near = lane - column + 24 // past the head of a request's arrow
	}
	lines := said(e)
	for i, line := range lines {
		d.y += leading
		look := "said"
		if i == 0 && e.Kind == transcript.Ask {
			look = "said asked"
		}
		d.over.Text(near, d.y-4, strings.TrimRight(line, " "), class(look), `xml:space="preserve"`)
	}
	from, to := lane, middle
	if e.Kind != transcript.Ask {
		from, to = middle, lane
	}
	inset := bar + 3
	if from > to {
		inset = -inset
	}
	from, to = from+inset, to-inset
	if e.Lost {
		to = from + (to-from)*3/4
		d.over.Path(fmt.Sprintf("M%d,%d l10,10 m0,-10 l-10,10", to-5, d.y-5), class("lost"))
		d.over.Line(from, d.y, to, d.y, class(classes[e.Kind]))
		return
	}
	d.over.Line(from, d.y, to, d.y, class(classes[e.Kind]), `marker-end="url(#head)"`)
}

// note is a box on a lifeline, or over all of them.
func (d *drawing) note(e transcript.Entry) {
	lines := wrapped(e.Text(), wide)
	width := 0
	for _, l := range lines {
		width = max(width, 6*len([]rune(l))+16)
	}
	x := d.x(e.Lane) - width/2
	if e.Lane == "" {
		x = d.x(etcd) - width/2
	}
	x = min(max(x, 4), 2*side+column*(len(d.columns)-1)-width-4)
	height := leading*len(lines) + 8
	d.over.Rect(x, d.y+4, width, height, class("note"))
	for i, l := range lines {
		d.over.Text(x+width/2, d.y+4+leading*(i+1)-1, l, class("noted"))
	}
	d.y += height + 6
}

func (d *drawing) legend(y int) {
	x := 24
	say := func(text string) {
		d.over.Text(x+16, y, text, class("small"))
		x += 6*len(text) + 40
	}
	if d.keys {
		d.over.Rect(x, y-11, bar, 14, class("key"))
		say("its key is in etcd")
		d.over.Rect(x, y-11, bar, 14, class("oldest"))
		say("and is the oldest")
	}
	if d.news {
		d.over.Line(x-8, y-4, x+10, y-4, class("news"))
		say("an event")
	}
}
