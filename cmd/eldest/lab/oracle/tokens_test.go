package oracle

import "testing"

func TestTokens(t *testing.T) {
	b := won(1, 50, "b", 3)
	judged(t, Tokens, map[string]trial{
		"back":                         {timeline(b, won(60, 70, "a", 2)), 1},
		"back, after several":          {timeline(b, won(1, 60, "c", 5), won(1, 70, "d", 4)), 1},
		"the same twice":               {timeline(b, says(55, "b", Ended, 3), won(60, 70, "b", 3)), 1},
		"another with the same":        {timeline(b, won(60, 70, "a", 3)), 1},
		"another's key taken":          {timeline(b, removed(40, 3), won(1, 70, "a", 2)), 1},
		"its key taken later":          {timeline(b, won(1, 70, "a", 2), removed(80, 2)), 1},
		"stopped before its campaign":  {timeline(paused(1, 5, "a"), b, won(60, 70, "a", 2)), 1},
		"another was stopped":          {timeline(paused(20, 60, "c"), b, won(1, 70, "a", 2)), 1},
		"nothing":                      {timeline(), 0},
		"rising":                       {timeline(b, won(1, 60, "c", 5), won(70, 80, "b", 6)), 0},
		"told late, it was stopped":    {timeline(paused(20, 60, "a"), b, won(1, 70, "a", 2)), 0},
		"told late, taken by hand":     {timeline(b, removed(40, 2), won(1, 70, "a", 2)), 0},
		"told late, its lease revoked": {timeline(b, revoked(40, 2), won(1, 70, "a", 2)), 0},
	})
}
