package oracle

import "testing"

func TestI2(t *testing.T) {
	try(t, I2, []tried{
		{"without a key", tell().write(2, "w"), 1},
		{"after the key's end", tell().put(0xa).del(0xa, 2).write(2, "w"), 1},
		{"before the key's beginning", tell().write(3, "w").put(0xa), 1},
		{"by a waiter", tell().put(0xa).put(0xb).write(3, "w"), 1},
		{"by one deposed, after the next", tell().put(0xa).put(0xb).del(0xa, 2).write(2, "w"), 1},
		{"by nobody known", tell().put(0xa).change(Change{Key: "data", Value: "?"}), 1},
		{"sent by a stranger", tell().put(0xa).is("a", Won, 2).by("b", Sent, 2, "w"), 1},
		{"sent before there was a winner", tell().put(0xa).writes(Sent, 2, "w"), 1},
		{"sent by the winner", tell().put(0xa).is("a", Won, 2).writes(Sent, 2, "w"), 0},
		{"just before the key's end", tell().put(0xa).write(2, "w").del(0xa, 2), 0},
		{"while others wait", tell().put(0xa).put(0xb).write(2, "w"), 0},
		{"by the next", tell().put(0xa).put(0xb).del(0xa, 2).write(3, "w"), 0},
		{"a waiter that left does not count", tell().put(0xa).put(0xb).del(0xb, 3).write(2, "w"), 0},
	})
}
