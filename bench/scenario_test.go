package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// explained requires that the scenario has a term for each word in its results.
func explained(t *testing.T, r *Report) {
	t.Helper()
	s, err := Named(r.Scenario)
	require.NoError(t, err)
	has := func(terms []Term, name string) bool {
		return slices.ContainsFunc(terms, func(term Term) bool { return term.Name == name && term.Text != "" })
	}
	for _, x := range r.Results {
		require.True(t, has(s.Regimes, x.Regime), "%s does not say what %q is", s.Name, x.Regime)
		require.True(t, has(s.Metrics, x.Metric), "%s does not say what %q is", s.Name, x.Metric)
	}
}

// What no run can have is refused before anything is sent.
func TestInvalidOptions(t *testing.T) {
	site := siteAt(etcdtest.Shared(t).Endpoints())
	for name, o := range map[string]struct {
		scenario string
		options  Options
	}{
		"a fraction of a second":      {"crash", Options{TTLs: []time.Duration{1500 * time.Millisecond}}},
		"nobody to hand over to":      {"drain", Options{Sizes: []int{1}}},
		"who observes nothing":        {"fanout", Options{Contenders: []string{"eldest", "floor"}}},
		"a load that no etcd takes":   {"handover", Options{Load: 2_000_000_000}},
		"sizes that mean nothing":     {"guard", Options{Sizes: []int{5}}},
		"a contender nobody has seen": {"guard", Options{Contenders: []string{"nobody"}}},
	} {
		_, err := Run(testContext(t), site, o.scenario, o.options)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}

// What is named twice is measured once.
func TestOptionsNamedTwice(t *testing.T) {
	s, err := Named("drain")
	require.NoError(t, err)
	o, err := s.complete(siteAt([]string{"there"}), Options{Contenders: []string{"herd", "floor", "herd"}, Sizes: []int{9, 9}})
	require.NoError(t, err)
	require.Equal(t, []string{"herd", "floor"}, o.Contenders)
	require.Equal(t, []int{9}, o.Sizes)
}
