package oracle

import "testing"

func TestI4(t *testing.T) {
	queued := func() *story { return tell().join("a", 0xa).put(0xa).join("b", 0xb).put(0xb) }
	proven := func(token, proof int64) Event { return Event{Who: "b", Kind: Proven, Token: token, Proof: proof} }
	try(t, I4, []tried{
		{"phantom", queued().del(0xb, 3).del(0xa, 2).is("b", Won, 3), 1},
		{"never a key", queued().is("b", Won, 9), 1},
		{"too early", queued().is("b", Won, 3), 1},
		{"behind a waiter", queued().join("c", 0xc).put(0xc).del(0xb, 3).is("c", Won, 4), 1},
		{"gone before the campaign began", tell().put(0xa).del(0xa, 2).join("a", 0xa).is("a", Won, 2), 1},
		{"proof before the predecessor went", queued().del(0xa, 2).is("b", Won, 3).at(proven(3, 3)), 1},
		{"proof after the own key went", queued().del(0xa, 2).del(0xb, 3).is("b", Won, 3).at(proven(3, 5)), 1},
		{"proof at the predecessor's deletion", queued().del(0xa, 2).is("b", Won, 3).at(proven(3, 4)), 0},
		{"key gone by the time of the win", queued().del(0xa, 2).del(0xb, 3).is("b", Won, 3).at(proven(3, 4)), 0},
		{"nobody knows when", queued().del(0xa, 2).is("b", Won, 3).blind(), 0},
		{"phantom, and nobody knows when", queued().del(0xb, 3).del(0xa, 2).is("b", Won, 3).blind(), 1},
		{"in order", queued().is("a", Won, 2).is("a", Ended, 2).del(0xa, 2).is("b", Won, 3), 0},
	})
}
