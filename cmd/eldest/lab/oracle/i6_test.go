package oracle

import (
	"testing"
	"time"
)

func TestI6(t *testing.T) {
	led := func() *story { return tell().join("a", 0xa).put(0xa).is("a", Won, 2) }
	byHand := func(unimpeded bool) Event { return Event{Who: "admin", Kind: Removed, Token: 2, Clear: unimpeded} }
	ended := Event{Who: "a", Kind: Ended, Token: 2}
	try(t, I6, []tried{
		{"told after the expiry", led().del(0xa, 2).at(ended), 1},
		{"never told", led().del(0xa, 2), 1},
		{"two ends", led().at(ended).at(ended), 2}, // once as a state, once as a count
		{"end without a win", tell().join("a", 0xa).at(ended), 1},
		{"end of another tenure", led().at(Event{Who: "a", Kind: Ended, Token: 3}), 1},
		{"win without a campaign", tell().put(0xa).is("a", Won, 2), 1},
		{"failed and won", tell().join("a", 0xa).put(0xa).is("a", Failed, 0).is("a", Won, 2), 1},
		{"campaign while leading", led().join("a", 0xa), 1},
		{"removed by hand, told late", led().at(byHand(true)).del(0xa, 2).wait(2 * time.Second).at(ended), 1},
		{"waits on without a key", tell().join("b", 0xb).put(0xb).at(byHand(true)).del(0xb, 2).wait(2*time.Second).is("b", Failed, 0), 1},
		{"does not leave", led().is("a", Stuck, 0).at(ended), 1},

		{"told at the instant of the expiry", led().del(0xa, 2).same(ended), 0},
		{"told before the expiry", led().at(ended).del(0xa, 2), 0},
		{"crashed", led().is("a", Crashed, 0).del(0xa, 2), 0},
		{"removed by hand, told soon", led().at(byHand(true)).del(0xa, 2).same(ended), 0},
		{"removed by hand behind a cut", led().at(byHand(false)).del(0xa, 2).wait(2 * time.Second).at(ended), 0},
		{"waiter says so soon", tell().join("b", 0xb).put(0xb).at(byHand(true)).del(0xb, 2).same(Event{Who: "b", Kind: Failed}), 0},
		{"waiter behind a cut", tell().join("b", 0xb).put(0xb).at(byHand(false)).del(0xb, 2).wait(2*time.Second).is("b", Failed, 0), 0},
	})
}
