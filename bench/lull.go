package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

// lull is for how long nothing may have been sent or told for everything to count as
// done.
const lull = 200 * time.Millisecond

// lullPatience is how long to wait for a lull. Who has something to ask all the time does
// not fall silent at all: a thousand who look whether all is well every few seconds do so
// in bursts, as they came, but several thousand leave no gap.
const lullPatience = 15 * time.Second

var errRestless = errors.New("the clients never fell silent")

// quiet blocks until nothing was sent or told on the hosts for the time of a lull, and
// no answer is missing, and returns what was until then.
func quiet(ctx context.Context, hosts []Host) (Wire, error) {
	return quietOf(ctx, hosts, func(w Wire) (Wire, bool) { return w, w.Unanswered() > 0 })
}

// untold is quiet among those who never stop asking: nothing is told for as long.
func untold(ctx context.Context, hosts []Host) (Wire, error) {
	return quietOf(ctx, hosts, func(w Wire) (Wire, bool) { return Wire{Events: w.Events}, false })
}

// quietOf listens to a part of what is sent and told, and returns all of it.
func quietOf(ctx context.Context, hosts []Host, part func(Wire) (heard Wire, busy bool)) (Wire, error) {
	begun := time.Now()
	var last Wire
	for since := begun; ; {
		w, err := wires(ctx, hosts)
		if err != nil {
			return Wire{}, err
		}
		heard, busy := part(w)
		switch {
		case heard != last || busy:
			last, since = heard, time.Now()
		case time.Since(since) >= lull:
			return w, nil
		}
		if time.Since(begun) > lullPatience {
			return Wire{}, fmt.Errorf("%w for %v within %v", errRestless, lull, lullPatience)
		}
		if err := retry.Sleep(ctx, lull/20); err != nil {
			return Wire{}, err
		}
	}
}

// settle blocks until what was under way on the hosts is done, as far as one can tell.
// A contender that never falls silent is measured as it is.
func settle(ctx context.Context, hosts []Host) error {
	if _, err := quiet(ctx, hosts); err != nil && !errors.Is(err, errRestless) {
		return err
	}
	return nil
}

// wires adds up what the hosts' clients have sent and were told so far.
func wires(ctx context.Context, hosts []Host) (sum Wire, err error) {
	for _, h := range hosts {
		w, err := h.Wire(ctx)
		if err != nil {
			return Wire{}, err
		}
		sum = sum.Plus(w)
	}
	return sum, nil
}
