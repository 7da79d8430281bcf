package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/diagram"
)

func main() {
	title := flag.String("title", "", "what to write above the diagram")
	claim := flag.String("claim", "", "the assertion that the last step violates")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *title, *claim); err != nil {
		fmt.Fprintln(os.Stderr, "modeltrace:", err)
		os.Exit(1)
	}
}

// run draws one trace. It writes all of the diagram or nothing.
func run(in io.Reader, out io.Writer, title, claim string) error {
	steps, err := parse(in)
	if err != nil {
		return err
	}
	var svg bytes.Buffer
	if err := draw(&svg, steps, title, claim); err != nil {
		return err
	}
	_, err = out.Write(svg.Bytes())
	return err
}

// step is one line of a trace; see the package comment.
type step struct {
	who string // A, B, C, etcd or outside; empty for a tick
	did string
	// name is the bar of begin and end, or the message of send and recv.
	name string
	// to is the receiver of a message.
	to string
	// text is the text of the step: of a call the request, of sure the number.
	text string
	// reply is the reply to a call.
	reply string
}

var candidate = regexp.MustCompile(`\bc[0-9]\b`)

// parse reads a trace. A line that does not begin with "~" is an error: the diagram must show every
// step. Candidates are called A, B, C in the order in which they appear.
func parse(in io.Reader) (steps []step, err error) {
	names := map[string]string{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := candidate.ReplaceAllStringFunc(lines.Text(), func(c string) string {
			if names[c] == "" {
				names[c] = string(rune('A' + len(names)))
			}
			return names[c]
		})
		s, ok := parseLine(line)
		if !ok {
			return nil, fmt.Errorf("line %d cannot be drawn: %q", n, lines.Text())
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 && lines.Err() == nil {
		return nil, errors.New("there are no steps in the trace")
	}
	return steps, lines.Err()
}

func parseLine(line string) (s step, ok bool) {
	rest, ok := strings.CutPrefix(line, "~ ")
	rest = strings.TrimSpace(rest)
	if text, tick := strings.CutPrefix(rest, "tick"); tick {
		return step{did: "tick", text: strings.TrimSpace(text)}, ok
	}
	s.who, rest, _ = strings.Cut(rest, " ")
	s.did, s.text, _ = strings.Cut(rest, " ")
	switch s.did {
	case "note", "hears", "sure":
	case "begin", "end", "recv":
		s.name, s.text, _ = strings.Cut(s.text, " ")
	case "call":
		var answered bool
		s.text, s.reply, answered = strings.Cut(s.text, " => ")
		ok = ok && answered
	case "send":
		s.name, s.text, _ = strings.Cut(s.text, " ")
		if s.to = diagram.Etcd; s.who == diagram.Etcd {
			s.to, s.text, _ = strings.Cut(s.text, " ")
		}
	default:
		return s, false
	}
	return s, ok
}

// row is the distance between two steps, in pixels.
const row = 30

// trace is a drawing in progress, with its open bars and messages.
type trace struct {
	*diagram.Sheet
	// bars maps participant and bar to the position where the bar began; only open bars.
	bars map[[2]string]int
	// sent maps the names of messages in flight to their send steps and start positions.
	sent map[string]departure
	last string // the kind of the previous step
}

type departure struct {
	step
	y int
}

// draw writes a sequence diagram. The same steps give the same diagram.
func draw(out io.Writer, steps []step, title, claim string) error {
	lanes := []string{diagram.Etcd}
	for _, s := range steps {
		if s.did != "tick" && s.who != "outside" && !slices.Contains(lanes, s.who) {
			lanes = append(lanes, s.who)
		}
	}
	slices.Sort(lanes[1:])
	d := trace{
		Sheet: diagram.NewSheet(diagram.Layout{Column: 230, Left: 120, Right: 230}, lanes),
		bars:  map[[2]string]int{}, sent: map[string]departure{},
	}
	for _, s := range steps {
		if err := d.step(s); err != nil {
			return err
		}
		d.last = s.did
	}
	// Open bars end at the end of the drawing; messages in flight do not arrive.
	d.Y += row / 2
	for _, who := range lanes {
		d.end(who, "key")
		d.end(who, "leads")
	}
	d.Y -= row / 2
	for _, name := range slices.Sorted(maps.Keys(d.sent)) {
		m := d.sent[name]
		d.Arrow("request", m.who, m.to, m.y, d.Y, false, m.text+" (under way)")
	}
	bottom := d.Y
	if claim != "" {
		d.Y += row / 3
		d.Rect(16, d.Y-4, d.Width()-32, 28, diagram.Class("violated"))
		d.Text(d.Width()/2, d.Y+15, "violated: "+claim, diagram.Class("claim"))
		d.Y += row * 2 / 3
	}
	d.Legend([2]string{"key", "its key is in etcd"}, [2]string{"leads", "the candidate is sure that it leads"})
	return d.Write(out, title, bottom)
}

func (d *trace) step(s step) error {
	switch s.did {
	case "tick":
		d.Line(16, d.Y, d.Width()-16, d.Y, diagram.Class("tick"))
		d.Text(18, d.Y-4, strings.TrimSpace("a tick passes "+s.text), diagram.Class("small"))
		d.Y += row * 2 / 3
		return nil
	case "sure":
		d.sure(s)
		return nil
	case "begin":
		d.bars[[2]string{s.who, s.name}] = d.Y
		return nil
	case "end":
		d.end(s.who, s.name)
		return nil
	case "note":
		d.note(s.who, s.text)
	case "hears":
		d.Arrow("news", diagram.Etcd, s.who, d.Y, d.Y, false, s.text)
	case "call":
		d.Arrow("request", s.who, diagram.Etcd, d.Y, d.Y, false, s.text)
		d.Y += row * 5 / 6
		d.Arrow("answer", diagram.Etcd, s.who, d.Y, d.Y, false, s.reply)
	case "send":
		d.sent[s.name] = departure{s, d.Y}
		d.Y += row / 3
		return nil
	case "recv":
		m, ok := d.sent[s.name]
		if !ok {
			return fmt.Errorf("%s received %s, which was not sent", s.who, s.name)
		}
		delete(d.sent, s.name)
		look := "request"
		if m.who == diagram.Etcd {
			look = "answer"
		}
		d.Arrow(look, m.who, m.to, m.y, d.Y, false, m.text)
	}
	d.Y += row
	return nil
}

// sure draws how long a leader is sure that it leads. At 0 it no longer leads.
func (d *trace) sure(s step) {
	if _, leads := d.bars[[2]string{s.who, "leads"}]; !leads {
		return
	}
	ticks := " ticks"
	if s.text == "1" {
		ticks = " tick"
	}
	d.Text(beside(d.X(s.who)), d.Y-row/3, "sure for "+s.text+ticks, diagram.Class("small"))
	if d.last == "note" {
		d.Y += row / 3
	}
	if s.text == "0" {
		d.end(s.who, "leads")
	}
}

// beside returns where a text beside the bars of a lifeline begins.
func beside(x int) int { return x + 2*diagram.BarWidth + 4 }

// note draws a box. An event from outside is drawn at etcd.
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

// end ends a bar, if it is open. The bar of the key is left of the lifeline, the other one right.
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
