package metrics_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/metrics"
)

// The table of the documentation and the list of the package comment agree with the code: each
// metric, with its type, its labels and its meaning, and no other.
func TestNamesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/observability/metrics.md")
	require.NoError(t, err)
	var documented []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `eldest_") {
			documented = append(documented, strings.TrimSpace(line))
		}
	}
	require.Equal(t, metrics.Rows(), documented, "the table should be:\n%s", strings.Join(metrics.Rows(), "\n"))

	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var listed []string
	for _, found := range regexp.MustCompile(`(?m)^//\t(eldest_\w+)  `).FindAllStringSubmatch(string(doc), -1) {
		listed = append(listed, found[1])
	}
	require.ElementsMatch(t, metrics.Names(), listed)
}

// A scrape shows what is documented: with the help, and each label value from the start.
func TestScrapeShowsWhatIsDocumented(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New("e"), metrics.NewService("e"))
	families, err := registry.Gather()
	require.NoError(t, err)
	shown := make(map[string]bool)
	for _, family := range families {
		shown[family.GetName()] = true
		var row string
		for _, r := range metrics.Rows() {
			if strings.HasPrefix(r, "| `"+family.GetName()+"` |") {
				row = r
			}
		}
		require.Contains(t, row, "| "+strings.ToLower(family.GetType().String())+" |", family.GetName())
		require.Contains(t, row, "| "+family.GetHelp()+" |")
		values := 1
		for _, list := range regexp.MustCompile(`\((.*?)\)`).FindAllString(strings.Split(row, "|")[3], -1) {
			values *= len(strings.Split(list, ","))
		}
		require.Len(t, family.GetMetric(), values, family.GetName())
	}
	for _, name := range metrics.Names() {
		// No observer watches the queue yet, so its length is unknown.
		require.Equal(t, name != "eldest_queue_length", shown[name], name)
	}
}

// Prometheus' own rules for names, units and help texts.
func TestNamesFollowTheConventions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New("e"), metrics.NewService("e"))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A registry accepts many elections; the same election a second time is refused, unless a label
// distinguishes the two.
func TestManyElectionsInOneRegistry(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	for i := range 1000 {
		require.NoError(t, registry.Register(metrics.New("election-"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i))))
	}
	n, err := testutil.GatherAndCount(registry, "eldest_state")
	require.NoError(t, err)
	require.Equal(t, 3000, n)

	second := prometheus.NewPedanticRegistry()
	require.NoError(t, second.Register(metrics.New("e")))
	require.Error(t, second.Register(metrics.New("e")))

	third := prometheus.NewPedanticRegistry()
	require.NoError(t, prometheus.WrapRegistererWith(prometheus.Labels{"node": "a"}, third).Register(metrics.New("e")))
	require.NoError(t, prometheus.WrapRegistererWith(prometheus.Labels{"node": "b"}, third).Register(metrics.New("e")))
	n, err = testutil.GatherAndCount(third, "eldest_token")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// A name may be any bytes, but a label must be valid UTF-8.
func TestNamesThatAreNoText(t *testing.T) {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics.New("a\xffb")))
	require.NoError(t, registry.Register(metrics.NewService("a\xffb")))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "election" {
					require.Equal(t, "a\ufffdb", l.GetValue())
				}
			}
		}
	}
}
