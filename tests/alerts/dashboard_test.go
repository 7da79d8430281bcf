package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// panel is one panel of the dashboard that has a query.
type panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr, LegendFormat string }
}

// dashboard is the part of Grafana's file that the test uses.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			AllValue   string
			Query      json.RawMessage
		}
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "dashboard.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// filled replaces the variables as Grafana would: all elections, and an hour, sixty times faster.
func filled(expr string) string {
	return faster(strings.NewReplacer("$election", ".+", "$__rate_interval", "10s", "$__range", "60s").Replace(expr))
}

// expected is the expected result of a query of a panel at a time at which steady and shop have no
// faults, and flap has changed its leader often. from and to are bounds for each series of the
// election that has the labels; there must be at least one series.
type expected struct {
	election string
	labels   map[string]string
	from, to float64
}

var expectations = map[string][]expected{
	"Leaders":      {{"steady", nil, 1, 1}, {"shop", nil, 1, 1}, {"alone", nil, 1, 1}, {"split", nil, 2, 2}},
	"The leader":   {{"steady", nil, 1, 1}, {"shop", nil, 1, 1}},
	"Participants": {{"steady", map[string]string{"state": "leading"}, 1, 1}, {"steady", map[string]string{"state": "following"}, 2, 2}, {"shop", map[string]string{"state": "following"}, 1, 1}, {"steady", map[string]string{"state": "unknown"}, 0, 0}},
	"Token":        {{"steady", nil, 2, 1e6}, {"flap", nil, 2, 1e6}},
	"Changes of leadership": {
		{"steady", nil, 0, 0}, {"flap", nil, 1, 1000},
	},
	"Queue":                           {{"steady", nil, 3, 3}, {"shop", nil, 2, 2}, {"alone", nil, 1, 1}},
	"Time left":                       {{"steady", nil, 0.05, 0.9}, {"shop", nil, 0.05, 0.9}},
	"Renewal slack, the lowest":       {{"steady", nil, 0.01, 0.7}},
	"Renewal latency":                 {{"steady", nil, 0.00001, 5}},
	"Leases at risk":                  {{"steady", nil, 0, 10}},
	"Watches opened again":            {{"steady", map[string]string{"watch": "candidate"}, 0, 10}, {"steady", map[string]string{"watch": "observer"}, 0, 10}},
	"Sessions that ended":             {{"steady", map[string]string{"cause": "session_lost"}, 0, 0}},
	"Tenures begun":                   {{"steady", nil, 0, 1}, {"flap", nil, 0, 1000}},
	"Tenures that ended":              {{"steady", map[string]string{"cause": "deposed"}, 0, 0}, {"steady", map[string]string{"cause": "closed"}, 0, 0}, {"flap", map[string]string{"cause": "deposed"}, 1, 1000}},
	"Hand-over, the successor's part": {{"flap", nil, 0.00001, 5}},
	"Wait in the queue":               {{"flap", nil, 0.00001, 600}},
	"Candidacies":                     {{"steady", nil, 0, 3}},
	"Observers":                       {{"steady", nil, 0, 3}, {"shop", nil, 0, 4}},
	"Foreign keys":                    {{"steady", nil, 0, 0}, {"foreign", nil, 1, 10}},
	"Dropped hook calls":              {{"steady", nil, 0, 0}},
	"Leadership certain for":          {{"steady", nil, 1, 20}, {"beats", nil, 0.1, 2}},
	"Heartbeat latency":               {{"beats", nil, 0.00001, 2}},
	"Silence":                         {{"steady", nil, 0, 0}},
	"Callers' calls":                  {{"shop", map[string]string{"code": "OK"}, 0.1, 10000}},
	"Refusals":                        {{"shop", map[string]string{"reason": "no_leader"}, 0, 0}, {"shop", map[string]string{"reason": "busy"}, 0, 0}},
	"What a call takes": {
		{"shop", map[string]string{"way": "served"}, 0.00001, 5}, {"shop", map[string]string{"way": "forwarded"}, 0.00001, 5},
		{"shop", map[string]string{"way": "hop"}, 0.00001, 5},
	},
	"Wait for a leader":        {{"shop", nil, 0.0000001, 5}},
	"Calls under way":          {{"shop", nil, 0, 4}},
	"Kept for calls that wait": {{"shop", nil, 0, 0}},
}

// holds returns which part of an expectation a query does not meet; "" if it meets all of it.
func (e expected) holds(samples []sample) bool {
	found := false
	for _, s := range samples {
		if s.labels["election"] != e.election || !has(s.labels, e.labels) {
			continue
		}
		found = true
		if s.value < e.from || s.value > e.to {
			return false
		}
	}
	return found
}

func has(labels, want map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// checkDashboard runs each query of each panel. The result must soon be as expected: the latest
// changes may not have been scraped yet.
func checkDashboard(t *testing.T, s *server) {
	d := readDashboard(t)
	asked := make(map[string]bool)
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, expectations[p.Title], "nobody says what the panel %q must show", p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		asked[p.Title] = true
		for _, target := range p.Targets {
			require.Contains(t, target.Expr, `election=~"$election"`, "%s: the choice of the election is ignored", p.Title)
			expr := filled(target.Expr)
			require.NotContains(t, expr, "$", p.Title)
			for _, e := range expectations[p.Title] {
				var last []sample
				ok := func() bool { last = s.query(expr); return e.holds(last) }
				for deadline := s.deadline(); !ok() && s.before(deadline); {
				}
				require.True(t, e.holds(last), "%s: %s: not %+v but %v", p.Title, expr, e, last)
			}
		}
	}
	for title := range expectations {
		require.True(t, asked[title], "no panel %q", title)
	}
	// The list of elections is filled by a query as well.
	require.Len(t, d.Templating.List, 2)
	require.Equal(t, "election", d.Templating.List[1].Name)
	require.Contains(t, string(d.Templating.List[1].Query), "label_values(eldest_state, election)")
	var elections []string
	s.ask("label/election/values", map[string][]string{"match[]": {"eldest_state"}}, &elections)
	require.Subset(t, elections, []string{"steady", "shop", "flap"})
}
