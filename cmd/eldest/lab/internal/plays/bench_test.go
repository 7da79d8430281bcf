package plays_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// quick are flags with which a hand-over takes seconds.
var quick = []string{"bench", "handover", "--members", "1", "--warmup", "0", "--contender", "eldest,concurrency"}

// report is the output of --json.
type report struct {
	Scenario, Etcd, Incomplete string
	Members                    int
	Setup                      struct{ Command, Storage string }
	Results                    []struct {
		Contender, Regime, Metric, Unit string
		Rounds, Errors                  int
		P50, P99                        int64
		Samples                         []int64
		Histogram                       []struct{ From, To, Count int64 }
	}
}

func readReport(t *testing.T, path string) report {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

func TestBenchMeasuresAndReports(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	object, page := filepath.Join(dir, "x.json"), filepath.Join(dir, "x.html")
	p := perform(t, append(quick, "--rounds", "3", "--processes", "1", "--data", data, "--json", object, "--html", page)...)
	table := strings.Join(p.Rest(), "\n")
	require.Zero(t, p.exit())
	require.Contains(t, table, "queued, n=2: win")
	require.Contains(t, table, "vs concurrency")

	r := readReport(t, object)
	require.Equal(t, []any{"handover", 1, ""}, []any{r.Scenario, r.Members, r.Incomplete})
	require.Regexp(t, `^3\.`, r.Etcd)
	require.Contains(t, r.Setup.Storage, data)
	require.Contains(t, r.Setup.Command, "eldest bench handover --members 1")
	measured := map[string]bool{}
	for _, x := range r.Results {
		require.Equal(t, []any{3, 0, "ns"}, []any{x.Rounds, x.Errors, x.Unit}, x)
		require.Len(t, x.Samples, 3)
		require.NotEmpty(t, x.Histogram)
		require.Positive(t, x.P50)
		require.GreaterOrEqual(t, x.P99, x.P50)
		measured[x.Contender+" "+x.Regime] = true
	}
	require.Len(t, measured, 2*4, "two contenders in four regimes")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg")
	requireEmpty(t, data)
	require.Empty(t, p.left())
}

func TestBenchThatIsInterruptedReportsWhatItHas(t *testing.T) {
	t.Parallel()
	data, object := t.TempDir(), filepath.Join(t.TempDir(), "x.json")
	p := perform(t, append(quick, "--rounds", "500", "--processes", "1", "--data", data, "--json="+object)...)
	pids := requireMeasuring(t, p)
	p.Signal(syscall.SIGINT)
	require.Equal(t, 130, p.exit())
	require.Equal(t, "interrupted", readReport(t, object).Incomplete)
	clitest.RequireGone(t, pids)
	requireEmpty(t, data)
}

func TestBenchThatIsKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := perform(t, append(quick, "--rounds", "500", "--processes", "1", "--data", data)...)
	pids := requireMeasuring(t, p)
	p.Signal(syscall.SIGKILL)
	p.exit()
	clitest.RequireGone(t, pids)
	requireEmpty(t, data)
}

// requireMeasuring waits until the processes of a benchmark run: a member, workers, and the process
// that removes the data. Workers are started when measuring begins.
func requireMeasuring(t *testing.T, p *performance) (pids []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids = clitest.Children(p.Cmd.Process.Pid)
		return len(pids) >= 3
	}, limit, 10*time.Millisecond)
	return pids
}

// requireEmpty checks that a directory is empty.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
