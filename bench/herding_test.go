package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestHerd(t *testing.T) {
	t.Parallel()
	const n = 16
	report := measuredOn(t, etcdtest.Start(t, etcdtest.Config{}), "herd", Options{Rounds: 1, Sizes: []int{n}})
	count := func(contender, metric string) int64 { return find(t, report, contender, "departure", n, metric).Max }
	for _, name := range contender.Names() {
		events := int64(1)
		if name == "herd" {
			events = n
		}
		for _, metric := range []string{"events", "waiter-events"} {
			got := count(name, metric)
			if name == "eldest" || name == "drop-in" || name == "herd" {
				// Who leaves cancels the watch of its own key before it deletes that, but
				// the one may overtake the other on their way. Nobody is woken by it.
				got = min(got, max(events, got-1))
			}
			require.Equal(t, events, got, "%s %s", name, metric)
		}
		require.Positive(t, count(name, "requests"), name)
		require.Nil(t, report.Find(name, "departure", n, "server-events"), "there were no metrics")
	}
	// One read behind the event. It is repeated where the member has not come to that revision
	// yet, and on a slow machine it may have the company of a quiet watch's recheck; but not
	// everybody reads.
	require.Positive(t, count("eldest", "reads"))
	require.Less(t, count("eldest", "reads"), int64(n))
	require.Equal(t, int64(n), count("herd", "reads"))
	require.Zero(t, count("floor", "reads"))
}

// TestHerdWithoutTheServers: metrics that cannot be read cost their columns, not the turn.
func TestHerdWithoutTheServers(t *testing.T) {
	t.Parallel()
	site := siteOf(etcdtest.Shared(t))
	site.Metrics = func(context.Context) (map[string]float64, error) { return nil, errors.New("forbidden") }
	report, err := Run(t.Context(), site, "herd", Options{Rounds: 1, Sizes: []int{2}, Contenders: []string{"floor"}})
	require.NoError(t, err)
	require.Zero(t, find(t, report, "floor", "departure", 2, "events").Errors)
	require.Nil(t, report.Find("floor", "departure", 2, "server-events"))
	require.Equal(t, []string{"floor, departure, n=2: the servers' metrics could not be read: forbidden"}, report.Notes)
}

// TestHerdOnTheServers: what the servers count is taken from their metrics.
func TestHerdOnTheServers(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	counted := map[string]float64{}
	site := siteOf(c)
	site.Metrics = func(context.Context) (map[string]float64, error) {
		counted[eventsSent] += 7
		counted[messagesReceived] += 11
		return map[string]float64{eventsSent: counted[eventsSent], messagesReceived: counted[messagesReceived]}, nil
	}
	report, err := Run(t.Context(), site, "herd", Options{Rounds: 1, Sizes: []int{2}, Contenders: []string{"floor"}})
	require.NoError(t, err)
	require.Equal(t, []int64{7}, find(t, report, "floor", "departure", 2, "server-events").Samples)
	require.Equal(t, []int64{11}, find(t, report, "floor", "departure", 2, "server-requests").Samples)
	require.Equal(t, []int64{11}, find(t, report, "floor", "departure", 2, "waiter-server-requests").Samples)
}
