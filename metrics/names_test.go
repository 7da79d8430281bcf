package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/metrics"
)

// The table of the documentation agrees with the code: each metric, with its type, its labels and its
// meaning, and no other.
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
}

// A scrape shows what is documented: with the help, and each label value from the start; by
// Prometheus' own rules for names, units and help texts.
func TestScrapeShowsWhatIsDocumented(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New("e"), metrics.NewService("e"))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, row := range metrics.Rows() {
		columns := strings.Split(strings.Trim(row, "| "), " | ")
		family := named(families, strings.Trim(columns[0], "`"))
		if columns[0] == "`eldest_queue_length`" { // no observer watches the queue yet
			require.Nil(t, family)
			continue
		}
		require.Equal(t, columns[1], strings.ToLower(family.GetType().String()), row)
		require.Equal(t, columns[3], family.GetHelp(), row)
		values := 1
		for _, list := range regexp.MustCompile(`\((.*?)\)`).FindAllString(columns[2], -1) {
			values *= len(strings.Split(list, ","))
		}
		require.Len(t, family.GetMetric(), values, row)
	}
	require.Len(t, families, len(metrics.Rows())-1)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A registry accepts many elections; the same election a second time is refused, unless a label
// distinguishes the two.
func TestManyElectionsInOneRegistry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for i := range 100 {
		require.NoError(t, registry.Register(metrics.New(fmt.Sprint("e", i))))
	}
	require.Error(t, registry.Register(metrics.New("e7")))
	n, err := testutil.GatherAndCount(registry, "eldest_state")
	require.NoError(t, err)
	require.Equal(t, 3*100, n)
	labelled := prometheus.NewPedanticRegistry()
	for _, node := range []string{"a", "b"} {
		require.NoError(t, prometheus.WrapRegistererWith(prometheus.Labels{"node": node}, labelled).Register(metrics.New("e")))
	}
}

// A name may be any bytes, but a label must be valid UTF-8.
func TestNamesThatAreNoText(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New("a\xffb"), metrics.NewService("a\xffb"))
	for _, name := range []string{"eldest_wins_total", "eldest_token", "eldest_service_wait_seconds"} {
		families, err := registry.Gather()
		require.NoError(t, err)
		require.Equal(t, "a\ufffdb", named(families, name).GetMetric()[0].GetLabel()[0].GetValue())
	}
}
