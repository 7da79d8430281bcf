package oracle

import "testing"

// handedOver is the report of a transfer from the leader to the target, planned at a
// revision, in which others stepped back to the given tokens.
func (s *story) handedOver(leader, target, plan int64, tokens ...int64) *story {
	return s.at(Event{
		Who: "operator", Kind: Transferred, Token: target, Proof: leader, Plan: plan, Commit: s.rev, Tokens: tokens, Text: KeepsOrder,
	})
}

func TestTransfers(t *testing.T) {
	queue := func() *story { return tell().put(0xa).put(0xb).put(0xc).put(0xd) } // 2, 3, 4, 5
	loose := queue().del(0xb, 3).put(0xb).del(0xa, 2).handedOver(2, 4, 5, 7)     // d was to step back, too
	loose.Events[0].Text = ""
	try(t, Transfers, []tried{
		{"to the next in line", queue().del(0xa, 2).handedOver(2, 3, 5), 0},
		{"to the third, in order", queue().del(0xb, 3).put(0xb).del(0xd, 5).put(0xd).del(0xa, 2).handedOver(2, 4, 5, 7, 9), 0},
		{"those behind were passed", queue().del(0xb, 3).put(0xb).del(0xa, 2).handedOver(2, 4, 5, 7), 1},
		{"those behind may pass", loose, 0},
		{"one left by itself and came back", queue().del(0xb, 3).put(0xb).del(0xd, 5).put(0xd).del(0xb, 7).put(0xb).del(0xa, 2).handedOver(2, 4, 5, 7, 9), 0},
		{"the leader came back", queue().del(0xa, 2).put(0xa).handedOver(2, 3, 5), 0},
		{"the target is not the oldest", queue().del(0xa, 2).handedOver(2, 4, 5), 1},
		{"the target has gone", queue().del(0xa, 2).del(0xb, 3).handedOver(2, 3, 5), 1},
		{"the leader is still there", queue().handedOver(2, 3, 5), 1},
		{"somebody was in between", queue().del(0xa, 2).del(0xb, 3).handedOver(2, 4, 5), 1},
		{"no such life", queue().handedOver(2, 9, 5), 1},
	})
}
