package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tick is short against everything that a checker calls late.
const tick = time.Millisecond

// story writes a history by hand: a tick of virtual time passes before each
// line, revisions count up with the changes of the store, and events see the
// revision of the moment, as they do in a run.
type story struct {
	History
	now time.Duration
	rev int64
}

func tell() *story {
	return &story{History: History{About: About{Prefix: "e/", Data: "data"}}, rev: 1}
}

func key(lease int64) string { return fmt.Sprintf("e/%x", lease) }

// wait lets time pass.
func (s *story) wait(d time.Duration) *story {
	s.now += d
	return s
}

// put creates a candidate's key for a lease; its token is the revision.
func (s *story) put(lease int64) *story {
	s.now += tick
	s.rev++
	return s.change(Change{Key: key(lease), Create: s.rev, Lease: lease})
}

// del removes the key of a lease, created at the revision create.
func (s *story) del(lease, create int64) *story {
	s.now += tick
	s.rev++
	return s.change(Change{Key: key(lease), Create: create, Deleted: true})
}

// write commits a guarded write.
func (s *story) write(token int64, name string) *story {
	s.now += tick
	s.rev++
	return s.change(Change{Key: s.Data, Create: 1, Value: WriteValue(token, name)})
}

func (s *story) change(c Change) *story {
	c.Rev, c.At = s.rev, s.now
	s.Changes = append(s.Changes, c)
	return s
}

// at files an event at this moment.
func (s *story) at(e Event) *story {
	s.now += tick
	return s.same(e)
}

// same files an event at the instant of the one before.
func (s *story) same(e Event) *story {
	e.Seq, e.At, e.Rev = len(s.Events)+1, s.now, s.rev
	s.Events = append(s.Events, e)
	return s
}

func (s *story) join(who string, lease int64) *story {
	return s.at(Event{Who: who, Kind: Joined, Lease: lease})
}

func (s *story) is(who string, kind Kind, token int64) *story {
	return s.at(Event{Who: who, Kind: kind, Token: token})
}

func (s *story) writes(kind Kind, token int64, name string) *story {
	return s.by("a", kind, token, name)
}

// by is writes of somebody else.
func (s *story) by(who string, kind Kind, token int64, name string) *story {
	return s.at(Event{Who: who, Kind: kind, Token: token, Write: name})
}

// blind takes the revisions out of the events, as processes do not know them.
func (s *story) blind() *story {
	for i := range s.Events {
		s.Events[i].Rev = 0
	}
	return s
}

// orderly is a run without fault: a leads and resigns, b leads and crashes, c
// leads to the end, d waits.
func orderly() *story {
	return tell().
		join("a", 0xa).put(0xa).is("a", Won, 2).is("a", Proven, 2).
		join("b", 0xb).put(0xb).join("c", 0xc).put(0xc).
		writes(Sent, 2, "w1").write(2, "w1").writes(Acked, 2, "w1").
		is("a", Resigning, 2).is("a", Ended, 2).del(0xa, 2).
		is("b", Won, 3).by("b", Sent, 3, "w2").write(3, "w2").is("b", Crashed, 0).del(0xb, 3).
		is("c", Won, 4).by("c", Sent, 4, "w3").by("c", Refused, 4, "w3").
		join("d", 0xd).put(0xd).
		at(Event{Kind: Quiet})
}

// tried is a history and how many violations the checker must find in it.
type tried struct {
	name    string
	history *story
	found   int
}

func try(t *testing.T, check func(*History) []Violation, all []tried) {
	t.Helper()
	require.Empty(t, check(&orderly().History), "the orderly history")
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			got := check(&c.history.History)
			require.Len(t, got, c.found, "%v\n%v", got, &c.history.History)
		})
	}
}
