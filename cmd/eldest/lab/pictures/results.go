package main

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/internal/onrecord"
)

// A panel is one question of the chart, with the answers of some contenders.
type panel struct {
	title string
	bars  []measure
}

// A measure is one bar.
type measure struct {
	contender string
	value     float64
	label     string
}

// question says which results a panel is made from.
type question struct {
	title, run, regime, metric string
	n                          int
	contenders                 []string
	// say makes bar and label of a result.
	say func(result) (float64, string)
}

// result is what the chart takes from a result of the benchmark.
type result struct {
	Contender, Regime, Metric, Unit string
	N, Rounds                       int
	P50, Sum                        float64
}

// questions are those of the chart: where Eldest is quicker, where it is right, and where it is slower.
var questions = []question{
	{"A leader resigns right after the next one has queued: until that one leads", "bench-handover", "queued", "win", 2, []string{"eldest", "concurrency", "floor"}, milliseconds},
	{"The leader changes: until the last of 1,000 observers knows", "bench-fanout", "one-process", "last", 1000, []string{"eldest", "concurrency"}, milliseconds},
	{"The leader loses its network, TTL 2 s: rounds in which two lead", "bench-cut", "cut", "two-leaders", 2000, []string{"eldest", "concurrency"}, share},
	{"The leader is killed, TTL 5 s: until the next one leads", "bench-crash", "kill", "win", 5000, []string{"eldest", "concurrency", "floor"}, seconds},
}

func milliseconds(r result) (float64, string) {
	return r.P50, fmt.Sprintf("%.1f ms", r.P50/float64(time.Millisecond))
}

func seconds(r result) (float64, string) {
	return r.P50, fmt.Sprintf("%.1f s", r.P50/float64(time.Second))
}

func share(r result) (float64, string) {
	return r.Sum / float64(r.Rounds), fmt.Sprintf("%.0f of %d", r.Sum, r.Rounds)
}

// A setting is what a benchmark says of itself.
type setting struct {
	Etcd    string
	Members int
	Setup   struct{ CPUs int }
}

func (s setting) String() string {
	return fmt.Sprintf("etcd %s, %d members, everything on %d CPUs", s.Etcd, s.Members, s.Setup.CPUs)
}

// readPanels reads what the questions ask for from the benchmarks on record.
// They must have been measured in one setting, which is returned as well.
func readPanels(root string) ([]panel, setting, error) {
	var panels []panel
	var measured setting
	for _, q := range questions {
		var stored struct {
			setting
			Results []result
		}
		if err := onrecord.Read(root, q.run, &stored); err != nil {
			return nil, measured, err
		}
		if len(panels) > 0 && stored.setting != measured {
			return nil, measured, fmt.Errorf("%s was measured with %v, others with %v", q.run, stored.setting, measured)
		}
		measured = stored.setting
		p := panel{title: q.title}
		for _, contender := range q.contenders {
			found := 0
			for _, r := range stored.Results {
				if r.Contender == contender && r.Regime == q.regime && r.Metric == q.metric && r.N == q.n {
					found++
					value, label := q.say(r)
					p.bars = append(p.bars, measure{contender, value, label})
				}
			}
			if found != 1 {
				return nil, measured, fmt.Errorf("%s has %d results of %s for %s %s %d, not one", q.run, found, contender, q.regime, q.metric, q.n)
			}
		}
		panels = append(panels, p)
	}
	return panels, measured, nil
}
