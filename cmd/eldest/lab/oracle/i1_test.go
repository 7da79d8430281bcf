package oracle

import "testing"

func TestI1(t *testing.T) {
	two := func() *story { return tell().put(0xa).put(0xb).is("a", Won, 2) }
	try(t, I1, []tried{
		{"two leaders", two().del(0xa, 2).is("b", Won, 3).is("a", Ended, 2), 1},
		{"two leaders for ever", two().is("b", Won, 3), 1},
		{"sure at the other's win", two().is("b", Won, 3).same(Event{Who: "a", Kind: Held, Token: 2}).is("a", Ended, 2), 1},
		{"three leaders are three pairs", two().is("b", Won, 3).is("c", Won, 4), 3},
		{"one instant, wrong order", two().at(Event{Who: "b", Kind: Won, Token: 3}).same(Event{Who: "a", Kind: Ended, Token: 2}), 1},
		{"one instant, right order", two().at(Event{Who: "a", Kind: Ended, Token: 2}).same(Event{Who: "b", Kind: Won, Token: 3}), 0},
		{"asked at the win, not sure", two().at(Event{Who: "a", Kind: LetGo, Token: 2, By: "b"}).same(Event{Who: "b", Kind: Won, Token: 3}).same(Event{Who: "a", Kind: Ended, Token: 2}), 0},
		{"asked at the win, sure, and told of the end before the win was told", two().at(Event{Who: "a", Kind: Held, Token: 2, By: "b"}).same(Event{Who: "a", Kind: Ended, Token: 2}).same(Event{Who: "b", Kind: Won, Token: 3}), 1},
		{"asked at another's win, sure then, not at this one", two().at(Event{Who: "a", Kind: Held, Token: 2, By: "c"}).same(Event{Who: "a", Kind: Ended, Token: 2}).same(Event{Who: "b", Kind: Won, Token: 3}), 0},
		{"asked at the win before, sure then, not at this one", two().at(Event{Who: "a", Kind: Held, Token: 2, By: "b"}).at(Event{Who: "a", Kind: Ended, Token: 2}).same(Event{Who: "b", Kind: Won, Token: 3}), 0},
		{"lapsed at the instant of the win, told after it", two().at(Event{Who: "b", Kind: Won, Token: 3}).same(Event{Who: "a", Kind: Ended, Token: 2, Lost: true}), 1},
		{"let go before the end was told", two().is("a", LetGo, 2).is("b", Won, 3).is("a", Ended, 2), 0},
		{"crashed and succeeded", two().is("a", Crashed, 0).is("b", Won, 3), 0},
		{"resigning is the end", two().is("a", Resigning, 2).is("b", Won, 3).is("a", Ended, 2), 0},
		{"removed by hand", two().is("admin", Removed, 2).is("b", Won, 3).is("a", Ended, 2), 0},
		{"removed by hand too late to excuse", two().is("b", Won, 3).is("admin", Removed, 2).is("a", Ended, 2), 1},
		{"the removal of a third's key excuses nothing", two().is("admin", Removed, 4).is("b", Won, 3), 1},
		{"won late, removed by hand meanwhile", two().is("admin", Removed, 3).is("b", Won, 3), 0},
		{"the same again", two().is("a", Ended, 2).is("a", Won, 5).is("b", Won, 6), 1},
	})
}
