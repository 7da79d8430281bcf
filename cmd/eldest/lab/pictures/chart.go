package main

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/internal/onrecord"
)

// panel is one question of the chart, with the answers of some contenders and its own scale.
type panel struct {
	Title string
	Y     float64
	Bars  []bar
}

// bar is the answer of one contender.
type bar struct {
	Contender, Name, Label string
	Y, Length              float64
	value                  float64
}

var names = map[string]string{
	"eldest": "Eldest", "eldest-keeper": "Eldest, keeper", "eldest-heartbeat-500ms": "heartbeats",
	"concurrency": "etcd's package", "floor": "no protocol",
}

// questions are those of the chart: where Eldest is faster, where it is correct, and where it is slower: with the lease alone.
var questions = []struct {
	title, run, regime, metric string
	n                          int
	contenders                 []string
	// say returns the value and the label of a result.
	say func(*bench.Result) (float64, string)
}{
	{"A leader resigns just after its successor was queued: time until the successor leads", "bench-handover", "queued", "win", 2, []string{"eldest", "concurrency", "floor"}, milliseconds},
	{"The leader changes: time until the last of 1,000 observers is notified", "bench-fanout", "one-process", "last", 1000, []string{"eldest", "concurrency"}, milliseconds},
	{"The leader loses its network, TTL 2 s: rounds with two leaders", "bench-cut", "cut", "two-leaders", 2000, []string{"eldest", "concurrency"}, share},
	{"The leader is killed, TTL 5 s: time until the next candidate leads", "bench-crash", "kill", "win", 5000, []string{"eldest-keeper", "eldest-heartbeat-500ms", "eldest", "concurrency"}, seconds},
}

func milliseconds(r *bench.Result) (float64, string) {
	return float64(r.P50), fmt.Sprintf("%.1f ms", float64(r.P50)/float64(time.Millisecond))
}

func seconds(r *bench.Result) (float64, string) {
	return float64(r.P50), fmt.Sprintf("%.3f s", float64(r.P50)/float64(time.Second))
}

func share(r *bench.Result) (float64, string) {
	return float64(r.Sum) / float64(r.Rounds), fmt.Sprintf("%d of %d", r.Sum, r.Rounds)
}

// readPanels reads the answers to the questions from the reference runs, which must have been
// measured in one set-up.
func readPanels(root string) (panels []panel, setup string, err error) {
	for _, q := range questions {
		var r bench.Report
		if err := onrecord.Read(root, q.run, &r); err != nil {
			return nil, "", err
		}
		its := fmt.Sprintf("etcd %s, %d members, everything on %d CPUs", r.Etcd, r.Members, r.Setup.CPUs)
		if setup != "" && setup != its {
			return nil, "", fmt.Errorf("%s was measured with %v, others with %v", q.run, its, setup)
		}
		setup = its
		p := panel{Title: q.title}
		for _, contender := range q.contenders {
			x := r.Find(contender, q.regime, q.n, q.metric)
			if x == nil {
				return nil, "", fmt.Errorf("%s has no result of %s for %s %s %d", q.run, contender, q.regime, q.metric, q.n)
			}
			value, label := q.say(x)
			p.Bars = append(p.Bars, bar{Contender: contender, Name: names[contender], Label: label, value: value})
		}
		panels = append(panels, p)
	}
	return panels, setup, nil
}

// chart draws panels one below the other.
func chart(panels []panel, setup string) ([]byte, error) {
	const longest, step = 640.0, 24.0
	y := 22.0
	for i := range panels {
		p, most := &panels[i], 0.0
		for _, b := range p.Bars {
			most = max(most, b.value)
		}
		p.Y = y
		y += 12
		for j := range p.Bars {
			p.Bars[j].Y, p.Bars[j].Length = y, max(longest*p.Bars[j].value/most, 1.5)
			y += step
		}
		y += step
	}
	type note struct {
		Y    float64
		Text string
	}
	return render("chart", map[string]any{"Panels": panels, "Height": y + 46, "Notes": []note{
		{y - 4, fmt.Sprintf("Medians, contenders measured alternately: %s. Each panel has its own scale.", setup)},
		{y + 15, "No protocol: a bare watch of a bare delete. Heartbeats: of 0.5 s. Eldest: with the lease alone. See docs/benchmarks.md."},
	}})
}
