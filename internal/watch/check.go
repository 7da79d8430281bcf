package watch

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
)

var errStale = fmt.Errorf("%w: the watch missed a change", eldest.ErrUnavailable)

// grace is what a stream has at least to tell what an answer knew before it; a busy machine
// takes tens of milliseconds, and that is no reason to open another one.
const grace = 100 * time.Millisecond

// recheck asks etcd, now and then, whether a stream still tells everything. It
// belongs to one following; only the request runs on a goroutine of its own.
// Between two requests, most of the time that is, it holds a timer and no more.
type recheck struct {
	source *Source
	probe  func() (clientv3.Op, func(clientv3.OpResponse) bool)
	timer  *time.Timer // nil: no rechecks
	// answers delivers what is to be judged; nil between two requests.
	answers chan *answer
	// cancel ends the request that is under way, whose goroutine will send an
	// answer; nil if there is none.
	cancel context.CancelFunc
	// doubted is an answer that contradicted the stream; nil if none does.
	doubted *answer
}

// answer is what came of one probe.
type answer struct {
	resp      clientv3.OpResponse
	err       error
	confirmed func(clientv3.OpResponse) bool
	// known is the revision that the target knew when the probe was sent.
	known int64
}

func newCheck(s *Source, probe func() (clientv3.Op, func(clientv3.OpResponse) bool)) recheck {
	r := recheck{source: s, probe: probe}
	if probe != nil && s.WatchCheck > 0 {
		r.timer = time.NewTimer(retry.Spread(s.WatchCheck, s.WatchCheck/10))
	}
	return r
}

// due delivers when it is time to ask; never, without rechecks.
func (r *recheck) due() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

// ask sends a probe, or hands a doubted answer in for the second time. known is the
// revision that the target knows.
func (r *recheck) ask(ctx context.Context, known int64) {
	s, answers := r.source, make(chan *answer, 1)
	r.answers = answers
	if r.doubted != nil {
		answers <- r.doubted
		return
	}
	op, confirmed := r.probe()
	asking, cancel := context.WithCancel(ctx)
	r.cancel = cancel
	go func() {
		resp, err := s.ask(asking, s.patience(), op)
		answers <- &answer{resp, err, confirmed, known}
	}()
}

// over notes that the answer has been received. Invariant: whoever receives it says so at
// once, or stop would wait for another one.
func (r *recheck) over() {
	r.release()
	r.answers = nil
}

// judge takes an answer in. One that contradicts the stream is judged again after
// a moment: by then, what the stream had under way has arrived.
func (r *recheck) judge(a *answer) error {
	if a.err != nil {
		return a.err
	}
	if a.resp.Get().Header.Revision < a.known {
		return stream.ErrBack
	}
	next := r.source.WatchCheck
	switch {
	case a.confirmed(a.resp):
		r.doubted = nil
	case r.doubted != nil:
		return errStale
	default:
		r.doubted = a
		next = max(min(next, r.source.Timeout), grace)
	}
	r.timer.Reset(retry.Spread(next, next/10))
	return nil
}

// stop ends the recheck and waits for its goroutine.
func (r *recheck) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.release() {
		<-r.answers
	}
}

// release gives up the request that is under way, and reports whether there was one.
func (r *recheck) release() bool {
	if r.cancel == nil {
		return false
	}
	r.cancel()
	r.cancel = nil
	return true
}
