package bench

import (
	"testing"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The Go benchmarks run scenarios, contender by contender, on a cluster of three members, for
// benchstat to compare one state of the code with another:
//
//	go test -run '^$' -bench Handover -count 10 ./bench | tee new.txt
//	benchstat -col /contender new.txt
//
// An operation is a round. The contenders do not alternate: to compare them on a machine whose
// speed changes over time, run the command.
func BenchmarkHandover(b *testing.B) { benchmark(b, "handover", Options{}) }
func BenchmarkJoin(b *testing.B)     { benchmark(b, "join", Options{Sizes: []int{10}}) }
func BenchmarkGuard(b *testing.B)    { benchmark(b, "guard", Options{}) }

func benchmark(b *testing.B, scenario string, o Options) {
	c := etcdtest.Start(b, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond, Election: time.Second})
	for _, name := range contender.Names() {
		b.Run("contender="+name, func(b *testing.B) {
			o.Rounds, o.Warmup, o.Contenders = b.N, -1, []string{name}
			report, err := Run(b.Context(), siteOf(c), scenario, o)
			if err != nil {
				b.Fatal(err)
			}
			for _, x := range report.Results {
				if x.Errors > 0 {
					b.Fatal(x.FirstError)
				}
				unit := x.Regime + "-" + x.Metric + "-" + x.Unit
				b.ReportMetric(float64(x.P50), "p50-"+unit)
				b.ReportMetric(float64(x.P99), "p99-"+unit)
			}
			b.ReportMetric(0, "ns/op") // it includes the load's first second and the waits
		})
	}
}
