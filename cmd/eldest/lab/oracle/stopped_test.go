package oracle

import (
	"testing"
	"time"
)

// A stop ends the interval of whoever is not sure at its first word after it, and of
// nobody else.
func TestI1Stopped(t *testing.T) {
	two := func() *story { return tell().put(0xa).put(0xb).is("a", Won, 2) }
	away := func() *story { return two().is("a", Stopped, 0).del(0xa, 2).is("b", Won, 3) }
	try(t, I1, []tried{
		{"still sure when it goes on", away().is("a", Continued, 0).is("a", Held, 2).is("a", Ended, 2), 1},
		{"sure when it goes on, not soon after", away().is("a", Continued, 0).is("a", Held, 2).is("a", LetGo, 2), 1},
		{"never goes on", away(), 1},
		{"went on before the win", two().is("a", Stopped, 0).is("a", Continued, 0).is("a", Held, 2).is("b", Won, 3).is("a", LetGo, 2), 1},
		{"stopped after the win", two().is("b", Won, 3).is("a", Stopped, 0).is("a", Continued, 0).is("a", LetGo, 2), 1},
		{"another was stopped", two().is("c", Stopped, 0).is("b", Won, 3).is("c", Continued, 0).is("a", LetGo, 2), 1},
		{"told of its win as it was stopped, and is sure later", tell().put(0xa).put(0xb).is("a", Stopped, 0).is("a", Won, 2).is("b", Won, 3).is("a", Continued, 0).is("a", Held, 2), 1},
		{"stopped before it won", tell().put(0xa).put(0xb).is("a", Stopped, 0).is("a", Continued, 0).is("a", Won, 2).is("b", Won, 3).is("a", LetGo, 2), 1},

		{"not sure when it goes on", away().is("a", Continued, 0).is("a", LetGo, 2).is("a", Ended, 2), 0},
		{"told of its win as it was stopped", tell().put(0xa).put(0xb).is("a", Stopped, 0).is("a", Won, 2).is("b", Won, 3).is("a", Continued, 0).is("a", LetGo, 2), 0},
		{"the end is its first word", away().is("a", Continued, 0).is("a", Ended, 2), 0},
		{"killed while it was stopped", away().is("a", Crashed, 0), 0},
	})
}

// Who is stopped when its key goes must say so when it goes on, and not later.
func TestI6Stopped(t *testing.T) {
	ended := Event{Who: "a", Kind: Ended, Token: 2}
	away := func() *story {
		return tell().join("a", 0xa).put(0xa).is("a", Won, 2).is("a", Stopped, 0).del(0xa, 2).wait(time.Minute)
	}
	try(t, I6, []tried{
		{"goes on and says it late", away().is("a", Continued, 0).wait(time.Second).at(ended), 1},
		{"goes on and never says it", away().is("a", Continued, 0), 1},
		{"went on before the key went", tell().join("a", 0xa).put(0xa).is("a", Won, 2).is("a", Stopped, 0).is("a", Continued, 0).wait(time.Second).del(0xa, 2).at(ended), 1},
		{"another was stopped", tell().join("a", 0xa).put(0xa).is("a", Won, 2).is("c", Stopped, 0).del(0xa, 2).at(ended).is("c", Continued, 0), 1},

		{"goes on and says it", away().is("a", Continued, 0).same(ended), 0},
		{"killed while it was stopped", away().is("a", Crashed, 0), 0},
	})
}

// A refusal excuses only a candidacy, and only while the server is in trouble.
func TestI7Denied(t *testing.T) {
	full := Event{Kind: Trouble, Until: time.Minute}
	denied := Event{Who: "a", Kind: Failed, Denied: true}
	try(t, I7, []tried{
		{"refused by a server that is well", tell().join("a", 0xa).at(denied), 1},
		{"not refused", tell().at(full).join("a", 0xa).is("a", Failed, 0), 1},
		{"refused in another's trouble", tell().at(Event{Who: "b", Kind: Trouble, Until: time.Minute}).join("a", 0xa).at(denied), 1},

		{"refused", tell().at(full).join("a", 0xa).at(denied), 0},
	})
}
