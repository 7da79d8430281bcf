package service

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// narrator tells the facts to people. Safe for concurrent use.
type narrator struct {
	tape  *story.Tape
	style story.Style

	mu   sync.Mutex
	told map[string]bool // explanations that were given already
	// failures that the client was told of in this scene, by node and code.
	failures map[string]bool
	// last is what each node said last, so that it need not be said again.
	last map[string]string
}

func newNarrator(t *story.Tape, style story.Style) *narrator {
	return &narrator{tape: t, style: style, told: make(map[string]bool), failures: make(map[string]bool), last: make(map[string]string)}
}

// The width of the names.
const nameWidth = 7

// fact tells one fact, and the first time of its kind also why it is so.
func (n *narrator) fact(f Fact) {
	n.mu.Lock()
	defer n.mu.Unlock()
	who, colour, text, why := n.words(f)
	if text != "" {
		n.line(f.At, rankOf(f.Kind), colour, who, text, why)
	}
}

// line needs mu.
func (n *narrator) line(at time.Time, rank story.Rank, colour story.Ink, who, text, why string) {
	lines := []string{n.style.Paint(colour, fmt.Sprintf("%-*s %s", nameWidth, who, text))}
	if why != "" && !n.told[why] {
		n.told[why] = true
		lines = append(lines, n.style.Paint(story.Dim, fmt.Sprintf("%*s   (%s)", nameWidth, "", why)))
	}
	n.tape.At(at, rank, lines...)
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

// words needs mu.
func (n *narrator) words(f Fact) (who string, colour story.Ink, text, why string) {
	switch f.Kind {
	case Listening:
		return f.Node, story.Plain, "takes requests at " + f.Address + ", reaches etcd through " + f.Member, ""
	case Status:
		return n.status(f)
	case Acted:
		if f.Act == Start {
			delete(n.last, f.Node)
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

// status needs mu. "Neither" is told once in a row: its reasons change on the way.
func (n *narrator) status(f Fact) (who string, colour story.Ink, text, why string) {
	before := n.last[f.Node]
	n.last[f.Node] = f.Role
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

// attempt tells the first failure of its kind in a scene. There may be many.
func (n *narrator) attempt(a Attempt) {
	if a.Outcome == Done || a.Code == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	kind := a.Answer + " " + string(a.Outcome)
	if a.NotSent { // whatever was asked for
		kind = "not sent"
	}
	if a.Missing || n.failures[kind] {
		return // there was nothing to delete, or it is known already
	}
	n.failures[kind] = true
	if a.NotSent {
		n.line(a.At, story.Onlooker, story.Yellow, "client",
			fmt.Sprintf("%s through %s: nobody listens at its port, nothing was sent", a.Method, a.Node),
			"a node's port goes with its process, and comes back with the next one; other nodes take requests meanwhile")
		return
	}
	certainty := "whether it was done is open"
	switch a.Outcome {
	case Refused:
		certainty = "it was not done"
	case Failed:
		certainty = "nothing was read"
	}
	// The text is gRPC's or ours; control characters in it would be a surprise.
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.TrimPrefix(a.Text, fmt.Sprintf("eldest: election %q: ", Election)))
	n.tape.At(a.At, story.Onlooker,
		n.style.Paint(story.Yellow, fmt.Sprintf("%-*s %s through %s: %s, %s", nameWidth, "client", a.Method, a.Node, a.Answer, certainty)),
		n.style.Paint(story.Dim, fmt.Sprintf("%*s   %s", nameWidth, "", text)))
}

// aside says something that is no fact of the play.
func (n *narrator) aside(text string) {
	n.tape.At(time.Now(), story.Cause, n.style.Paint(story.Dim, fmt.Sprintf("%*s %s", nameWidth, "", text)))
}

// scene prints a heading and what to look for.
func (n *narrator) scene(number int, title string, why ...string) {
	n.mu.Lock()
	clear(n.failures)
	n.mu.Unlock()
	lines := []string{"", n.style.Paint(story.Bold, fmt.Sprintf("%d. %s", number, title))}
	for _, w := range why {
		lines = append(lines, "   "+w)
	}
	n.tape.Say(lines...)
}
