package oracle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A tale is a history in short: one thing a line, each a millisecond after the one
// before it, unless it begins with @ms. Who writes is a candidate, or, of an earlier
// tenure of that candidate, name@token.
//
//	c1 joins 2 | c1 moves | c1 wins | c1 ends 0 (then its process must end with 0)
//	c1 crashes | c1 removed | c1 exits 0 | c1 writes acked | c1 writes refused
//	act c1 500 (a step, due in 500 ms) | settled c1 | settled nobody
//	seen c1 | seen nobody | seen unknown
//
//	grow c1 2 | drop c1 9        the store: a candidate's key comes, goes, at a revision
//	open 3 c1                    the store: a tenure's first write
//	do r1 put a x 10 c1          the store: a write, by c1's tenure | wipe a 10
//	ask r1 n2 put a x            somebody asks n2
//	told r1 done 10 c1 | told r1 refused | told r1 open | told r1 read r0 | told r1 missing
//	traffic c1 10                writes through three nodes, at revisions 10 to 15
type tale struct {
	t      *testing.T
	h      *History
	now    time.Duration
	tokens map[string]int64
	asked  map[string]Event
	serial int
}

func write(t *testing.T, text string) *History {
	t.Helper()
	b := &tale{
		t: t, h: &History{About: About{Prefix: "e/", Data: "data", Recovery: 3 * time.Second}},
		tokens: map[string]int64{}, asked: map[string]Event{},
	}
	b.h.Opens = strings.Contains(text, "\nopen ")
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		b.now += tick
		if at, ok := strings.CutPrefix(w[0], "@"); ok {
			b.now, w = time.Duration(b.number(at))*tick, w[1:]
		}
		b.line(w)
	}
	return b.h
}

func (b *tale) line(w []string) {
	b.t.Helper()
	switch w[0] {
	case "act":
		b.tell(Event{Kind: Acted, Text: "step", Token: b.tokens[w[1]], Until: b.now + time.Duration(b.number(w[2]))*tick})
	case "settled":
		b.tell(Event{Kind: Settled, Token: b.tokens[w[1]]})
	case "seen":
		e := Event{Kind: Observed, Who: "o", Text: w[1]}
		if token, ok := b.tokens[w[1]]; ok {
			e.Text, e.Token, e.Key = Led, token, key(token)
		} else if w[1] == Unknown {
			e.Reason = "why"
		}
		b.tell(e)
	case "grow":
		b.tokens[w[1]] = b.number(w[2])
		b.commit(Change{Key: "e/" + w[1], Rev: b.number(w[2]), Create: b.number(w[2])})
	case "drop":
		b.commit(Change{Key: "e/" + w[1], Rev: b.number(w[2]), Create: b.tokens[w[1]], Deleted: true})
	case "open":
		holder, token := b.by(w[2])
		b.commit(Change{Key: "data", Rev: b.number(w[1]), Value: WriteValue(token, "opening"), Holder: holder, Opens: true})
	case "do": // a delete has no value
		n := len(w)
		holder, token := b.by(w[n-1])
		b.commit(Change{
			Key: "data/" + w[3], Rev: b.number(w[n-2]), Value: WriteValue(token, w[1]), Holder: holder,
			Deleted: w[2] == "delete", Did: strings.Join(w[2:n-2], " "),
		})
	case "wipe":
		b.commit(Change{Key: "data/" + w[1], Rev: b.number(w[2]), Deleted: true})
	case "ask":
		e := Event{Kind: Sent, At: b.now, Who: w[2], Write: w[1], Key: w[4], Text: strings.Join(w[3:], " ")}
		if b.asked[w[1]] = e; w[3] != "get" {
			e.Key = ""
			b.tell(e)
		}
	case "told":
		b.told(b.asked[w[1]], w[2:])
	case "traffic":
		for i := range int64(6) {
			id := fmt.Sprintf("t%d", b.number(w[2])+i)
			b.line([]string{"ask", id, fmt.Sprintf("n%d", i%3+1), "put", "a", id})
			b.line([]string{"do", id, "put", "a", id, id[1:], w[1]})
			b.now += tick
			b.line([]string{"told", id, "done", id[1:], w[1]})
		}
	default:
		b.candidate(w[0], w[1:])
	}
}

func (b *tale) candidate(who string, w []string) {
	b.t.Helper()
	if w[0] == "joins" {
		b.tokens[who] = b.number(w[1])
	}
	e := Event{Who: who, Token: b.tokens[who], Key: key(b.tokens[who])}
	if w[0] == "writes" {
		b.serial++
		e.Kind, e.Write = Sent, strconv.Itoa(b.serial)
		b.tell(e)
		e.Kind = map[string]Kind{"acked": Acked, "refused": Refused}[w[1]]
		b.tell(e)
		return
	}
	e.Kind = map[string]Kind{"joins": Joined, "moves": Moved, "wins": Won, "ends": Ended, "crashes": Crashed, "removed": Removed, "exits": Exited}[w[0]]
	require.NotEmpty(b.t, e.Kind, w)
	switch e.Kind {
	case Crashed:
		e.Code = -1
	case Ended, Exited:
		e.Code = int(b.number(w[1]))
	}
	b.tell(e)
}

func (b *tale) told(e Event, w []string) {
	b.t.Helper()
	require.NotEmpty(b.t, e.Kind, w)
	answer := Event{Who: e.Who, Write: e.Write}
	switch w[0] {
	case "done":
		answer.Kind, answer.Commit = Acked, b.number(w[1])
		_, answer.Token = b.by(w[2])
	case "refused":
		answer.Kind = Refused
	case "open":
		answer.Kind = Unclear
	default:
		if strings.HasPrefix(e.Text, "delete") {
			b.tell(Event{Kind: Refused, Who: e.Who, Write: e.Write})
		}
		answer = Event{Kind: Read, At: e.At, Until: b.now, Who: e.Who, Key: e.Key}
		if w[0] == "read" {
			answer.Write = w[1]
		}
	}
	b.tell(answer)
}

func (b *tale) tell(e Event) {
	if e.At == 0 {
		e.At = b.now
	}
	e.Seq = len(b.h.Events) + 1
	b.h.Events = append(b.h.Events, e)
}

func (b *tale) commit(c Change) {
	c.At = b.now
	b.h.Changes = append(b.h.Changes, c)
}

func (b *tale) by(who string) (holder string, token int64) {
	name, old, ok := strings.Cut(who, "@")
	if ok {
		return "e/" + name, b.number(old)
	}
	return "e/" + name, b.tokens[name]
}

func (b *tale) number(word string) int64 {
	b.t.Helper()
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(b.t, err)
	return n
}

// ill is a good tale with something replaced, which the rule must find, with what it
// says; or which no rule may object to.
type ill struct {
	name, old, new string
	rule           func(*History) []Violation
	problem        string
}

// tales judges a good tale and the ill ones.
func tales(t *testing.T, good string, rules []func(*History) []Violation, ills []ill) {
	t.Helper()
	for _, rule := range rules {
		require.Empty(t, rule(write(t, good)), "the good tale")
	}
	for _, bad := range ills {
		t.Run(bad.name, func(t *testing.T) {
			text := strings.Replace(good, bad.old, bad.new, 1)
			require.NotEqual(t, good, text, "the good tale has changed")
			h := write(t, text)
			if bad.rule == nil {
				for _, rule := range rules {
					require.Empty(t, rule(h))
				}
				return
			}
			require.Contains(t, fmt.Sprint(bad.rule(h)), bad.problem, "%v", h)
		})
	}
}
