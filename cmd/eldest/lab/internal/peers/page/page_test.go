package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at returns a cell of the report's tables.
func at(t *testing.T, r *peers.Report, setting, system, key string) cell {
	t.Helper()
	columns := columns(r)
	all, _ := tables(r, columns)
	for _, its := range all {
		for i, c := range columns {
			if row := its.of(system); its.Setting == setting && c.Key == key && row != nil {
				return row.Cells[i]
			}
		}
	}
	t.Fatalf("no cell %s %s %s", setting, system, key)
	return cell{}
}

// Less is better, equal figures are equally good, and cells with failed rounds or without some events are
// not the best.
func TestBestIsTheLeast(t *testing.T) {
	r := sample().Report
	best := func(setting, system, key string) bool { return at(t, r, setting, system, key).Best }
	require.True(t, best(peer.Defaults, "postgres", "handover"))
	require.False(t, best(peer.Defaults, "eldest", "handover"))
	require.False(t, best(peer.Defaults, "redis", "handover"), "the most")
	require.True(t, best(peer.Defaults, "eldest", "two-leaders"))
	require.True(t, best(peer.Defaults, "client-go", "two-leaders"), "a tie")
	require.False(t, best(peer.Defaults, "postgres", "two-leaders"))
	require.True(t, best(peer.Shortest, "eldest", "machine"), "ZooKeeper is not less: 460 ms")

	s := sample()
	s.find("zookeeper", peer.Shortest, "machine", "win").P50 = int64(100 * time.Millisecond)
	require.True(t, at(t, s.Report, peer.Shortest, "eldest", "machine").Best, "2 rounds of ZooKeeper had no next leader")
	s.find("zookeeper", peer.Shortest, "machine", "win").None = 0
	require.True(t, at(t, s.Report, peer.Shortest, "zookeeper", "machine").Best)
	require.False(t, at(t, s.Report, peer.Shortest, "eldest", "machine").Best)

	s.find("nats", peer.Defaults, "handover", "win").P50 = s.find("postgres", peer.Defaults, "handover", "win").P50 + 1
	require.True(t, at(t, s.Report, peer.Defaults, "nats", "handover").Best, "it is shown with the same digits")
	s.fail("postgres", peer.Defaults, "handover", "win", 1, "lost")
	require.False(t, at(t, s.Report, peer.Defaults, "postgres", "handover").Best, "a round failed")
}

// Every cell says something, and what is not a figure has a reason below the table.
func TestNoCellIsEmpty(t *testing.T) {
	s := sample()
	for setting, want := range map[string]map[string]string{
		"postgres machine":     {peer.Defaults: "none within 30 s; 10 rounds"},
		"postgres two-leaders": {peer.Defaults: "5 of 10; cut 5 of 10; no next leader within 30 s in 10 of 20"},
		"postgres fanout":      {peer.Defaults: "has none", peer.Shortest: "has none"},
		"nats join":            {peer.Shortest: "error; 2 of 2 rounds failed"},
		"client-go handover":   {peer.Shortest: "128 ms; max 139 ms, 17 rounds; 3 of 20 rounds failed"},
		"zookeeper machine":    {peer.Shortest: "455 ms; max 506 ms, 10 rounds; none within 30 s in 2 of 12"},
		"eldest two-leaders":   {peer.Defaults: "0 of 20; stop 0 of 10, cut 0 of 10"},
		"eldest memory":        {peer.Defaults: "9.80 KiB; 1 round"},
	} {
		system, key, _ := strings.Cut(setting, " ")
		for name, text := range want {
			got := at(t, s.Report, name, system, key)
			require.Equal(t, text, got.text())
			require.Equal(t, got.State == lacking || got.Failures != "", len(got.Notes) > 0, "%s has a note", setting)
		}
	}

	s.Incomplete = "interrupted"
	s.Results = s.Results[:20]
	s.Lacks = nil
	columns := columns(s.Report)
	all, notes := tables(s.Report, columns)
	for _, table := range all {
		for _, row := range table.Rows {
			require.True(t, row.Skipped != "" || len(row.Cells) == len(columns))
			for _, c := range row.Cells {
				require.NotEmpty(t, c.Figure)
				require.True(t, c.State == measured || len(c.Notes) > 0)
			}
		}
	}
	require.Contains(t, strings.Join(notes, "\n"), "not measured: the run ended early: interrupted")
}

// A system that did not take part is no reason to fail, nor is Eldest.
func TestWithoutEldest(t *testing.T) {
	s := sample()
	s.Systems = s.Systems[1:]
	kept := s.Results[:0]
	for _, x := range s.Results {
		if x.Contender != ours {
			kept = append(kept, x)
		}
	}
	s.Results = kept
	for _, r := range []*peers.Report{s.Report, {}} {
		var page, text bytes.Buffer
		require.NoError(t, HTML(&page, r))
		require.NoError(t, Markdown(&text, r))
		require.Contains(t, page.String(), "Eldest was not measured")
		require.Contains(t, text.String(), "Eldest was not measured")
	}
	_, err := Chart(&peers.Report{})
	require.ErrorIs(t, err, ErrNothing)
}

func TestPages(t *testing.T) {
	r := sample().Report
	var page, text bytes.Buffer
	require.NoError(t, HTML(&page, r))
	require.NoError(t, Markdown(&text, r))
	for _, out := range []string{page.String(), text.String()} {
		require.NotContains(t, out, "<script")
		require.NotContains(t, out, "<no value>")
		require.NotContains(t, out, "<nil>")
		require.Contains(t, out, "ours")
		require.Contains(t, out, "26 November 2026, 15:00 UTC")
		require.Contains(t, out, "nothing more is known to be unfair")
		require.NotContains(t, out, "To the advantage of all that write to a disk", "the data is on a disk")
		require.Contains(t, out, "Leaders that changed without a fault")
		require.Contains(t, out, "ZooKeeper (shortest): 3")
	}
	inMemory := sample().Report
	inMemory.Setup.Storage, inMemory.Unprovoked = "memory (tmpfs at /dev/shm)", nil
	for _, write := range []func(io.Writer, *peers.Report) error{HTML, Markdown} {
		var out bytes.Buffer
		require.NoError(t, write(&out, inMemory))
		require.Contains(t, out.String(), "To the advantage of all that write to a disk")
		require.NotContains(t, out.String(), "Leaders that changed without a fault")
	}
	require.NotContains(t, page.String(), `="javascript:`)
	require.NotRegexp(t, `[^\\]\]\(javascript:`, text.String())
	require.NotRegexp(t, `(?:src|href)="https?://[^"]*\.(?:css|js|png|svg)`, page.String(), "nothing is loaded")
	require.NotContains(t, page.String(), "<td></td>")
	require.NotRegexp(t, `\| *\|`, strings.ReplaceAll(text.String(), "| | |\n", ""), "an empty cell")
	require.NotRegexp(t, `(?m)^# heading`, text.String())
	require.Contains(t, text.String(), "](elections.svg)")
	require.Contains(t, text.String(), "](../comparison.md)")
	require.Contains(t, text.String(), "](https://example.org/recipe%281%29)")
	require.Contains(t, text.String(), "```sh not-run=\"a long run\"\neldest bench peers --rounds 10 --json FILE --html FILE\n```")

	// All rows of a table have as many cells as its header.
	width := 0
	for row := range strings.SplitSeq(text.String(), "\n") {
		cells := strings.Count(strings.ReplaceAll(row, `\|`, ""), "|")
		if width > 0 && cells > 0 {
			require.Equal(t, width, cells, row)
		}
		width = cells
	}

	data := regexp.MustCompile(`base64,([^"]+)"`).FindStringSubmatch(page.String())
	require.NotNil(t, data)
	decoded, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(data[1], "&#43;", "+"))
	require.NoError(t, err)
	var again peers.Report
	require.NoError(t, json.Unmarshal(decoded, &again))
	require.Len(t, again.Results, len(r.Results))
}

// The chart is XML, names each system in each panel, and lists what it cannot show.
func TestChart(t *testing.T) {
	r := sample().Report
	svg, err := Chart(r)
	require.NoError(t, err)
	dec := xml.NewDecoder(strings.NewReader(svg))
	for err == nil {
		_, err = dec.Token()
	}
	require.ErrorIs(t, err, io.EOF)
	for _, its := range r.Systems {
		require.Equal(t, 2, strings.Count(svg, ">"+strings.ReplaceAll(its.Title, "'", "&#39;")), its.Title)
	}
	require.NotContains(t, svg, "#000000")
	require.Equal(t, []string{"raft: skipped"}, undrawn(r))
	s := sample()
	s.fail("redis", peer.Defaults, "crash", "win", 10, "lost")
	s.fail("nats", peer.Defaults, "rest", "requests", 1, "lost")
	require.Equal(t, []string{
		"NATS JetStream (defaults): requests at rest were not measured", "Redis (defaults): one of the two faults has no figure", "raft: skipped",
	}, undrawn(s.Report))
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"1.61 ms": show(1_610_000, bench.Nanoseconds), "999 µs": show(999_400, bench.Nanoseconds), "1.00 ms": show(999_600, bench.Nanoseconds),
		"10.0 ms": show(9_996_000, bench.Nanoseconds), "1,234 s": show(1.234e12, bench.Nanoseconds), "0 s": show(0, bench.Nanoseconds),
		"5.30 KiB": show(5427, bench.Bytes), "12 B": show(12, bench.Bytes), "1,200": show(1200, bench.Counts),
		"131.25 min": span(7875 * time.Second), "500 ms": span(500 * time.Millisecond), "1.5 s": span(1500 * time.Millisecond), "1.05": times(1.054), "17": times(17.2),
	} {
		require.Equal(t, want, got)
	}
}
