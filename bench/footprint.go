package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

var footprint = Scenario{
	Name:     "footprint",
	Summary:  "memory and goroutines of a waiting candidate, an observer and an election; what many elections on one session send",
	Defaults: Options{Rounds: 3, Sizes: []int{1000}, TTLs: []time.Duration{6 * time.Second}},
	Regimes: []Term{
		{Name: "candidate", Text: "N candidates wait, each with a session of its own; a goroutine of each is the caller's"},
		{Name: "shared", Text: "N candidates wait, each in an election of its own, all on one session; a goroutine of each is the caller's"},
		{Name: "observer", Text: "N observers of one election wait for news; the callers have no goroutines"},
		{Name: "election", Text: "N elections are led on one session"},
	},
	Metrics: []Term{
		{Name: "heap", Text: "live heap for each of the N, after a garbage collection", Better: Lower},
		{Name: "stack", Text: "stacks for each of the N", Better: Lower},
		{Name: "goroutines", Text: "goroutines for each of the N, rounded", Better: Lower},
		{Name: "memory in all", Text: "heap and stacks of all N", Better: Lower},
		{Name: "goroutines in all", Text: "goroutines of all N", Better: Lower},
		{Name: "requests", Text: "requests of all kinds in one TTL, for all N elections", Better: Lower},
		{Name: "renewals", Text: "renewals of the one lease in one TTL, for all N elections; neither direction is better"},
		{Name: "reads", Text: "reads in one TTL, for all N elections", Better: Lower},
		{Name: "streams", Text: "watch streams opened, for all N elections", Better: Lower},
	},
	measure: measureFootprint,
}

// measureFootprint measures this process, which runs all candidates and observers, whatever
// --processes sets. Contenders are used without a host, which would take memory of its own.
func measureFootprint(r *run) {
	ttl := r.granted(r.options.TTLs[0])
	points := r.points(point{cold: true, timeout: turnTimeout}, 30*time.Millisecond, "candidate", "shared", "observer", "election")
	r.measure(points, func(t *turn) {
		f := &footprints{turn: t, of: must(contender.Named(t.contender)), here: t.local()}
		switch t.point.regime {
		case "observer":
			f.observers()
		case "election":
			f.elections(ttl)
		default:
			f.candidates(t.point.regime == "shared")
		}
	})
}

// footprints is a turn that uses a client of its own.
type footprints struct {
	*turn
	of   contender.Contender
	here *local
}

func (f *footprints) open(on *local, ttl time.Duration) contender.Session {
	s := must(f.of.Open(f.ctx, on.client, ttl))
	f.closeLater(s)
	return s
}

// names returns the names of n elections.
func (f *footprints) names(n int) (names []string) {
	for range n {
		names = append(names, f.election())
	}
	return names
}

// lead makes a candidate of a session win an election that has no other candidates.
func (f *footprints) lead(s contender.Session, election string) contender.Tenure {
	return must(must(s.Candidate(election, "")).Campaign(f.ctx))
}

// candidates measures the candidates that wait behind a leader: in one election with a session
// each, or in an election each with one session.
func (f *footprints) candidates(shared bool) {
	elections := f.names(1)
	if shared {
		elections = f.names(f.point.n + 1)
	}
	leader, session := f.open(f.local(), queueTTL), f.open(f.here, queueTTL)
	tenures := make([]contender.Tenure, len(elections))
	f.parallel(len(elections), func(i int) { tenures[i] = f.lead(leader, elections[i]) })
	live, fail := context.WithCancelCause(f.cleanup)
	var waiting sync.WaitGroup
	f.after(func(context.Context) {
		fail(nil)
		waiting.Wait()
	})
	f.each(func(i int) {
		s := session
		if !shared {
			s = f.open(f.here, queueTTL)
		}
		c := must(s.Candidate(elections[i%len(elections)], ""))
		waiting.Go(func() {
			if _, err := c.Campaign(live); live.Err() == nil {
				fail(fmt.Errorf("a campaign behind a leader has ended: %w", cmp.Or(err, errors.New("it has won"))))
			}
		})
	})
	check(context.Cause(live))
	runtime.KeepAlive(tenures)
}

func (f *footprints) observers() {
	election := f.election()
	f.lead(f.open(f.here, queueTTL), election)
	sight := must(f.of.Sight(f.ctx, f.here.client, election))
	f.after(sight.Close)
	feeds := make([]contender.Feed, f.point.n+1)
	f.each(func(i int) {
		feeds[i] = must(sight.Feed(f.ctx))
		must(feeds[i].Next(f.ctx))
	})
	runtime.KeepAlive(feeds)
}

func (f *footprints) elections(ttl time.Duration) {
	begun := f.here.meter.read()
	session := f.open(f.here, ttl)
	tenures, elections := make([]contender.Tenure, f.point.n+1), f.names(f.point.n+1)
	f.each(func(i int) { tenures[i] = f.lead(session, elections[i]) })
	before := f.here.meter.read()
	f.counted("streams", before.minus(begun)[streams])
	f.sleep(ttl)
	sent := f.here.meter.read().minus(before)
	f.counted("requests", sent.requests())
	f.counted("renewals", sent[renewals])
	f.counted("reads", sent[reads])
	runtime.KeepAlive(tenures)
}

// each starts one instance, which creates what all of them share, and then N more, and measures
// what the N take.
func (f *footprints) each(begin func(i int)) {
	n := int64(f.point.n)
	var before, after memory
	for i, count := range []int{1, f.point.n} {
		before = after
		f.parallel(count, func(j int) { begin(i + j) })
		f.quiet(host{f.here})
		after = memoryNow()
	}
	each := func(total int64) int64 { return max(0, (total+n/2)/n) }
	heap, stack, goroutines := after.heap-before.heap, after.stack-before.stack, after.goroutines-before.goroutines
	f.sample("heap", Bytes, each(heap))
	f.sample("stack", Bytes, each(stack))
	f.counted("goroutines", each(goroutines))
	f.sample("memory in all", Bytes, max(0, heap+stack))
	f.counted("goroutines in all", goroutines)
}

// memory is what this process uses.
type memory struct{ heap, stack, goroutines int64 }

func memoryNow() memory {
	// The second collection frees what pools still held during the first.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())}
}
