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

// grace is the shortest time in which a stream must deliver a change that an answer has shown. A
// busy machine takes tens of milliseconds, and that is no reason to open another stream.
const grace = 100 * time.Millisecond

// livenessCheck asks etcd at intervals whether a stream still delivers every change. It belongs to one
// following; only the request runs on a goroutine of its own. Between two requests, which is most
// of the time, it holds only a timer.
type livenessCheck struct {
	source *Source
	probe  func() (clientv3.Op, func(clientv3.OpResponse) bool)
	timer  *time.Timer // nil: no checks
	// answers delivers the answer to judge; nil between two requests.
	answers chan *answer
	// cancel ends the request under way, whose goroutine will send an answer; nil if there is none.
	cancel context.CancelFunc
	// doubted is an answer that contradicted the stream; nil if none does.
	doubted *answer
}

// answer is the outcome of one probe.
type answer struct {
	resp      clientv3.OpResponse
	err       error
	confirmed func(clientv3.OpResponse) bool
	// known is the revision that the target had received when the probe was sent.
	known int64
}

func newCheck(s *Source, probe func() (clientv3.Op, func(clientv3.OpResponse) bool)) livenessCheck {
	r := livenessCheck{source: s, probe: probe}
	if probe != nil && s.WatchCheck > 0 {
		r.timer = time.NewTimer(retry.Spread(s.WatchCheck, s.WatchCheck/10))
	}
	return r
}

// due returns a channel that delivers when it is time to ask; nil without checks.
func (r *livenessCheck) due() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

// ask sends a probe, or submits a doubted answer for a second judgement. known is the revision that
// the target has received.
func (r *livenessCheck) ask(ctx context.Context, known int64) {
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

// over notes that the answer has been received. Invariant: it is called right after each receive
// from answers, or stop would wait for another answer.
func (r *livenessCheck) over() {
	r.release()
	r.answers = nil
}

// judge judges an answer. An answer that contradicts the stream is judged again after a short time:
// by then the changes that the stream had under way have arrived.
func (r *livenessCheck) judge(a *answer) error {
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

// stop ends the check and waits for its goroutine.
func (r *livenessCheck) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.release() {
		<-r.answers
	}
}

// release cancels the request under way, and reports whether there was one.
func (r *livenessCheck) release() bool {
	if r.cancel == nil {
		return false
	}
	r.cancel()
	r.cancel = nil
	return true
}
