package service

import (
	"fmt"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Words returns the line that reports a fact.
func (p *plan) Words(f scenario.Fact) scenario.Line {
	l := scenario.Line{Who: f.Participant}
	say := func(ink story.Ink, format string, args ...any) { l.Ink, l.Text = ink, fmt.Sprintf(format, args...) }
	switch f.Kind {
	case Listening:
		say(story.Plain, "takes calls at %s, reaches etcd through %s", f.Address, f.Member)
	case scenario.Status:
		before := p.said[f.Participant]
		p.said[f.Participant] = f.Role
		switch {
		case f.Role == scenario.Leading:
			say(story.Green, "LEADS with token %d", f.Token)
			l.Why = "it serves calls itself, with a service made for this tenure; all its requests to etcd are guarded by its token"
		case f.Role == following:
			say(story.Cyan, "follows %s, token %d", f.Leader, f.Token)
			l.Why = "it forwards calls as they came, one hop and no more, and does not repeat them"
		case before != "" && before != unknown: // the reason may change meanwhile
			say(story.Yellow, "neither leads nor follows: %s", f.Reason)
			l.Why = "calls wait until the leader is known, at most until their deadline"
		}
	case scenario.Acted:
		if f.Action == scenario.Start {
			delete(p.said, f.Participant)
		}
		l.Rank, l.Who = scenario.Cause, "demo"
		say(story.Bold, "%s", f.Words())
	case Probed:
		l.Rank, l.Who = scenario.Seen, "demo"
		answer := "no answer"
		if f.OK {
			answer = "it answers"
		}
		say(story.Dim, "sent %s a request that requires a majority: %s", f.Member, answer)
	case scenario.Exited:
		if l.Rank = scenario.Seen; f.Code > 0 {
			say(story.Red, "ended its process with exit code %d: %s", f.Code, f.Cause)
		}
	}
	return l
}

// line returns the line of a failure. A step prints only the first one of each kind, as there may be many.
func (a Attempt) line() scenario.Line {
	if !a.hampered() {
		return scenario.Line{}
	}
	l := scenario.Line{Rank: scenario.Seen, Who: "client", Ink: story.Yellow, Once: a.Answer + " " + string(a.Outcome)}
	if a.NotSent {
		l.Once = "not sent" // with any method
		l.Text = fmt.Sprintf("%s through %s: no process listens at its port, nothing was sent", a.Method, a.Node)
		l.Why = "a node's port is closed with its process, until the next one listens; other nodes take calls meanwhile"
		return l
	}
	certainty := map[Outcome]string{Open: "the outcome is unknown", Refused: "it was not applied", Failed: "nothing was read"}[a.Outcome]
	l.Text = fmt.Sprintf("%s through %s: %s, %s", a.Method, a.Node, a.Answer, certainty)
	// The text is gRPC's or this module's; it should not have control characters.
	l.More = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.TrimPrefix(a.Text, fmt.Sprintf("eldest: election %q: ", Election)))
	return l
}
