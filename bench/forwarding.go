package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/echo"
)

var forwarding = Scenario{
	Name:     "forwarding",
	Summary:  "calls of a service: at its leader, through a follower, and without a curator",
	Defaults: Options{Rounds: 4, Warmup: 1, Sizes: []int{1, 4, 16, 64}, For: 100 * time.Millisecond},
	Contenders: []Term{
		{Name: echo.Direct, Text: "the callers call the curator node that leads"},
		{Name: echo.Forwarded, Text: "they call a node that follows, which forwards to the leader"},
		{Name: echo.Plain, Text: "they call a gRPC server without a curator"},
	},
	InProcess: true,
	Regimes:   exchangeRegimes(),
	Metrics: []Term{
		{Name: "call", Text: "one unary call, of up to 100 calls of each turn, chosen at random", Better: Lower},
		{Name: "rate", Text: "unary calls of all callers in one second", Better: Higher},
		{Name: "bytes", Text: "bytes of messages of all streams in one second, in each direction that has a stream", Better: Higher},
		{Name: "processor", Text: "processor time of all callers and servers for one unary call, or for one message of a stream", Better: Lower},
	},
	measure: measureForwarding,
}

// latencies is how many calls of a turn are samples: all of them would be millions.
const latencies = 100

// exchange is what a caller does again and again: a unary call, or a whole stream.
type exchange struct {
	regime, text string
	size         int
	// stream is how many messages a stream has, 0 for a unary call.
	stream int
	run    func(c *echo.Caller, ctx context.Context, payload []byte) error
}

// exchanges are the kinds of calls, in each size.
func exchanges() (all []exchange) {
	for _, kind := range []struct {
		name, text string
		stream     bool
		run        func(c *echo.Caller, ctx context.Context, payload []byte) error
	}{
		{"unary", "makes unary calls, one after another: %[1]s there and back", false, (*echo.Caller).Unary},
		{"server-stream", "receives streams, one after another, of %[2]d messages of %[1]s", true, (*echo.Caller).ServerStream},
		{"bidi-stream", "sends and receives streams at the same time, of %[2]d messages of %[1]s", true, (*echo.Caller).Bidi},
	} {
		for _, size := range []struct {
			name, text string
			bytes      int
		}{{"100B", "100 bytes", 100}, {"4KiB", "4 KiB", 4 << 10}, {"1MiB", "1 MiB", 1 << 20}} {
			x := exchange{regime: kind.name + "-" + size.name, size: size.bytes, run: kind.run}
			messages := echo.StreamLength(size.bytes)
			if kind.stream {
				x.stream = messages
			}
			x.text = "each of N callers, with its own connection, " + fmt.Sprintf(kind.text, size.text, messages)
			all = append(all, x)
		}
	}
	return all
}

func exchangeRegimes() (terms []Term) {
	for _, x := range exchanges() {
		terms = append(terms, Term{Name: x.regime, Text: x.text})
	}
	return terms
}

// measureForwarding has one service for the whole run, and for each contender callers whose
// connections live as long.
func measureForwarding(r *run) {
	client := must(r.site.dial())
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(r.ctx, turnTimeout)
	defer cancel()
	service := must(echo.Start(ctx, client, r.name+"-forwarding"))
	defer service.Close()
	callers := map[string][]*echo.Caller{}
	for _, way := range r.options.Contenders {
		for range slices.Max(r.options.Sizes) {
			c := must(service.Caller(way))
			defer func() { _ = c.Close() }()
			callers[way] = append(callers[way], c)
		}
	}
	by := map[string]exchange{}
	for _, x := range exchanges() {
		by[x.regime] = x
	}
	points := r.points(point{timeout: turnTimeout + r.options.For}, 100*time.Millisecond, names(exchangeRegimes())...)
	r.measure(points, func(t *turn) {
		t.exchange(service, callers[t.contender][:t.point.n], by[t.point.regime])
	})
}

// exchange lets all callers work for as long as a turn lasts, each until its last exchange is
// complete, and checks that each call took the contender's way.
func (t *turn) exchange(service *echo.Service, callers []*echo.Caller, x exchange) {
	payload := make([]byte, x.size)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	before := service.Calls()
	// The first call connects the caller, and is not measured.
	t.together(len(callers), func(ctx context.Context, i int) error { return callers[i].Unary(ctx, nil) })
	runtime.GC() // free the memory of other contenders first
	took := make([][]time.Duration, len(callers))
	cpu, begun := processorTime(), time.Now()
	t.together(len(callers), func(ctx context.Context, i int) error {
		for now := begun; now.Sub(begun) < t.options.For; {
			if err := x.run(callers[i], ctx, payload); err != nil {
				return err
			}
			done := time.Now()
			took[i] = append(took[i], done.Sub(now))
			now = done
		}
		return nil
	})
	lasted, all := time.Since(begun), slices.Concat(took...)
	cpu = processorTime() - cpu
	check(before.Took(service.Calls(), t.contender, int64(len(callers)+len(all))))

	perSecond := func(n int) int64 { return int64(float64(n)/lasted.Seconds() + 0.5) }
	if x.stream > 0 {
		t.sample("bytes", Bytes, perSecond(len(all)*x.stream*x.size))
	} else {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, d := range all[:min(len(all), latencies)] {
			t.took("call", d)
		}
		t.counted("rate", perSecond(len(all)))
	}
	if cpu > 0 {
		t.took("processor", cpu/time.Duration(len(all)*max(1, x.stream)))
	}
}

// together calls f for 0 to n-1, all at the same time, and ends the turn with the first error.
func (t *turn) together(n int, f func(ctx context.Context, i int) error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	check(context.Cause(ctx))
}
