package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestI3(t *testing.T) {
	one := func(kind Kind) *story { return tell().put(0xa).writes(Sent, 2, "w").writes(kind, 2, "w") }
	try(t, I3, []tried{
		{"acknowledged and lost", one(Acked), 1},
		{"acknowledged and there twice", one(Acked).write(2, "w").write(2, "w"), 1},
		{"refused and there", one(Refused).write(2, "w"), 1},
		{"unclear and there twice", one(Unclear).write(2, "w").write(2, "w"), 1},
		{"writer dead, there twice", tell().writes(Sent, 2, "w").is("a", Crashed, 0).write(2, "w").write(2, "w"), 1},
		{"never sent", tell().put(0xa).is("a", Won, 2).write(2, "w"), 1},
		{"deleted", one(Acked).write(2, "w").change(Change{Key: "data", Deleted: true}), 1},
		{"acknowledged and lost, then unclear", one(Acked).writes(Unclear, 2, "w"), 1},
		{"acknowledged at another revision", one(Sent).at(Event{Who: "a", Kind: Acked, Token: 2, Write: "w", Commit: 9}).write(2, "w"), 1},
		{"acknowledged at its revision", one(Sent).at(Event{Who: "a", Kind: Acked, Token: 2, Write: "w", Commit: 3}).write(2, "w"), 0},
		{"another key deleted", one(Acked).write(2, "w").change(Change{Key: "date", Deleted: true}), 0},
		{"token going back", tell().writes(Sent, 3, "x").writes(Sent, 2, "w").write(3, "x").write(2, "w"), 1},
		{"unclear and there", one(Unclear).write(2, "w"), 0},
		{"unclear and lost", one(Unclear), 0},
		{"refused and not there", one(Refused), 0},
		{"token rising", tell().writes(Sent, 3, "x").writes(Sent, 2, "w").write(2, "w").write(3, "x"), 0},
	})
}

// Where tenures are opened, a run in which none was is as wrong as one in which one was not.
func TestTenuresAreOpened(t *testing.T) {
	h := tell().put(0xa).writes(Sent, 2, "w").write(2, "w").History
	h.Opens = true
	require.Len(t, I3(&h), 1)
	h.Changes[1].Opens = true
	require.Empty(t, Rising(&h))
}
