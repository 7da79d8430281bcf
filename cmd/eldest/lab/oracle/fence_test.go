package oracle

import "testing"

func TestFence(t *testing.T) {
	took := func(at int, token int64) []Event { return says(at, "a", FenceAccepted, token) }
	refused := func(at int, token int64) []Event { return says(at, "a", FenceRefused, token) }
	judged(t, Fence, map[string]trial{
		"an older token":          {timeline(took(1, 3), took(2, 2)), 1},
		"an older token, twice":   {timeline(took(1, 3), took(2, 2), took(3, 2)), 2},
		"in one instant":          {timeline(took(1, 3), took(1, 2)), 1},
		"refused the newest":      {timeline(took(1, 3), refused(2, 3)), 1},
		"refused the first":       {timeline(refused(1, 3)), 1},
		"refused makes no newest": {timeline(took(1, 2), took(2, 5), refused(3, 4), took(4, 3)), 1},
		"nothing":                 {timeline(), 0},
		"rising":                  {timeline(took(1, 2), took(2, 2), took(3, 3), refused(4, 2), took(5, 3)), 0},
	})
}

func TestLeftovers(t *testing.T) {
	left := func(what string) []Event { return []Event{{At: ms(1), Kind: Left, Text: what}} }
	judged(t, Leftovers, map[string]trial{
		"a lease":            {timeline(left("lease 1")), 1},
		"a lease and a key":  {timeline(left("lease 1"), left("key e/1")), 2},
		"nothing":            {timeline(), 0},
		"a queue is no such": {timeline(list(1, 2, 0xa)), 0},
	})
}
