package demo

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Words says how a fact is told.
func (s *stage) Words(f Fact) scenario.Line {
	l := scenario.Line{Rank: rankOf(f.Kind)}
	l.Who, l.Ink, l.Text, l.Why = s.words(f)
	return l
}

// Width is that of the names.
func (s *stage) Width() int { return 9 }

func rankOf(k Kind) story.Rank {
	switch k {
	case Acted:
		return story.Cause
	case Observed, Guarded, Exited:
		return story.Onlooker
	default:
		return story.Effect
	}
}

func (s *stage) words(f Fact) (who string, colour story.Ink, text, why string) {
	switch f.Kind {
	case Registered:
		s.names[f.Key] = f.Actor
		text = fmt.Sprintf("stands: key %s, token %d, through %s; ", shortKey(f.Key), f.Token, f.Member)
		if f.Predecessor == "" {
			text += "nobody is before it"
		} else {
			text += fmt.Sprintf("number %d, behind %s", f.Queue, s.name(f.Predecessor))
		}
		return f.Actor, story.Plain, text, "the token is its key's create revision: etcd gives it, it only grows, it is the place in the queue"
	case Waiting:
		return f.Actor, story.Plain, fmt.Sprintf("waits for %s's key %s to go", s.name(f.Predecessor), shortKey(f.Predecessor)),
			"it watches that one key and no other: in a queue of any length one departure wakes one waiter"
	case Won:
		s.led[f.Key] = true
		return f.Actor, story.Green, fmt.Sprintf("LEADS with token %d", f.Token),
			"it has proof, as of one revision, that its key is there and that no key is older"
	case Jeopardy:
		return f.Actor, story.Yellow, "could not renew its lease: " + f.Cause,
			"one failure is none: it tries again until its own deadline, which is before etcd's"
	case Recovered:
		return f.Actor, story.Plain, "renewed its lease after all", ""
	case Lost:
		text = "is out of the queue: " + f.Cause
		if s.led[f.Key] {
			text = "LEADS NO MORE: " + f.Cause
		}
		return f.Actor, story.Red, text, ""
	case Suspended:
		return f.Actor, story.Yellow, "LEADS NO MORE, for now: " + f.Cause, "its key stands: it leads on with the same token if nobody has evicted it"
	case Resumed:
		return f.Actor, story.Green, fmt.Sprintf("LEADS ON with token %d", f.Token), ""
	case Evicted:
		return f.Actor, story.Plain, fmt.Sprintf("deletes %s's key: nothing was heard of it", s.name(f.Predecessor)),
			"only if no newer beat has come: etcd compares that, and deletes, in one step"
	case Resigned:
		if s.led[f.Key] {
			return f.Actor, story.Yellow, "resigned: first it stopped leading, then it deletes its key", ""
		}
		return f.Actor, story.Plain, "left the queue", ""
	case Exited:
		return f.Actor, story.Dim, exitWords(f), ""
	case Acted:
		return "demo", story.Bold, s.actWords(f), ""
	case Observed:
		return s.observed(f)
	case Guarded:
		return s.guarded(f)
	default:
		return "", story.Plain, "", ""
	}
}

func (s *stage) name(key string) string {
	if name, ok := s.names[key]; ok {
		return name
	}
	return shortKey(key)
}

func (s *stage) actWords(f Fact) string {
	switch f.Act {
	case Resign:
		return fmt.Sprintf("sends SIGTERM to %s, the leader", f.Actor)
	case Withdraw:
		return fmt.Sprintf("sends SIGTERM to %s, which waits", f.Actor)
	case Kill, Silence:
		return fmt.Sprintf("sends SIGKILL to %s, the leader", f.Actor)
	case Delete:
		return fmt.Sprintf("deletes %s, the key of %s, the leader", shortKey(f.Key), f.Actor)
	case Cut:
		return fmt.Sprintf("cuts %s off from the other members; the leader %s reaches %s only", f.Member, f.Actor, f.Member)
	case Mend:
		return fmt.Sprintf("joins %s to the others again", f.Member)
	default:
		return ""
	}
}

// exitWords says nothing where nothing is left to say.
func exitWords(f Fact) string {
	switch f.Code {
	case codeLeft, codeKilled:
		return ""
	case codeLost:
		return "ended its process with exit code 3, \"lost\""
	default:
		return fmt.Sprintf("ended its process with exit code %d: %s", f.Code, f.Cause)
	}
}

func (s *stage) observed(f Fact) (who string, colour story.Ink, text, why string) {
	const observer = "observer"
	switch f.State {
	case eldest.Led.String():
		return observer, story.Cyan, fmt.Sprintf("sees %s lead, token %d", f.Actor, f.Token),
			"it keeps one watch on the whole queue, holds no lease and never stands"
	case eldest.Nobody.String():
		return observer, story.Cyan, "sees nobody lead", ""
	default:
		return observer, story.Cyan, "does not know who leads: " + f.Cause,
			"\"nobody leads\" and \"I do not know\" are different answers"
	}
}

func (s *stage) guarded(f Fact) (who string, colour story.Ink, text, why string) {
	write := fmt.Sprintf("writes as %s, with token %d: ", s.name(f.Key), f.Token)
	switch {
	case f.Accepted:
		return "writer", story.Green, write + "accepted", ""
	case f.Found == 0:
		return "writer", story.Red, write + "REFUSED by etcd, that key is gone",
			"each write says: only if this key has this create revision; a late one of an old leader cannot pass"
	default:
		return "writer", story.Red, write + fmt.Sprintf("REFUSED by etcd, the key has token %d", f.Found), ""
	}
}

// shortKey is the end of a candidate's key: enough to tell keys apart.
func shortKey(key string) string {
	const tail = 4
	if len(key) <= tail {
		return key
	}
	return ".." + key[len(key)-tail:]
}
