package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// server is a Prometheus server.
type server struct {
	t    *testing.T
	dir  string // of its configuration
	base string
	http *http.Client
}

// sample is one series of an answer, at the time of the query.
type sample struct {
	labels map[string]string
	value  float64
}

var long = regexp.MustCompile(`\b(\d+)(m|h)\b`)

// faster turns minutes into seconds; no rule waits for more than ten.
func faster(text string) string {
	text = strings.ReplaceAll(text, "for: 15m", "for: 10m")
	return long.ReplaceAllStringFunc(text, func(d string) string {
		n, _ := strconv.Atoi(d[:len(d)-1])
		if strings.HasSuffix(d, "h") {
			n *= 60
		}
		return fmt.Sprintf("%ds", n)
	})
}

// serve starts a server that evaluates the rules, sixty times faster.
func serve(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile(filepath.Join(docs, "alerts.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yaml"), []byte(faster(string(rules))), 0o600))
	const config = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 250ms}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: eldest
    file_sd_configs:
      - {files: [targets.json], refresh_interval: 1s}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))

	for {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		at := free.Addr().String()
		require.NoError(t, free.Close())
		p := etcdtest.Run(t, exec.Command(tool(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
			"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--query.lookback-delta=5s", "--scrape.discovery-reload-interval=500ms", "--log.level=warn"))
		s := &server{t: t, dir: dir, base: "http://" + at, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}}
		if s.ready(p) {
			return s
		}
		// Another process may have taken the port meanwhile; then another port is tried.
		require.Contains(t, p.Said(), "address already in use", "Prometheus is not ready")
	}
}

// scrape makes the server scrape the addresses.
func (s *server) scrape(addresses []string) {
	s.t.Helper()
	targets, err := json.Marshal([]map[string][]string{{"targets": addresses}})
	require.NoError(s.t, err)
	complete := filepath.Join(s.dir, "targets")
	require.NoError(s.t, os.WriteFile(complete, targets, 0o600))
	require.NoError(s.t, os.Rename(complete, complete+".json"))
}

// ready waits until the server's process serves; it returns false if it has ended, or does not
// serve in time.
func (s *server) ready(p *etcdtest.Program) bool {
	s.t.Helper()
	for deadline := s.deadline(); s.before(deadline); {
		select {
		case <-p.Done:
			return false
		default:
		}
		resp, err := s.http.Get(s.base + "/-/ready")
		if err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}

// ask sends a request to the server's API; an invalid query fails the test.
func (s *server) ask(path string, query url.Values, data any) {
	s.t.Helper()
	resp, err := s.http.Get(s.base + "/api/v1/" + path + "?" + query.Encode())
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(s.t, json.Unmarshal(body, &answer), "%s", body)
	require.Equal(s.t, "success", answer.Status, "%s %v: %s", path, query, answer.Error)
	require.NoError(s.t, json.Unmarshal(answer.Data, data))
}

// query evaluates an expression now. Values that are not a number are left out: they are not drawn.
func (s *server) query(expr string) (samples []sample) {
	s.t.Helper()
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	s.ask("query", url.Values{"query": {expr}}, &data)
	require.Equal(s.t, "vector", data.ResultType, expr)
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(s.t, err)
		if !math.IsNaN(value) {
			samples = append(samples, sample{r.Metric, value})
		}
	}
	return samples
}

// firing returns the elections for which an alert fires, each once, in order.
func (s *server) firing(alert string) []string {
	s.t.Helper()
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	s.ask("alerts", nil, &data)
	elections := []string{}
	for _, a := range data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == alert {
			elections = append(elections, a.Labels["election"])
		}
	}
	slices.Sort(elections)
	return slices.Compact(elections)
}

// rules returns the expressions of all alerts, as they are evaluated.
func (s *server) rules() map[string]string {
	s.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Query, Health, LastError, LastEvaluation string }
		}
	}
	s.ask("rules", nil, &data)
	rules := make(map[string]string)
	for _, group := range data.Groups {
		for _, r := range group.Rules {
			require.Equal(s.t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			rules[r.Name] = r.Query
		}
	}
	return rules
}

// eventually waits for a condition.
func (s *server) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, patience, 100*time.Millisecond, what)
}

// deadline and before limit a loop that repeats a query until a condition holds.
func (s *server) deadline() time.Time { return time.Now().Add(patience) }

func (s *server) before(deadline time.Time) bool {
	select {
	case <-s.t.Context().Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return time.Now().Before(deadline)
	}
}
