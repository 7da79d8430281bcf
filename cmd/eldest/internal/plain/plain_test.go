package plain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unfit has one of each kind of text that a terminal or a reader would misinterpret.
var unfit = map[string]string{
	"escape": "\x1b[2J", "bell": "\a", "carriage return": "paid\rnot", "back space": "a\b", "delete": "\x7f", "NUL": "\x00",
	"title": "\x1b]0;owned\x07", "clipboard": "\x1b]52;c;cm0gLXJmCg==\x07", "8-bit CSI": "\u009b31m", "8-bit CSI, raw": "\x9b31m",
	"override": "\u202egnp.exe", "isolate": "\u2066x\u2069", "zero width": "ad\u200bmin", "joiner": "a\u200db", "BOM": "\ufeffx",
	"line separator": "a\u2028b", "tag": "a\U000E0041", "no UTF-8": "\xff\xfe", "half a rune": "é"[:1], "surrogate": "\xed\xa0\x80",
	"no-break space": "a\u00a0b", "private use": "\ue000", "noncharacter": "\uffff",
}

func TestUnfit(t *testing.T) {
	for name, text := range unfit {
		require.False(t, Fit(text), name)
		shown := Line(text)
		require.True(t, Fit(shown), "%s: %q", name, shown)
		require.Equal(t, shown, Line(shown), "quoting is for once")
		lines := Lines("one " + text + "\ntwo")
		require.True(t, Fit(strings.ReplaceAll(lines, "\n", "")), "%s: %q", name, lines)
		require.True(t, strings.HasPrefix(lines, "one ") && strings.HasSuffix(lines, "\ntwo"), "%s: %q", name, lines)
	}
	for _, text := range []string{"", "plain", "Grüße, 世界 €½ — ✓", `"quoted" \ 'x'`, "é", "e\u0301"} {
		require.True(t, Fit(text), "%q", text)
		require.Equal(t, text, Line(text))
		require.Equal(t, text, Lines(text))
		require.Equal(t, `"`+text+`"`+"\n", JSON(`"`+text+`"`+"\n"))
	}
	require.Equal(t, "a\tb\n", Lines("a\tb\n"))
}

// JSON means the same, and contains only fit characters.
func TestJSON(t *testing.T) {
	for name, text := range unfit {
		for _, indent := range []string{"", "\t"} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", indent)
			require.NoError(t, enc.Encode(map[string]string{text: text}))
			out := JSON(b.String())
			require.True(t, Fit(strings.NewReplacer("\n", "", "\t", "").Replace(out)), "%s: %q", name, out)
			var one, other map[string]string
			require.NoError(t, json.Unmarshal(b.Bytes(), &one))
			require.NoError(t, json.Unmarshal([]byte(out), &other), "%s: %q", name, out)
			require.Equal(t, one, other)
		}
	}
}

type inner struct{ Text string }

type outer struct {
	inner
	Inner  *inner
	None   *inner
	Many   []inner
	Lists  [][]string
	Map    map[string]inner
	Nobody map[string]string
	Number []int64
	Time   time.Time
}

func TestTexts(t *testing.T) {
	const bad, good = "\x1b", `"\x1b"`
	v := outer{
		inner: inner{bad}, Inner: &inner{bad}, Many: []inner{{bad}, {"fit"}}, Lists: [][]string{{bad}, nil},
		Map: map[string]inner{bad: {bad}, "fit": {"fit"}}, Number: []int64{1}, Time: time.Unix(1, 0),
	}
	Texts(&v)
	require.Equal(t, outer{
		inner: inner{good}, Inner: &inner{good}, Many: []inner{{good}, {"fit"}}, Lists: [][]string{{good}, nil},
		Map: map[string]inner{good: {good}, "fit": {"fit"}}, Number: []int64{1}, Time: time.Unix(1, 0),
	}, v)
}
