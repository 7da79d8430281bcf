package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarded is a read guarded by a token.
func guarded(asked, answered int, token int64, name string) []Event {
	r := read(asked, answered, name)
	r[0].Token = token
	return r
}

func TestLinear(t *testing.T) {
	x := wrote(10, 20, "a", 2, "x", Acked)
	for name, c := range map[string]struct {
		history *History
		found   int
	}{
		"a stale read":                 {timeline(x, wrote(30, 40, "a", 2, "y", Acked), read(50, 60, "x")), 1},
		"a lost write":                 {timeline(x, read(30, 40, "")), 1},
		"a read of what was refused":   {timeline(wrote(10, 20, "a", 2, "x", Refused), read(30, 40, "x")), 1},
		"a read of what nobody wrote":  {timeline(read(30, 40, "x")), 1},
		"a read before it was sent":    {timeline(read(1, 5, "x"), wrote(10, 20, "a", 2, "x", Unclear)), 1},
		"new, then old":                {timeline(x, wrote(30, 90, "a", 2, "y", Acked), read(40, 50, "y"), read(60, 70, "x")), 1},
		"unclear, seen, gone":          {timeline(x, wrote(30, 40, "a", 2, "u", Unclear), read(50, 60, "u"), read(70, 80, "x")), 1},
		"unclear, twice":               {timeline(wrote(10, 20, "a", 2, "u", Unclear), read(30, 40, "u"), wrote(50, 60, "a", 2, "y", Acked), read(70, 80, "u")), 1},
		"two leaders write":            {timeline(x, wrote(30, 40, "b", 3, "y", Acked), wrote(50, 60, "a", 2, "z", Acked)), 1},
		"deposed, and nobody wrote":    {timeline(won(1, 2, "a", 2), won(3, 30, "b", 3), wrote(40, 50, "a", 2, "x", Acked)), 1},
		"deposed, and reads on":        {timeline(x, won(3, 30, "b", 3), guarded(40, 50, 2, "x")), 1},
		"deposed, unclear, and seen":   {timeline(won(1, 30, "b", 3), wrote(40, 50, "a", 2, "u", ""), read(60, 70, "u")), 1},
		"a newer one's read, then old": {timeline(x, guarded(30, 40, 3, "x"), wrote(50, 60, "a", 2, "y", Acked)), 1},

		"nothing":                          {timeline(), 0},
		"one after the other":              {timeline(read(1, 2, ""), x, read(30, 40, "x"), wrote(50, 60, "b", 3, "y", Acked), read(70, 80, "y")), 0},
		"refused":                          {timeline(x, wrote(30, 40, "b", 3, "y", Refused), read(50, 60, "x")), 0},
		"unclear, never seen":              {timeline(x, wrote(30, 40, "a", 2, "u", Unclear), read(50, 60, "x")), 0},
		"unclear, late":                    {timeline(wrote(5, 6, "a", 2, "u", Unclear), x, read(50, 60, "x"), read(70, 80, "u"), read(90, 95, "u")), 0},
		"writer killed, late":              {timeline(wrote(5, 0, "a", 2, "u", ""), x, read(50, 60, "x"), read(70, 80, "u")), 0},
		"unclear, in the middle of a read": {timeline(read(1, 90, "u"), wrote(5, 6, "a", 2, "u", Unclear), x), 0},
		"unclear, overtaken by the next":   {timeline(wrote(5, 6, "a", 2, "u", Unclear), read(7, 40, "u"), wrote(20, 30, "b", 3, "y", Acked), read(50, 60, "y")), 0},
		"one instant, any order":           {timeline(x, wrote(30, 30, "a", 2, "y", Acked), read(30, 30, "x"), read(30, 30, "y")), 0},
		"overlapping":                      {timeline(wrote(10, 50, "a", 2, "x", Acked), wrote(20, 40, "a", 2, "y", Acked), read(60, 70, "x")), 0},
		"on its way at the next's win":     {timeline(wrote(10, 50, "a", 2, "x", Acked), won(1, 30, "b", 3), read(60, 70, "x")), 0},
		"a win told late":                  {timeline(won(1, 30, "b", 3), wrote(40, 50, "b", 3, "y", Acked), won(1, 60, "a", 2), wrote(70, 80, "b", 3, "z", Acked)), 0},
		"guarded reads":                    {timeline(x, guarded(30, 40, 2, "x"), guarded(50, 60, 3, "x")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, enough := range []int{1, 1000} { // cut wherever that is possible, and nowhere
				got := linear(c.history, effort, enough)
				require.Len(t, got, c.found, "%v", got)
			}
		})
	}
}

// The operation that does not fit is named, and the picture shows it.
func TestPicture(t *testing.T) {
	h := timeline(
		wrote(10, 20, "a", 2, "first", Acked), read(30, 40, "first"),
		wrote(50, 60, "a", 2, "second", Acked), read(70, 80, "first"), read(90, 100, "second"),
	)
	got := Linear(h)
	require.Len(t, got, 1)
	require.Equal(t, ms(70), got[0].At)
	require.Contains(t, got[0].Text, `(r reads "first"), from 70ms to 80ms, does not`)

	path := filepath.Join(t.TempDir(), "picture.html")
	require.NoError(t, h.Picture(path))
	html, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, part := range []string{"<html", `r reads \"first\"`, `a, by 2, writes \"second\"`} {
		require.Contains(t, string(html), part)
	}
	require.ErrorIs(t, h.Picture(filepath.Join(t.TempDir(), "absent", "file")), os.ErrNotExist)
	require.NoError(t, timeline().Picture(path), "of nothing")
}

// What is too hard to judge is not taken for good.
func TestTooHard(t *testing.T) {
	var all [][]Event
	for i := range 12 {
		all = append(all, wrote(10, 50, "a", 2, string(rune('a'+i)), Acked))
	}
	all = append(all, read(60, 70, "a"), read(80, 90, "b"))
	got := linear(timeline(all...), 100, enough)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Text, "INVALID")
	got = linear(timeline(all...), effort, enough)
	require.Len(t, got, 1)
	require.NotContains(t, got[0].Text, "INVALID")
}
