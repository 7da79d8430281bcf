package service

import (
	"fmt"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Width is that of the names.
func (s *stage) Width() int { return 7 }

// Words says how a fact is told.
func (s *stage) Words(f Fact) scenario.Line {
	l := scenario.Line{Rank: rankOf(f.Kind)}
	l.Who, l.Ink, l.Text, l.Why = s.words(f)
	return l
}

func rankOf(k Kind) story.Rank {
	switch k {
	case Acted:
		return story.Cause
	case Exited, Probed, Settled:
		return story.Onlooker
	default:
		return story.Effect
	}
}

func (s *stage) words(f Fact) (who string, colour story.Ink, text, why string) {
	switch f.Kind {
	case Listening:
		return f.Node, story.Plain, "takes requests at " + f.Address + ", reaches etcd through " + f.Member, ""
	case Status:
		return s.status(f)
	case Acted:
		if f.Act == Start {
			delete(s.said, f.Node)
		}
		return "play", story.Bold, actWords(f), ""
	case Probed:
		if f.OK {
			return "play", story.Dim, "asked " + f.Member + " for what takes a majority: it answers", ""
		}
		return "play", story.Dim, "asked " + f.Member + " for what takes a majority: no answer", ""
	case Exited:
		if f.Code > 0 {
			return f.Node, story.Red, fmt.Sprintf("ended its process with exit code %d: %s", f.Code, f.Reason), ""
		}
	}
	return "", story.Plain, "", ""
}

// status tells a change of a node's role. "Neither" is told once in a row: its reasons change on the way.
func (s *stage) status(f Fact) (who string, colour story.Ink, text, why string) {
	before := s.said[f.Node]
	s.said[f.Node] = f.Role
	switch f.Role {
	case leading:
		return f.Node, story.Green, fmt.Sprintf("LEADS with token %d", f.Token),
			"it answers by itself, with a service made for this tenure; whatever it asks of etcd is guarded by its token"
	case following:
		return f.Node, story.Cyan, fmt.Sprintf("follows %s, token %d", f.Leader, f.Token),
			"what it is asked it passes on as it came, one hop and no more, and does not repeat it"
	default:
		if before == "" || before == neither {
			return "", story.Plain, "", ""
		}
		return f.Node, story.Yellow, "is neither leader nor follower: " + f.Reason,
			"requests wait for it to know who leads, until their own deadline"
	}
}

func actWords(f Fact) string {
	switch f.Act {
	case Stop:
		return fmt.Sprintf("sends SIGTERM to %s, the leader", f.Node)
	case Kill:
		return fmt.Sprintf("sends SIGKILL to %s, the leader", f.Node)
	case Suspend:
		return fmt.Sprintf("sends SIGSTOP to %s, the leader,", f.Node)
	case Resume:
		return fmt.Sprintf("sends SIGCONT to %s", f.Node)
	case CutLeader:
		return fmt.Sprintf("cuts %s off from the other members; the leader %s reaches %s only", f.Member, f.Node, f.Member)
	case CutFollower:
		return fmt.Sprintf("cuts %s off from the other members; %s, which follows, reaches %s only", f.Member, f.Node, f.Member)
	case Mend:
		return fmt.Sprintf("joins %s to the others again", f.Member)
	case Leave:
		return fmt.Sprintf("sends SIGTERM to %s", f.Node)
	default:
		return ""
	}
}

// line tells the first failure of its kind in a scene. There may be many.
func (a Attempt) line() scenario.Line {
	if a.Outcome == Done || a.Code == 0 || a.Missing { // there was nothing to delete
		return scenario.Line{}
	}
	l := scenario.Line{Rank: story.Onlooker, Who: "client", Ink: story.Yellow, Once: a.Answer + " " + string(a.Outcome)}
	if a.NotSent {
		l.Once = "not sent" // whatever was asked for
		l.Text = fmt.Sprintf("%s through %s: nobody listens at its port, nothing was sent", a.Method, a.Node)
		l.Why = "a node's port goes with its process, and comes back with the next one; other nodes take requests meanwhile"
		return l
	}
	certainty := "whether it was done is open"
	switch a.Outcome {
	case Refused:
		certainty = "it was not done"
	case Failed:
		certainty = "nothing was read"
	}
	l.Text = fmt.Sprintf("%s through %s: %s, %s", a.Method, a.Node, a.Answer, certainty)
	// The text is gRPC's or ours; control characters in it would be a surprise.
	l.More = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.TrimPrefix(a.Text, fmt.Sprintf("eldest: election %q: ", Election)))
	return l
}
