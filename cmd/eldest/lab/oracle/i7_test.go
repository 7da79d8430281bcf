package oracle

import (
	"testing"
	"time"
)

func TestI7(t *testing.T) {
	quiet := Event{Kind: Quiet}
	lost := Event{Who: "a", Kind: Ended, Token: 2, Lost: true}
	ttl := func(s *story) *story { s.TTL = 3 * time.Second; return s }
	trouble := func(who string, until time.Duration) Event { return Event{Who: who, Kind: Trouble, Until: until} }
	led := func() *story { return tell().join("a", 0xa).put(0xa).same(Event{Who: "a", Kind: Won, Token: 2}) }
	queued := func() *story { return led().join("b", 0xb).put(0xb) }
	try(t, I7, []tried{
		{"lost for nothing", ttl(led().at(lost)), 1},
		{"lost long after the trouble", ttl(tell().at(trouble("a", 2*time.Second)).wait(20*time.Second).join("a", 0xa).put(0xa).same(Event{Who: "a", Kind: Won, Token: 2}).at(lost)), 1},
		{"lost in another's trouble", ttl(led().at(trouble("b", 9*time.Second)).at(lost)), 1},
		{"slow successor", queued().del(0xa, 2).wait(time.Second).at(Event{Who: "b", Kind: Won, Token: 3}).at(quiet), 1},
		{"no successor", queued().del(0xa, 2).wait(time.Second).at(quiet), 1},
		{"is to give way and does not", queued().del(0xa, 2).is("b", Yielded, 0).wait(2 * time.Second).at(quiet), 1},
		{"was to give way long ago", queued().is("b", Yielded, 0).wait(time.Second).del(0xa, 2).wait(2 * time.Second).at(quiet), 1},
		{"waiter gives up", queued().is("b", Failed, 0), 1},
		{"leader gives up", led().is("a", Ended, 2), 1},
		{"told to leave before, not now", tell().join("a", 0xa).is("a", Leaving, 0).is("a", Failed, 0).join("a", 0xa).is("a", Failed, 0), 1},

		{"told to leave", queued().is("b", Leaving, 0).is("b", Failed, 0), 0},
		{"resigned", led().is("a", Resigning, 2).is("a", Ended, 2), 0},
		{"taken away", queued().at(Event{Kind: Removed, Key: key(0xb)}).is("b", Failed, 0), 0},
		{"lost in trouble", ttl(led().at(trouble("a", 9*time.Second)).at(lost)), 0},
		{"lost when the server had trouble", ttl(led().at(trouble("", 9*time.Second)).at(lost)), 0},
		{"lost to a hand", ttl(led().at(Event{Kind: Removed, Key: key(0xa)}).at(lost)), 0},
		{"prompt successor", queued().del(0xa, 2).same(Event{Who: "b", Kind: Won, Token: 3}).at(quiet), 0},
		{"gives way after a while", queued().del(0xa, 2).same(Event{Who: "b", Kind: Yielded}).wait(time.Second).del(0xb, 3).wait(2 * time.Second).at(quiet), 0},
		{"leads after all", queued().del(0xa, 2).same(Event{Who: "b", Kind: Yielded}).wait(time.Second).same(Event{Who: "b", Kind: Won, Token: 3}).wait(2 * time.Second).at(quiet), 0},
		{"successor in trouble", queued().at(trouble("b", 30*time.Second)).del(0xa, 2).wait(time.Second).at(quiet), 0},
		{"successor withdraws just then", queued().del(0xa, 2).same(Event{Who: "b", Kind: Leaving}).same(Event{Who: "b", Kind: Failed}).wait(time.Second).at(quiet), 0},
		{"successor died before", queued().at(Event{Who: "b", Kind: Crashed}).del(0xa, 2).wait(time.Second).at(quiet), 0},
	})
}
