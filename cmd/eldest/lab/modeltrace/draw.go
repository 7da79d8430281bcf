package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/diagram"
)

// row is the distance between two steps, in pixels.
const row = 30

// trace is a drawing in the making, and what is open in it.
type trace struct {
	*diagram.Sheet
	lanes []string
	// bars maps who and which to where the bar began; only those that are open.
	bars map[[2]string]int
	// sent maps messages that are under way to where they left.
	sent map[string]departure
	last what // what the step before did
}

type departure struct {
	from, to, text string
	y              int
}

// draw writes a sequence diagram. It is the same for the same steps.
func draw(out io.Writer, steps []step, title, claim string) error {
	lanes := []string{diagram.Etcd}
	for _, s := range steps {
		if s.what != tick && s.who != "outside" && !slices.Contains(lanes, s.who) {
			lanes = append(lanes, s.who)
		}
	}
	slices.Sort(lanes[1:])
	d := trace{
		Sheet: diagram.NewSheet(diagram.Layout{Column: 230, Left: 120, Right: 230}, lanes),
		lanes: lanes, bars: map[[2]string]int{}, sent: map[string]departure{},
	}
	for _, s := range steps {
		if err := d.step(s); err != nil {
			return err
		}
		d.last = s.what
	}
	d.close()
	bottom := d.Y
	if claim != "" {
		d.Y += row / 3
		d.Rect(16, d.Y-4, d.Width()-32, 28, diagram.Class("violated"))
		d.Text(d.Width()/2, d.Y+15, "violated: "+claim, diagram.Class("claim"))
		d.Y += row * 2 / 3
	}
	d.Legend([2]string{"key", "its key is in etcd"}, [2]string{"leads", "it is sure that it leads"})
	return d.Write(out, title, bottom)
}

func (d *trace) step(s step) error {
	switch s.what {
	case tick:
		d.Line(16, d.Y, d.Width()-16, d.Y, diagram.Class("tick"))
		d.Text(18, d.Y-4, strings.TrimSpace("a tick passes "+s.text), diagram.Class("small"))
		d.Y += row * 2 / 3
		return nil
	case sure:
		if _, leads := d.bars[[2]string{s.who, "leads"}]; leads {
			d.Text(beside(d.X(s.who)), d.Y-row/3, "sure for "+s.text+ticks(s.text), diagram.Class("small"))
			if d.last == note {
				d.Y += row / 3
			}
			if s.text == "0" {
				d.end(s.who, "leads")
			}
		}
		return nil
	case begin:
		d.bars[[2]string{s.who, s.name}] = d.Y
		return nil
	case end:
		d.end(s.who, s.name)
		return nil
	case note:
		d.note(s.who, s.text)
	case hears:
		d.Arrow("news", diagram.Etcd, s.who, d.Y, d.Y, false, s.text)
	case call:
		d.Arrow("request", s.who, diagram.Etcd, d.Y, d.Y, false, s.text)
		d.Y += row * 5 / 6
		d.Arrow("answer", diagram.Etcd, s.who, d.Y, d.Y, false, s.reply)
	case send:
		d.sent[s.name] = departure{from: s.who, to: s.to, text: s.text, y: d.Y}
		d.Y += row / 3
		return nil
	case recv:
		m, ok := d.sent[s.name]
		if !ok {
			return fmt.Errorf("%s received %s, which nobody sent", s.who, s.name)
		}
		delete(d.sent, s.name)
		look := "request"
		if m.from == diagram.Etcd {
			look = "answer"
		}
		d.Arrow(look, m.from, m.to, m.y, d.Y, false, m.text)
	}
	d.Y += row
	return nil
}

func ticks(n string) string {
	if n == "1" {
		return " tick"
	}
	return " ticks"
}

// beside is where a text begins that stands beside the bars of a lifeline.
func beside(x int) int { return x + 2*diagram.BarWidth + 4 }

// note is a box. What comes from outside is done to etcd.
func (d *trace) note(who, text string) {
	look := "note"
	if who == "outside" {
		look, who = "outside", diagram.Etcd
	}
	x := d.X(who)
	if who != diagram.Etcd {
		x = beside(x) + diagram.NoteWidth(text)/2
	}
	d.Y -= row / 2
	d.Note(look, x, text)
	d.Y += row / 2
}

// end ends a bar, if it is open: that of the key is left of the lifeline, the other one right.
func (d *trace) end(who, name string) {
	at := [2]string{who, name}
	from, open := d.bars[at]
	if !open {
		return
	}
	delete(d.bars, at)
	offset := -diagram.BarWidth - 1
	if name == "leads" {
		offset = 1
	}
	d.Bar(name, who, offset, from-4, d.Y-row/2)
}

// close ends what is still open: bars go on to the end of the drawing, messages do
// not arrive in it.
func (d *trace) close() {
	d.Y += row / 2
	for _, who := range d.lanes {
		d.end(who, "key")
		d.end(who, "leads")
	}
	d.Y -= row / 2
	for _, name := range slices.Sorted(maps.Keys(d.sent)) {
		m := d.sent[name]
		d.Arrow("request", m.from, m.to, m.y, d.Y, false, m.text+" (under way)")
	}
}
