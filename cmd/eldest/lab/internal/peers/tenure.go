package peers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// sampling is how often a leader's client is asked whether it leads.
	sampling = 5 * time.Millisecond
	// appending is how often a leader appends an entry.
	appending = 20 * time.Millisecond
	// answering is how long a leader waits for the answer of the store to an entry.
	answering = 5 * time.Second
	// retrying is how long a candidate that has lost its place waits before it campaigns again.
	retrying = 100 * time.Millisecond
	// resigning is how long a leader tries to resign.
	resigning = 20 * time.Second
)

// tenure is the leadership of a participant.
type tenure struct {
	peer.Tenure
	host *host
	// held is the last time, in nanoseconds, at which the client reported that it leads.
	held     atomic.Int64
	once     sync.Once // of the appending
	first    sync.Once // of the event
	accepted entries
}

// campaign starts to campaign with the participant's own candidate. If it loses its place in the queue
// (its session has expired, for example), a new candidate campaigns, as programs do.
func (p *host) campaign(client peer.Client, writes bool) {
	p.work.Go(func() {
		for {
			waited := false
			won, err := client.Campaign(p.ctx, p.id, func() {
				waited = true
				p.event(evQueued, nil)
			})
			at := time.Now()
			if err == nil {
				p.lead(won, at, writes)
				return
			}
			if !waited || retry.Sleep(p.ctx, retrying) != nil {
				p.event(evFailed, err)
				return
			}
		}
	})
}

// lead reports a win, and samples the tenure until the participant ends.
func (p *host) lead(won peer.Tenure, at time.Time, writes bool) {
	t := &tenure{Tenure: won, host: p, accepted: entries{changed: make(chan struct{})}}
	p.mu.Lock()
	p.tenure = t
	p.mu.Unlock()
	if writes {
		t.appendEntries()
	}
	p.say(reply{Event: evWon, At: nanos(at)})
	t.sample()
}

// sample asks the client again and again whether it leads. The time is read before each question, so
// that held is never later than the client's own claim.
func (t *tenure) sample() {
	leads := false
	for t.host.ctx.Err() == nil {
		now := time.Now()
		switch holds := t.Holds(); {
		case holds:
			t.held.Store(nanos(now))
			leads = true
		case leads:
			leads = false
			t.host.event(evLost, nil)
		}
		pause(t.host.ctx, sampling)
	}
}

// appendEntries starts to append entries while the client reports that it leads.
func (t *tenure) appendEntries() {
	t.once.Do(func() { t.host.work.Go(t.keepAppending) })
}

// keepAppending begins to append an entry every 20 ms, until one is refused: the leader leads no more,
// whatever its client reports. It does not wait for answers, because a store may leave one request
// without an answer and serve the next.
func (t *tenure) keepAppending() {
	ctx, cancel := context.WithCancel(t.host.writing)
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	ticker := time.NewTicker(appending)
	defer ticker.Stop()
	for n := 1; ctx.Err() == nil; n++ {
		if t.Holds() {
			calls.Go(func() {
				if errors.Is(t.appendEntry(n), peer.ErrRefused) {
					cancel()
				}
			})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (t *tenure) appendEntry(n int) error {
	ctx, cancel := context.WithTimeout(t.host.ctx, answering)
	defer cancel()
	began := time.Now()
	err := t.Append(ctx, entry(t.host.id, n))
	if err == nil {
		t.first.Do(func() { t.host.event(evAppended, nil) })
		t.accepted.accept(call{began, time.Now()})
	}
	return err
}

// resign starts to resign, and returns the time just before.
func (t *tenure) resign() time.Time {
	at := time.Now()
	t.host.work.Go(func() {
		ctx, cancel := context.WithTimeout(t.host.ctx, resigning)
		defer cancel()
		t.host.event(evResigned, t.Resign(ctx))
	})
	return at
}

// entries are the calls by which the store has accepted entries.
type entries struct {
	mu      sync.Mutex
	calls   []call
	changed chan struct{} // closed when there is one more
}

// call is when a call of Append began and ended.
type call struct{ began, ended time.Time }

func (e *entries) accept(c call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, c)
	close(e.changed)
	e.changed = make(chan struct{})
}

// await returns when the first entry that was appended after a time was accepted. It blocks until there
// is one, or ctx ends.
func (e *entries) await(ctx context.Context, after time.Time) (time.Time, error) {
	for seen := 0; ; {
		e.mu.Lock()
		calls, changed := e.calls[seen:], e.changed
		e.mu.Unlock()
		for _, c := range calls {
			if c.began.After(after) {
				return c.ended, nil
			}
		}
		seen += len(calls)
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// pause sleeps, or until ctx ends.
func pause(ctx context.Context, d time.Duration) { _ = retry.Sleep(ctx, d) }
