package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The Go benchmarks measure the same turns as the scenarios, contender by contender, on
// a cluster of three members, for benchstat to compare one state of the code with
// another:
//
//	go test -run '^$' -bench Handover -count 10 ./bench | tee new.txt
//	benchstat -col /contender new.txt
//
// An operation is a turn; ns/op is the mean of what the turn measures, p50-ns and p99-ns
// are of the same samples. They do not take turns with each other: to compare
// contenders on a machine that drifts, run the command.

// benchStage is a cluster for benchmarks, and a run on it that is never reported.
func benchStage(b *testing.B) *run {
	b.Helper()
	c := etcdtest.Start(b, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond, Election: time.Second})
	site := siteAt(c.Endpoints())
	r, err := newRun(context.Background(), site, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.close)
	return r
}

// turns runs a turn b.N times for one contender, and reports the metric.
func turns(b *testing.B, r *run, name, metric string, measure func(ctx context.Context, t *turn) error) {
	b.Helper()
	r.report, r.failed, r.places = &Report{}, nil, nil
	r.options.Contenders = []string{name}
	if err := r.interleave(context.Background(), point{regime: "benchmark", rounds: b.N}, measure); err != nil {
		b.Fatal(err)
	}
	x := r.conclude().Find(name, "benchmark", 0, metric)
	if x == nil || x.Errors > 0 {
		b.Fatalf("turns failed: %+v", r.report.Results)
	}
	sorted, sum := slices.Sorted(slices.Values(x.Samples)), int64(0)
	for _, v := range sorted {
		sum += v
	}
	b.ReportMetric(float64(sum)/float64(len(sorted)), "ns/op")
	b.ReportMetric(float64(Percentile(sorted, 50)), "p50-ns")
	b.ReportMetric(float64(Percentile(sorted, 99)), "p99-ns")
}

// eachContender runs a benchmark for every contender.
func eachContender(b *testing.B, f func(b *testing.B, name string)) {
	for _, name := range contender.Names() {
		b.Run("contender="+name, func(b *testing.B) { f(b, name) })
	}
}

func benchHost(b *testing.B, r *run) Host {
	b.Helper()
	h, err := r.host(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func BenchmarkHandover(b *testing.B) {
	r := benchStage(b)
	leader, successor := benchHost(b, r), benchHost(b, r)
	for _, moment := range moments[:2] { // without load
		b.Run("regime="+moment.name, func(b *testing.B) {
			eachContender(b, func(b *testing.B, name string) {
				turns(b, r, name, "win", func(ctx context.Context, t *turn) error { return t.handOver(ctx, leader, successor, moment.after) })
			})
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	r := benchStage(b)
	host := benchHost(b, r)
	b.Run("regime=cold", func(b *testing.B) {
		eachContender(b, func(b *testing.B, name string) {
			turns(b, r, name, "win", func(ctx context.Context, t *turn) error { return t.startCold(ctx, []Host{host}) })
		})
	})
	b.Run("regime=live", func(b *testing.B) {
		eachContender(b, func(b *testing.B, name string) {
			turns(b, r, name, "win", func(ctx context.Context, t *turn) error { return t.startLive(ctx, host) })
		})
	})
}

// BenchmarkGuard is the usual kind: an operation is a write, allocations included.
func BenchmarkGuard(b *testing.B) {
	r := benchStage(b)
	host := benchHost(b, r)
	eachContender(b, func(b *testing.B, name string) {
		ctx := b.Context()
		s, err := host.Open(ctx, name, time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := s.Close(context.WithoutCancel(ctx)); err != nil {
				b.Error(err)
			}
		}()
		c, err := s.Candidate(fmt.Sprintf("%s-guard-%s", r.name, name), "")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Campaign(ctx); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Put(ctx, r.name+"-value", "v"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
