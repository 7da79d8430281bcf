package demo

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Words returns the line that reports a fact.
func (p *plan) Words(f scenario.Fact) scenario.Line {
	l := scenario.Line{Who: f.Participant}
	say := func(ink story.Ink, format string, args ...any) { l.Ink, l.Text = ink, fmt.Sprintf(format, args...) }
	switch f.Kind {
	case scenario.Registered:
		p.names[f.Key] = f.Participant
		place := "no other candidate is older"
		if f.Predecessor != "" {
			place = fmt.Sprintf("number %d, behind %s", f.Queue, p.name(f.Predecessor))
		}
		say(story.Plain, "is a candidate: key %s, token %d, through %s; %s", scenario.ShortKey(f.Key), f.Token, f.Member, place)
		l.Why = "the token is the create revision of its key: etcd assigns it, it only grows, and it is the position in the queue"
	case scenario.Waiting:
		say(story.Plain, "waits for %s's key %s to be deleted", p.name(f.Predecessor), scenario.ShortKey(f.Predecessor))
		l.Why = "it watches that one key only: in a queue of any length one departure wakes one waiter"
	case scenario.Won:
		p.led[f.Key] = true
		say(story.Green, "LEADS with token %d", f.Token)
		l.Why = "it has proof, at one revision, that its key exists and that no key is older"
	case AtRisk:
		say(story.Yellow, "could not renew its lease: %s", f.Cause)
		l.Why = "it tries again until its own deadline, which is before etcd's"
	case Recovered:
		say(story.Plain, "renewed its lease again")
	case scenario.Lost:
		say(story.Red, "is no longer queued: %s", f.Cause)
		if p.led[f.Key] {
			say(story.Red, "NO LONGER LEADS: %s", f.Cause)
		}
	case scenario.Suspended:
		say(story.Yellow, "NO LONGER LEADS (suspended): %s", f.Cause)
		l.Why = "its key exists: it leads again with the same token unless it is evicted"
	case scenario.Resumed:
		say(story.Green, "LEADS AGAIN with token %d", f.Token)
	case Evicted:
		say(story.Plain, "deletes %s's key: no heartbeat of it was received", p.name(f.Predecessor))
		l.Why = "only if no newer heartbeat exists: etcd compares that, and deletes, in one transaction"
	case scenario.Resigned:
		say(story.Plain, "left the queue")
		if p.led[f.Key] {
			say(story.Yellow, "resigned: first it stopped leading, then it deletes its key")
		}
	case scenario.Exited:
		l.Rank = scenario.Seen
		switch f.Code {
		case 0, scenario.CodeKilled: // nothing more to report
		case scenario.CodeLost:
			say(story.Dim, `ended its process with exit code 3, "lost"`)
		default:
			say(story.Dim, "ended its process with exit code %d: %s", f.Code, f.Cause)
		}
	case scenario.Acted:
		l.Rank, l.Who = scenario.Cause, "demo"
		if f.Action != scenario.Leave {
			say(story.Bold, "%s", f.Words())
		}
	case Observed:
		l.Rank, l.Who = scenario.Seen, "observer"
		switch f.State {
		case eldest.Led.String():
			say(story.Cyan, "sees %s lead, token %d", f.Participant, f.Token)
			l.Why = "it has one watch on the whole queue, no lease, and is not a candidate"
		case eldest.Nobody.String():
			say(story.Cyan, "sees no leader")
		default:
			say(story.Cyan, "leader unknown: %s", f.Cause)
			l.Why = `"no leader" and "unknown" are different states`
		}
	case Guarded:
		l.Rank, l.Who = scenario.Seen, "writer"
		write := fmt.Sprintf("writes as %s, with token %d: ", p.name(f.Key), f.Token)
		switch {
		case f.Accepted:
			say(story.Green, "%saccepted", write)
		case f.Found == 0:
			say(story.Red, "%sREFUSED by etcd, that key is deleted", write)
			l.Why = "each write is conditional: only if this key has this create revision; a late write of an old leader is refused"
		default:
			say(story.Red, "%sREFUSED by etcd, the key has token %d", write, f.Found)
		}
	}
	return l
}

func (p *plan) name(key string) string {
	if name, ok := p.names[key]; ok {
		return name
	}
	return scenario.ShortKey(key)
}
