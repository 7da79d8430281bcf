package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// what a step does; see the package comment.
type what string

const (
	begin what = "begin"
	end   what = "end"
	note  what = "note"
	call  what = "call"
	hears what = "hears"
	send  what = "send"
	recv  what = "recv"
	tick  what = "tick"
	sure  what = "sure"
)

// step is one line of a trace.
type step struct {
	who  string // A, B, C, etcd or outside; empty for a tick
	what what
	// name is the bar of begin and end, the message of send and recv.
	name string
	// to is who a message is sent to.
	to string
	// text is said of it: of a call what is asked; of sure the number.
	text string
	// reply is what a call is answered.
	reply string
}

var errNothing = errors.New("there are no steps in the trace")

// parse reads a trace. Lines that do not begin with "~" are an error: what is drawn
// must be all that there was.
func parse(in io.Reader) ([]step, error) {
	var steps []step
	names := naming{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		s, err := parseLine(names.rename(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, lines.Text(), err)
		}
		steps = append(steps, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errNothing
	}
	return steps, nil
}

// naming calls candidates A, B, C in the order in which they appear.
type naming map[string]string

var candidate = regexp.MustCompile(`\bc[0-9]\b`)

func (n naming) rename(line string) string {
	return candidate.ReplaceAllStringFunc(line, func(c string) string {
		if n[c] == "" {
			n[c] = string(rune('A' + len(n)))
		}
		return n[c]
	})
}

func parseLine(line string) (step, error) {
	rest, ok := strings.CutPrefix(line, "~ ")
	if !ok {
		return step{}, errors.New(`it does not begin with "~ "`)
	}
	rest = strings.TrimSpace(rest)
	if text, ok := strings.CutPrefix(rest, string(tick)); ok {
		return step{what: tick, text: strings.TrimSpace(text)}, nil
	}
	who, rest, _ := strings.Cut(rest, " ")
	did, rest, _ := strings.Cut(rest, " ")
	s := step{who: who, what: what(did), text: rest}
	switch s.what {
	case note, hears, sure:
	case begin, end, recv:
		s.name, s.text, _ = strings.Cut(rest, " ")
	case call:
		s.text, s.reply, ok = strings.Cut(rest, " => ")
		if !ok {
			return step{}, errors.New("a call without a reply")
		}
	case send:
		s.name, s.text, _ = strings.Cut(rest, " ")
		if s.to = "etcd"; who == "etcd" {
			s.to, s.text, _ = strings.Cut(s.text, " ")
		}
	default:
		return step{}, fmt.Errorf("%q is nothing that can be drawn", did)
	}
	return s, nil
}
