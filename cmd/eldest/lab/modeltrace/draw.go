package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Distances, in pixels.
const (
	column = 230 // between two lifelines
	row    = 30  // between two steps
	left   = 120 // of the first lifeline
	top    = 96  // of the first step
	bar    = 9   // width of a bar
)

// diagram is a drawing in the making: a pen that goes down, and what is open.
type diagram struct {
	svg
	columns []string // who has a lifeline, from the left
	y       int      // where the next step is drawn
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
	d := diagram{columns: []string{"etcd"}, y: top, bars: map[[2]string]int{}, sent: map[string]departure{}}
	for _, s := range steps {
		if s.what != tick && s.who != "outside" && !slices.Contains(d.columns, s.who) {
			d.columns = append(d.columns, s.who)
		}
	}
	slices.Sort(d.columns[1:])
	for _, s := range steps {
		if err := d.step(s); err != nil {
			return err
		}
		d.last = s.what
	}
	d.close()
	bottom := d.y
	if claim != "" {
		d.claim(claim)
	}
	d.legend()
	// Lifelines lie below everything else.
	var below svg
	for _, who := range d.columns {
		below.line("life", d.x(who), top-36, d.x(who), bottom)
		below.text("who", d.x(who), top-46, who)
	}
	below.text("title", d.width()/2, 28, title)
	return write(out, d.width(), d.y, &below, &d.svg)
}

func (d *diagram) width() int { return left + column*(len(d.columns)-1) + 230 }

func (d *diagram) x(who string) int { return left + column*max(0, slices.Index(d.columns, who)) }

func (d *diagram) step(s step) error {
	switch s.what {
	case tick:
		d.line("tick", 16, d.y, d.width()-16, d.y)
		d.label("time", 18, d.y-4, strings.TrimSpace("a tick passes "+s.text))
		d.y += row * 2 / 3
		return nil
	case sure:
		if _, leads := d.bars[[2]string{s.who, "leads"}]; leads {
			d.label("small", d.x(s.who)+2*bar+4, d.y-row/3, "sure for "+s.text+ticks(s.text))
			if d.last == note {
				d.y += row / 3
			}
			if s.text == "0" {
				d.end(s.who, "leads")
			}
		}
		return nil
	case begin:
		d.bars[[2]string{s.who, s.name}] = d.y
		return nil
	case end:
		d.end(s.who, s.name)
		return nil
	case note:
		d.note(s.who, s.text)
	case hears:
		d.arrow("news", "etcd", s.who, d.y, d.y, s.text)
	case call:
		d.arrow("request", s.who, "etcd", d.y, d.y, s.text)
		d.y += row * 5 / 6
		d.arrow("reply", "etcd", s.who, d.y, d.y, s.reply)
	case send:
		d.sent[s.name] = departure{from: s.who, to: s.to, text: s.text, y: d.y}
		d.y += row / 3
		return nil
	case recv:
		m, ok := d.sent[s.name]
		if !ok {
			return fmt.Errorf("%s received %s, which nobody sent", s.who, s.name)
		}
		delete(d.sent, s.name)
		class := "request"
		if m.from == "etcd" {
			class = "reply"
		}
		d.arrow(class, m.from, m.to, m.y, d.y, m.text)
	}
	d.y += row
	return nil
}

func ticks(n string) string {
	if n == "1" {
		return " tick"
	}
	return " ticks"
}

// end ends a bar, if it is open.
func (d *diagram) end(who, name string) {
	at := [2]string{who, name}
	from, open := d.bars[at]
	if !open {
		return
	}
	delete(d.bars, at)
	x := d.x(who) - bar - 1
	if name == "leads" {
		x = d.x(who) + 1
	}
	d.rect(name, x, from-4, bar, max(6, d.y-from-row/2+4))
}

// close ends what is still open: bars go on to the end of the drawing, messages do
// not arrive in it.
func (d *diagram) close() {
	for _, who := range d.columns {
		d.y += row / 2
		d.end(who, "key")
		d.end(who, "leads")
		d.y -= row / 2
	}
	names := make([]string, 0, len(d.sent))
	for name := range d.sent {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := d.sent[name]
		d.arrow("request", m.from, m.to, m.y, d.y, m.text+" (under way)")
	}
}
