package page

import (
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	adapters "github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
)

// hostile is a text that must never be markup, in HTML or in Markdown.
const hostile = "lost <script>alert(1)</script> | `code` [x](javascript:alert(1)) *b*\n# heading"

// sampler makes a report.
type sampler struct{ *peers.Report }

// add adds a result as package peers makes it.
func (s sampler) add(system, setting, scenario, metric, unit string, n int, samples ...int64) *peers.Result {
	x := peers.Result{Scenario: scenario, Result: bench.Result{Contender: system, Regime: setting, N: n, Metric: metric, Unit: unit, Samples: samples}}
	x.Summarize()
	s.Results = append(s.Results, x)
	return &s.Results[len(s.Results)-1]
}

// find returns a result, which must exist.
func (s sampler) find(system, setting, scenario, metric string) *peers.Result {
	return find(s.Report, source{scenario, metric}, system, setting, false, 0)
}

// fail makes rounds fail.
func (s sampler) fail(system, setting, scenario, metric string, rounds int, why string) {
	x := s.find(system, setting, scenario, metric)
	x.Samples, x.Errors, x.FirstError = x.Samples[:max(0, len(x.Samples)-rounds)], rounds, why
	x.Summarize()
}

// never makes all rounds end without the event.
func (s sampler) never(system, setting, scenario, metric string, limit time.Duration) {
	x := s.find(system, setting, scenario, metric)
	x.None, x.Limit, x.Samples = len(x.Samples), limit, nil
	x.Summarize()
}

// lacks removes a scenario of a system.
func (s sampler) lacks(system, scenario, reason string) {
	kept := s.Results[:0]
	for _, x := range s.Results {
		if x.Contender != system || x.Scenario != scenario {
			kept = append(kept, x)
		}
	}
	s.Results = kept
	s.Lacks = append(s.Lacks, peers.Lack{System: system, Scenario: scenario, Reason: reason})
}

// samplesNear makes samples around a value.
func samplesNear(value float64, rounds int) (all []int64) {
	for i := range rounds {
		all = append(all, int64(value*(0.9+0.2*float64(i)/float64(max(1, rounds-1)))))
	}
	return all
}

// figuresOf has made-up figures: in milliseconds, of hand-over, crash, machine, unavailability; then rounds with two
// leaders and late writes, of 20; then requests and writes a minute; KiB, fan-out and joins in milliseconds.
var figuresOf = map[string]map[string][]float64{
	peer.Defaults: {
		"eldest": {2.7, 8900, 9100, 1600, 0, 0, 60, 0, 9.8, 3.5, 170}, "concurrency": {3.0, 51000, 52000, 1610, 9, 0, 7, 0, 19.5, 103, 184},
		"client-go": {1200, 16300, 16400, 1700, 0, 4, 58, 30, 6.2, 1900, 40}, "zookeeper": {4.1, 8100, 8300, 2900, 3, 0, 18, 0, 3.1, 6.0, 310},
		"nats": {2.9, 31000, 30500, 5100, 6, 0, 11, 3, 2.4, 30, 90}, "redis": {140, 7100, 7200, 0, 1, 0, 440, 22, 1.1, 0, 60},
		"postgres": {1.2, 1.9, 0, 0, 10, 0, 0, 0, 0, 0, 0},
	},
	peer.Shortest: {
		"eldest": {2.7, 5.2, 447, 1580, 0, 0, 860, 480, 10.1, 3.6, 175}, "concurrency": {3.0, 1790, 1800, 1570, 8, 0, 190, 0, 19.5, 104, 190},
		"client-go": {130, 2100, 2110, 1650, 0, 5, 600, 300, 6.2, 190, 42}, "zookeeper": {4.0, 440, 460, 2700, 2, 0, 380, 0, 3.1, 6.1, 305},
		"nats": {2.9, 1500, 1600, 5000, 5, 0, 250, 120, 2.4, 29, 95}, "redis": {140, 430, 470, 0, 0, 0, 800, 360, 1.1, 0, 60},
		"postgres": {1.2, 1.9, 2010, 0, 1, 0, 120, 0, 0, 0, 0},
	},
}

// sample is a made-up report with every kind of cell.
func sample() sampler {
	s := sampler{&peers.Report{
		Time: time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC), Go: "go1.26.8", Seconds: 4012,
		Setup: bench.Setup{
			OS: "linux", Arch: "amd64", CPUs: 2, CPU: "AMD EPYC", Storage: "disk (ext4), fsync on", Warmup: 1,
			Eldest: "v0.9.0", Command: "eldest bench peers --rounds 10 --json FILE --html FILE",
		},
		Unprovoked: []peers.Unprovoked{{System: "zookeeper", Setting: peer.Shortest, Count: 3}},
		Skipped:    []peers.Skipped{{System: "raft", Reason: "the program raftd is not installed; " + hostile}},
	}}
	for _, system := range adapters.All() {
		if figuresOf[peer.Defaults][system.Name] == nil {
			continue
		}
		its := peers.SystemReport{System: system, Version: system.Title + " 3.7.3", Nodes: 3, Client: system.Module + " v1.2.3"}
		if its.Name == "redis" {
			its.Guard, its.Unfair = "", nil
			its.Links = []peer.Link{{Text: "odd " + hostile, URL: "javascript:alert(1)"}, {Text: "odd", URL: "https://example.org/recipe(1)"}}
		}
		s.Systems = append(s.Systems, its)
		for _, setting := range peer.SettingNames {
			s.of(its.Name, setting, figuresOf[setting][its.Name])
		}
	}
	s.lacks("postgres", "fanout", "the recipe has no observers")
	s.lacks("postgres", "join", "each candidate needs a connection")
	s.lacks("postgres", "memory", "each candidate needs a connection")
	s.lacks("postgres", "store-leader", "there is one server")
	s.lacks("redis", "fanout", "the recipe has no observers "+hostile)
	s.lacks("redis", "store-leader", "there is one server")
	s.never("postgres", peer.Defaults, "machine", "win", 30*time.Second)
	for _, metric := range []string{"win", "two-leaders", "late-writes"} {
		s.never("postgres", peer.Defaults, "stop", metric, 30*time.Second)
	}
	s.find("zookeeper", peer.Shortest, "machine", "win").None = 2
	s.find("zookeeper", peer.Shortest, "machine", "win").Limit = 30 * time.Second
	s.fail("nats", peer.Shortest, "join", "all", 2, hostile)
	s.fail("client-go", peer.Shortest, "handover", "win", 3, "context deadline exceeded")
	return s
}

// of adds the figures of a system.
func (s sampler) of(name, setting string, f []float64) {
	const ms, rounds = 1e6, 10
	s.add(name, setting, "handover", "win", bench.Nanoseconds, 0, samplesNear(f[0]*ms, 20)...)
	s.add(name, setting, "crash", "win", bench.Nanoseconds, 0, samplesNear(f[1]*ms, rounds)...)
	s.add(name, setting, "machine", "win", bench.Nanoseconds, 0, samplesNear(f[2]*ms, rounds)...)
	for i, scenario := range []string{"stop", "cut"} {
		s.add(name, setting, scenario, "win", bench.Nanoseconds, 0, samplesNear(f[2]*ms, rounds)...)
		for at, metric := range map[int]string{4: "two-leaders", 5: "late-writes"} {
			yes := make([]int64, rounds)
			for j := range min(rounds, int(f[at])/(i+1)) {
				yes[j] = 1
			}
			s.add(name, setting, scenario, metric, bench.Counts, 0, yes...)
		}
	}
	s.add(name, setting, "fanout", "last", bench.Nanoseconds, 1000, samplesNear(f[9]*ms, 3)...)
	s.add(name, setting, "join", "all", bench.Nanoseconds, 1000, samplesNear(f[10]*ms, 2)...)
	s.add(name, setting, "memory", "bytes", bench.Bytes, 1000, int64(f[8]*1024))
	s.add(name, setting, "rest", "requests", bench.Counts, 0, int64(f[6]))
	s.add(name, setting, "rest", "sent", bench.Bytes, 0, int64(f[6]*80))
	s.add(name, setting, "rest", "writes", bench.Counts, 0, int64(f[7]))
	s.add(name, setting, "store-leader", "unavailable", bench.Nanoseconds, 0, samplesNear(f[3]*ms, 3)...)
	s.add(name, setting, "store-leader", "moved", bench.Counts, 0, 0, 0, 0)
}
