package lease

import (
	"context"
	"sync"
	"time"
)

// twice puts a request, and once more beside the first when half of its time has gone by
// without an answer: etcd's client then asks another member. Where much else goes through
// the same client, nothing says that the next attempt meets another member than the last;
// put once each, a renewal and its confirmation met one that swallows everything, of
// three, so often that it cost every second session its lease within five minutes
// (TestOneMemberOfThreeThatSwallows; decision 0020).
//
// It returns the first success, or an error when nothing is under way any more. Invariant:
// nothing is put when again says no, and nothing is under way when it returns.
func twice[T any](ctx context.Context, timeout time.Duration, again func() bool, put func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	var requests sync.WaitGroup
	defer requests.Wait()
	defer cancel()

	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 2)
	underWay := 0
	send := func() {
		underWay++
		requests.Go(func() {
			value, err := put(ctx)
			answers <- answer{value, err}
		})
	}
	send()
	second := time.NewTimer(timeout / 2)
	defer second.Stop()
	for {
		select {
		case a := <-answers:
			if underWay--; a.err == nil || underWay == 0 {
				return a.value, a.err
			}
		case <-second.C:
			if again() {
				send()
			}
		}
	}
}

// always and never say whether a request may be put again. A lease that is resumed never:
// nothing runs out yet.
func always() bool { return true }
func never() bool  { return false }
