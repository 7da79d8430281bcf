package bench

import (
	"context"
	"runtime"
)

// weight is what this process takes.
type weight struct{ heap, stack, goroutines int64 }

// weigh blocks until the host has fallen silent, and weighs.
func weigh(ctx context.Context, on Host) (weight, error) {
	if err := settle(ctx, []Host{on}); err != nil {
		return weight{}, err
	}
	// The second collection takes what pools still held in the first.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return weight{int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())}, nil
}

// weighed notes what has come since, for each of the point's N and in all.
func (t *turn) weighed(ctx context.Context, on Host, empty weight) error {
	w, err := weigh(ctx, on)
	if err != nil {
		return err
	}
	n := int64(t.point.n)
	each := func(total int64) int64 { return max(0, (total+n/2)/n) }
	t.sample("heap", Bytes, each(w.heap-empty.heap))
	t.sample("stack", Bytes, each(w.stack-empty.stack))
	t.sample("goroutines", Counts, each(w.goroutines-empty.goroutines))
	t.sample("memory in all", Bytes, max(0, w.heap+w.stack-empty.heap-empty.stack))
	t.sample("goroutines in all", Counts, w.goroutines-empty.goroutines)
	return nil
}
