package alerts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// underneath are the parts of each alert's query without its comparison, and what they return for
// an election without faults: steady, and shop for the parts about calls. An alert whose query
// counts nothing never fires.
var underneath = map[string][]struct {
	query    string
	from, to float64
}{
	"EldestNoLeader":       {{`sum by (election) (eldest_state{state="leading"})`, 1, 1}},
	"EldestSeveralLeaders": {{`sum by (election) (eldest_state{state="leading"})`, 1, 1}},
	"EldestNobodyThere": {
		{`count by (election) (last_over_time(eldest_state{state="leading"}[1h]))`, 3, 3},
		{`count by (election) (eldest_state{state="leading"})`, 3, 3},
	},
	"EldestNoSuccessor": {{`max by (election) (eldest_queue_length)`, 3, 3}},
	"EldestSlackBelowAThird": {
		{`eldest_session_remaining_seconds / (eldest_session_ttl_seconds > 0)`, 0.34, 0.9},
		{`sum without (le) (increase(eldest_renewal_slack_ratio_bucket{le="0.33"}[5m]))`, 0, 0},
	},
	"EldestLeadershipLost": {{`sum by (election, cause) (increase(eldest_tenures_ended_total{cause=~"session_lost|deposed"}[10m]))`, 0, 0}},
	"EldestFlapping":       {{`changes((max by (election) (eldest_leader_token > 0))[10m:])`, 0, 0}},
	"EldestWatchesBreak":   {{`sum by (election, instance) (increase(eldest_watch_restarts_total[10m]))`, 0, 5}},
	"EldestForeignKeys": {
		{`sum by (election) (increase(eldest_foreign_keys_total[1h]))`, 0, 0},
		{`sum by (election) (eldest_foreign_keys_total unless eldest_foreign_keys_total offset 1h)`, 0, 0},
	},
	"EldestSuspended":         {{`sum by (election) (increase(eldest_suspensions_total[10m]))`, 0, 0}},
	"EldestLeaderEvicted":     {{`sum by (election) (increase(eldest_evictions_total[10m]))`, 0, 0}},
	"EldestHeartbeatsRefused": {{`eldest_heartbeats_refused`, 0, 0}},
	"EldestHooksDropped":      {{`sum by (election, instance) (increase(eldest_hooks_dropped_total[10m]))`, 0, 0}},
	"EldestServiceRefuses": {
		{`sum by (election, reason) (rate(eldest_service_refusals_total[2m]))`, 0, 0},
		{`sum by (election) (rate(eldest_service_calls_total{way!="hop"}[2m]))`, 0.1, 10000},
	},
	"EldestServiceCallsWait": {
		{`sum by (election, instance) (eldest_service_waiting_calls)`, 0, 2},
		{`sum by (election, instance) (eldest_service_calls_in_flight)`, 0, 4},
	},
	"EldestServiceBusy": {{`sum by (election, instance) (increase(eldest_service_refusals_total{reason="busy"}[10m]))`, 0, 0}},
}

// The whole test; see the package comment for the scenarios.
func TestAgainstARealServer(t *testing.T) {
	t.Parallel()
	tool(t, "prometheus")
	built := etcdtest.Go(func() error { return etcdtest.Err(eldest()) }) // while the server starts
	etcd, other, dark := etcdtest.Start(t, etcdtest.Config{}), etcdtest.Start(t, etcdtest.Config{}), etcdtest.Start(t, etcdtest.Config{})
	require.NoError(t, etcdtest.Err(etcd.Client(t).Put(t.Context(), "foreign/no-candidate", "x")))
	t.Cleanup(func() {
		if path, err := eldest(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	})

	s := serve(t)
	require.NoError(t, <-built)

	const slow = "20s"     // a TTL that is long enough on a busy machine
	const expires = "6s"   // a TTL that is long enough for scrapes to see the lease expire
	var all []*participant // they start at the same time
	join := func(c *etcdtest.Cluster, ttl string, command ...string) *participant {
		p := participate(t, c, ttl, command...)
		all = append(all, p)
		return p
	}
	campaign := func(c *etcdtest.Cluster, election, ttl string) *participant {
		return join(c, ttl, "campaign", election)
	}
	for range 3 {
		campaign(etcd, "steady", slow)
	}
	steady := slices.Clone(all)
	shop := []*participant{join(etcd, slow, "service", "node", "shop", "n1"), join(etcd, slow, "service", "node", "shop", "n2")}
	for n := range 3 {
		join(etcd, slow, "service", "node", "flap", fmt.Sprint("n", n))
	}
	campaign(etcd, "foreign", slow)
	campaign(etcd, "foreign", slow)
	campaign(etcd, "alone", slow)
	gone := campaign(etcd, "gone", slow)
	campaign(etcd, "split", slow)
	campaign(other, "split", expires)
	join(other, slow, "campaign", "beats", "--heartbeat", "2s")
	darkened := []*participant{join(dark, expires, "service", "node", "dark", "n1"), join(dark, expires, "service", "node", "dark", "n2")}

	var addresses []string
	for _, p := range all {
		addresses = append(addresses, p.serves(t))
	}
	s.scrape(addresses)
	s.eventually("all are scraped", func() bool { return len(s.query("up == 1")) == len(addresses) })
	s.eventually("all elections have their leaders", func() bool {
		leaders := make(map[string]float64)
		for _, l := range s.query(`sum by (election) (eldest_state{state="leading"})`) {
			leaders[l.labels["election"]] = l.value
		}
		return fmt.Sprint(leaders) == "map[alone:1 beats:1 dark:1 flap:1 foreign:1 gone:1 shop:1 split:2 steady:1]"
	})

	call(t, shop...)
	call(t, darkened...)
	beside(s, map[string]func(s *server){
		"a service whose etcd is stopped": func(s *server) {
			s.over("EldestNoLeader", "dark")
			s.over("EldestServiceRefuses", "dark")
			s.over("EldestServiceCallsWait", "dark")
			require.NoError(s.t, dark.Member(0).Stop())
			s.fires("EldestSlackBelowAThird", "dark")
			s.fires("EldestNoLeader", "dark")
			s.fires("EldestLeadershipLost", "dark")
			s.fires("EldestServiceCallsWait", "dark")
			s.fires("EldestServiceRefuses", "dark")
			require.NoError(s.t, dark.Member(0).Cont())
			s.over("EldestNoLeader", "dark")
			s.over("EldestSlackBelowAThird", "dark")
			s.over("EldestServiceCallsWait", "dark")
			s.over("EldestServiceRefuses", "dark")
		},
		"other faults": func(s *server) {
			gone.Signal(syscall.SIGTERM)
			gone.End()
			depose(s, etcd.Client(s.t), "EldestFlapping", "flap")
			s.fires("EldestLeadershipLost", "flap") // since a key was removed
			s.fires("EldestSeveralLeaders", "split")
			s.fires("EldestForeignKeys", "foreign")
			s.fires("EldestNobodyThere", "gone")
			checkDashboard(s.t, s)
			checkUnderneath(s.t, s)
			s.over("EldestNoLeader", "flap")
			require.NoError(s.t, other.Member(0).Stop())
			s.fires("EldestSuspended", "beats")
			s.over("EldestSeveralLeaders", "split") // the leader at the stopped etcd has lost its lease
			s.over("EldestFlapping", "flap")
			s.fires("EldestNoSuccessor", "alone")
		},
	})
	require.Empty(t, s.firing("EldestHooksDropped"))

	missed := make(map[string]bool) // a leader that does not answer in time on a busy machine looks like none
	for _, series := range s.query(`min_over_time(up[5m]) == 0`) {
		missed[series.labels["instance"]] = true
	}
	unseen := func(participants []*participant) bool {
		return slices.ContainsFunc(participants, func(p *participant) bool { return missed[p.address] })
	}
	var quiet []sample
	for _, series := range s.query(`count_over_time(ALERTS{alertstate="firing"}[5m])`) {
		participants := map[string][]*participant{"steady": steady, "shop": shop}[series.labels["election"]]
		if participants != nil && (series.labels["alertname"] != "EldestNoLeader" || !unseen(participants)) {
			quiet = append(quiet, series)
		}
	}
	require.Empty(t, quiet, "alerts where nothing happened")
}

// beside runs scenarios at the same time, and returns when all of them have ended.
func beside(s *server, scenarios map[string]func(s *server)) {
	s.t.Run("scenarios", func(t *testing.T) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				own := *s
				own.t = t
				scenario(&own)
			})
		}
	})
}

// depose removes the leader's key by hand, repeatedly, as soon as the server has scraped the next
// leader's token, until the alert fires.
func depose(s *server, cli *clientv3.Client, alert, election string) {
	s.t.Helper()
	newest := fmt.Sprintf(`max(eldest_leader_token{election=%q})`, election)
	seen := 0.0
	s.eventually(alert, func() bool {
		if slices.Contains(s.firing(alert), election) {
			return true
		}
		if now := s.query(newest); len(now) == 1 && now[0].value > seen {
			seen = now[0].value
			resp, err := cli.Get(s.t.Context(), election+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
				clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(1))
			require.NoError(s.t, err)
			for _, kv := range resp.Kvs {
				_, err = cli.Delete(s.t.Context(), string(kv.Key))
				require.NoError(s.t, err)
			}
		}
		return false
	})
}

// fires waits until an alert fires for an election.
func (s *server) fires(alert, election string) {
	s.t.Helper()
	began := time.Now()
	s.eventually(alert+" for "+election, func() bool { return slices.Contains(s.firing(alert), election) })
	s.t.Logf("%s for %s after %v", alert, election, time.Since(began).Round(10*time.Millisecond))
}

// over waits until an alert does not fire for some elections any more.
func (s *server) over(alert string, elections ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s not for %v", alert, elections), func() bool {
		return !slices.ContainsFunc(s.firing(alert), func(election string) bool { return slices.Contains(elections, election) })
	})
}

// checkUnderneath runs the parts of each alert's query. Each must count something for the election
// without faults.
func checkUnderneath(t *testing.T, s *server) {
	text, err := os.ReadFile(filepath.Join(docs, "alerts.yaml"))
	require.NoError(t, err)
	rules := s.rules()
	require.Len(t, rules, strings.Count(string(text), "- alert: "))
	for alert := range rules {
		require.NotEmpty(t, underneath[alert], "nobody says what is underneath %s", alert)
		for _, part := range underneath[alert] {
			require.Contains(t, string(text), part.query, alert)
			e := expected{election: "steady", from: part.from, to: part.to}
			if strings.HasPrefix(alert, "EldestService") {
				e.election = "shop"
			}
			var last []sample
			for deadline := s.deadline(); ; {
				if last = s.query(faster(part.query)); e.holds(last) || !s.before(deadline) {
					break
				}
			}
			require.True(t, e.holds(last), "%s: %s: not %+v but %v", alert, part.query, e, last)
		}
	}
	require.Len(t, underneath, len(rules), "%v", slices.Sorted(maps.Keys(rules)))
}
