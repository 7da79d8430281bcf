package lab

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// markup are texts that could escape from a context of a page: from text, an attribute with either
// kind of quotes, a comment, CSS, a script, SVG, a template, or the page's own conversion of its
// pictures.
var markup = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `" autofocus onfocus="alert(1)`,
	`--><svg onload=alert(1)>`, `]]><script>alert(1)</script>`, `</style><script>alert(1)</script>`, `</script><script>alert(1)//`,
	`</text></svg><iframe src="javascript:alert(1)">`, `<a href="javascript:alert(1)">`, `{{.}}{{define "x"}}`, `</title><base href="//evil.test/">`,
	`font-family:x`, `font-family:"><script>alert(1)</script>`, `<svg x=">`, `#010201#010206`, `expression(alert(1));background:url(//evil.test)`,
	`&lt;script&gt;`, `\u003cscript\u003e`, "\x00<script>", "<scr\u0000ipt>", "\u2028alert(1)//", `%3Cscript%3E`, `</textarea><form action=//evil.test><button>`,
	`<!--`, `<![CDATA[`, `<?xml version="1.0"?>`, `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;`, `..\..\..\x`, `../../../x`,
}

// requirePage requires that a page has only elements and attributes that our pages have, and no
// address outside the page. It returns the page's text.
func requirePage(t *testing.T, page []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	var text strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			text.WriteString(n.Data)
		case html.CommentNode, html.ErrorNode:
			require.Fail(t, "not ours", "%v %q", n.Type, n.Data)
		case html.ElementNode:
			require.Contains(t, elements, n.Data, "an element that is not ours")
			for _, a := range n.Attr {
				require.Contains(t, attributes, a.Key, "an attribute that is not ours: of <%s>, %q", n.Data, a.Val)
				switch a.Key {
				case "href":
					require.Regexp(t, `^#run-\d+$`, a.Val)
				case "style":
					require.NotContains(t, a.Val, "url(")
					require.NotContains(t, a.Val, "expression")
				}
			}
		}
	}
	return text.String()
}

var (
	elements = strings.Fields(`html head meta title style body header h1 p nav a b main section h2 h3 dl div dt dd pre figure
		table thead tbody tr th td ul li footer svg g path text`)
	attributes = strings.Fields(`lang charset name content href id class style colspan viewbox viewBox xmlns xlink xmlns:xlink role aria-label
		transform d x y width height fill`)
)

// requirePicture requires the same of an SVG file.
func requirePicture(t *testing.T, picture string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "no XML")
		switch token := token.(type) {
		case xml.StartElement:
			require.Contains(t, elements, token.Name.Local)
			for _, a := range token.Attr {
				require.Contains(t, attributes, a.Name.Local, "of <%s>, %q", token.Name.Local, a.Value)
			}
		case xml.Directive, xml.ProcInst, xml.Comment:
			require.Fail(t, "not ours", "%v", token)
		}
	}
}

// FuzzReport: a benchmark's file with any content is refused, or shown as tables, JSON, a page and
// pictures, which contain its content as text only.
func FuzzReport(f *testing.F) {
	for i, text := range markup {
		f.Add([]byte(nil), text, markup[(i+7)%len(markup)], 2, []byte{1, 2, 200}, 3)
	}
	for _, text := range []string{clitest.Hostile, strings.Repeat(`"><script>`, 100), "", " ", "ns", "eldest", "concurrency", "bound", "win", "two-leaders", "handover", "cut"} {
		f.Add([]byte(nil), text, "win", -1, []byte{0, 0}, -1)
	}
	for _, raw := range []string{
		`{}`, `{"scenario":"x"}`, `{"scenario":"x"}{"scenario":"y"}`, `{"runs":[]}`, `{"runs":[{"scenario":"x"},{}]}`, `[1]`, `null`, `{"scenario":"x","time":"\u001b"}`,
		`{"scenario":"cut","members":-1,"seconds":1e308,"results":[{"contender":"eldest","n":9223372036854775807,"unit":"ns","samples":[9223372036854775807,-9223372036854775808]}]}`,
		`{"scenario":"x","results":[{"samples":null,"errors":9223372036854775807,"rounds":-1}]}`, `{"scenario":"x","results":[{"contender":"a","unit":"B","samples":[0]},{"contender":"concurrency","unit":"B","samples":[1]}]}`,
	} {
		f.Add([]byte(raw), "", "", 0, []byte(nil), 0)
	}
	f.Fuzz(func(t *testing.T, raw []byte, text, other string, n int, samples []byte, count int) {
		made := len(raw) == 0 // of text and the others
		if made {
			run := hostileRun(text)
			for i := range run.Results {
				x := &run.Results[i]
				x.N, x.Errors, x.Rounds, x.Regime = n*(i%3), count, count*i, other
				if i%2 == 0 {
					x.Metric = other
				}
				for j, s := range samples[:min(len(samples), 50)] {
					// Small samples, and the largest possible.
					x.Samples = append(x.Samples, int64(s)<<(uint(j*i)%60))
				}
			}
			var err error
			raw, err = json.Marshal(run)
			require.NoError(t, err)
		}
		runs, err := figures.Read(bytes.NewReader(raw))
		if err != nil {
			require.ErrorIs(t, err, figures.ErrForeign)
			clitest.RequireTame(t, "the error", plain.Lines(err.Error()))
			return
		}
		var table, page, document bytes.Buffer
		require.NoError(t, figures.Write(&document, runs))
		clitest.RequireTame(t, "JSON", document.String())
		again, err := figures.Read(bytes.NewReader(document.Bytes()))
		require.NoError(t, err)
		require.Equal(t, len(runs), len(again))
		var twice bytes.Buffer
		require.NoError(t, figures.Write(&twice, again))
		require.Equal(t, document.String(), twice.String(), "what is written changes when it is read")
		if len(runs) == 0 {
			return
		}
		for _, r := range runs {
			require.NoError(t, figures.Table(&table, r, story.Style{}))
		}
		clitest.RequireTame(t, "table", table.String())
		require.NoError(t, figures.Page(&page, runs))
		shown := requirePage(t, page.Bytes())
		if made && utf8.ValidString(text) && plain.Fit(text) {
			require.Contains(t, shown, text, "it is shown, though")
		}
		files, err := figures.Files(runs)
		require.NoError(t, err)
		for _, file := range files {
			require.Regexp(t, `^[a-z0-9-]*\.svg$`, file.Name)
			requirePicture(t, file.SVG)
		}
	})
}

// hostileRun returns a benchmark's report with the text in each of its text fields.
func hostileRun(text string) *bench.Report {
	run := &bench.Report{
		Scenario: text, Summary: text, Go: text, Etcd: text, Members: 3, Incomplete: text, Notes: []string{text, "fit"},
		Setup: bench.Setup{
			Eldest: text, Command: text, CPU: text, OS: text, Arch: text, Storage: text,
			Load: 1, Written: map[string]bench.Written{text: {PerSecond: 1, Failed: 1}},
		},
	}
	for i, contender := range []string{text, "eldest", "concurrency"} {
		for _, n := range []int{2, 50} {
			run.Results = append(run.Results, bench.Result{
				Contender: contender, Regime: text, N: n, Metric: text, Unit: bench.Nanoseconds, Rounds: 4, Errors: 1, FirstError: text,
				Min: 1, P50: int64(2 + i), P90: 3, P99: 3, Max: 3, Mean: 2, Sum: 6, Samples: []int64{1, int64(2 + i), 3},
			}, bench.Result{
				Contender: contender, Regime: text, N: n, Metric: "other" + text, Unit: text, Rounds: 1, Samples: []int64{int64(i)},
			})
		}
	}
	return run
}

// A benchmark's file and its name are untrusted: output and errors must be safe for terminals, and nothing is written
// elsewhere.
func TestReportsOfOthersDoNothingToATerminal(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), clitest.Hostile+".json"), t.TempDir()
	report := func(document any, args ...string) (code int, stdout string) {
		data, err := json.Marshal(document)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		code, stdout, stderr := runLine(t, append([]string{"bench", "report", path}, args...)...)
		clitest.RequireTame(t, "output", stdout)
		clitest.RequireTame(t, "errors", stderr)
		return code, stdout
	}
	for _, args := range [][]string{nil, {"--json"}, {"--html", filepath.Join(dir, "html"), "--svg", filepath.Join(dir, "pictures")}} {
		code, stdout := report(hostileRun(clitest.Hostile), args...)
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "owned")
	}
	page, err := os.ReadFile(filepath.Join(dir, "html"))
	require.NoError(t, err)
	requirePage(t, page)
	written, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, written, 2)
	for _, bad := range []any{clitest.Hostile, map[string]any{"scenario": "x", clitest.Hostile: 1, "results": clitest.Hostile}} {
		code, _ := report(bad)
		require.Equal(t, cli.ExitUsage, code)
	}
}
