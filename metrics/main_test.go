package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
	"github.com/eldest-io/eldest/observe"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// ttl is the TTL of the sessions.
const ttl = 20 * time.Second

// participant is a measured participant, with a registry of its own.
type participant struct {
	*metrics.Election
	t         *testing.T
	registry  *prometheus.Registry
	session   *lease.Session
	candidate *election.Candidate
}

func join(t *testing.T, cli *clientv3.Client, name string, change ...func(*lease.Config)) *participant {
	t.Helper()
	p := &participant{Election: metrics.New(name), t: t, registry: prometheus.NewPedanticRegistry()}
	p.registry.MustRegister(p.Election)
	// A TTL that a busy machine can keep, and renewals for which a test need not wait.
	joined := electiontest.Join(t, cli, name, func(l *lease.Config, e *election.Config) {
		l.TTL, l.Hooks, e.Hooks = ttl, p.Hooks().Session, p.Hooks().Candidate
		l.Renewal = func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: 500 * time.Millisecond, Timeout: 2 * time.Second}
		}
		for _, f := range change {
			f(l)
		}
	})
	p.session, p.candidate = joined.Session, joined.Candidate
	return p
}

func (p *participant) observer(cli *clientv3.Client) *observe.Observer {
	p.t.Helper()
	o, err := observe.New(observe.Config{Election: p.candidate.Election(), KV: cli, Watcher: cli, Options: observe.Options{Hooks: p.Hooks().Observer}})
	require.NoError(p.t, err)
	p.t.Cleanup(o.Close)
	return o
}

// named returns the family with a name; nil if there is none.
func named[F interface{ GetName() string }](families []F, name string) (found F) {
	for _, family := range families {
		if family.GetName() == name {
			found = family
		}
	}
	return found
}

// scrape returns the series of a registry, by name and the labels other than election, as
// name{label="value"}. The value of a histogram is its count.
func scrape(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	series := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				if label.GetName() != "election" {
					name += "{" + label.GetName() + "=" + `"` + label.GetValue() + `"}`
				}
			}
			switch {
			case m.GetGauge() != nil:
				series[name] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				series[name] = m.GetCounter().GetValue()
			default:
				series[name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return series
}

// becomes waits until a scrape shows a value.
func (p *participant) becomes(name string, want float64) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return scrape(p.t, p.registry)[name] == want }, etcdtest.Patience, 5*time.Millisecond,
		"%s never was %v", name, want)
}

// reaches waits until a scrape shows a value or a higher one, for values that increase by
// themselves.
func (p *participant) reaches(name string, least float64) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return scrape(p.t, p.registry)[name] >= least }, etcdtest.Patience, 5*time.Millisecond,
		"%s never was %v", name, least)
}

// state returns the participant's state in a scrape, which must have exactly one.
func (p *participant) state() string {
	p.t.Helper()
	is := ""
	for name, value := range scrape(p.t, p.registry) {
		if of, ok := strings.CutPrefix(name, `eldest_state{state="`); ok && value == 1 {
			require.Empty(p.t, is, "two states at once")
			is = strings.TrimSuffix(of, `"}`)
		}
	}
	return is
}
