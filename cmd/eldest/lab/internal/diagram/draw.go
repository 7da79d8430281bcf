package diagram

import (
	"io"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// drawing is the diagram of a transcript.
type drawing struct {
	*Sheet
	keys       keys
	news, bars bool // there are events, and bars: the legend explains them
}

// Draw writes a transcript in normal form as an SVG document. The document is written at once; the
// only error is the writer's.
func Draw(out io.Writer, title string, entries []transcript.Entry) error {
	d := &drawing{Sheet: NewSheet(Layout{Column: column, Left: side, Right: side}, columns(entries))}
	d.keys.draw, d.keys.lane = d.Bar, make(map[string]string)
	for _, e := range entries {
		d.entry(e)
	}
	d.keys.close(d.Y)
	d.Y += gap
	bottom := d.Y
	var says [][2]string
	if d.bars {
		says = append(says, [2]string{"key", "its key is in etcd"}, [2]string{"oldest", "it is the oldest key"})
	}
	if d.news {
		says = append(says, [2]string{"news", "an event"})
	}
	d.Legend(says...)
	return d.Write(out, title, bottom)
}

// looks are the classes of messages.
var looks = map[wiretap.Kind]string{
	wiretap.Request: "request", wiretap.Answer: "answer", transcript.Event: "news", wiretap.End: "answer",
}

func (d *drawing) entry(e transcript.Entry) {
	defer func() {
		d.keys.change(e, d.Y)
		d.bars = d.bars || len(e.Gained) > 0
		d.Y += gap
	}()
	if e.Kind == wiretap.Note {
		d.note(e)
		return
	}
	d.news = d.news || e.Kind == transcript.Event
	lines := said(e)
	d.Y += leading * len(lines)
	from, to := e.Lane, Etcd
	if e.Kind != wiretap.Request {
		from, to = Etcd, e.Lane
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	d.Arrow(looks[e.Kind], from, to, d.Y, d.Y, e.Lost, lines...)
}

// note draws a box on the lifeline of its lane, or on etcd's if it has no lane.
func (d *drawing) note(e transcript.Entry) {
	lane := e.Lane
	if lane == "" {
		lane = Etcd
	}
	d.Y += 4
	d.Y += d.Note("note", d.X(lane), wrapped(e.Text(), wide)...) + 2
}
