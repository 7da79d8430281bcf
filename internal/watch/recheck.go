package watch

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

var errStale = fmt.Errorf("%w: the watch missed a change", eldest.ErrSilent)

// recheck asks etcd, now and then, whether a stream still tells everything. It
// belongs to one following; only the request runs on a goroutine of its own.
type recheck struct {
	source  *Source
	probe   func() (clientv3.Op, func(clientv3.OpResponse) bool)
	ctx     context.Context
	cancel  context.CancelFunc
	timer   *time.Timer // nil: no rechecks
	answers chan answer
	// asking says that a goroutine will send an answer.
	asking bool
	// doubted is an answer that contradicted the stream; nil if none does.
	doubted *answer
}

// answer is what came of one probe.
type answer struct {
	resp      clientv3.OpResponse
	err       error
	confirmed func(clientv3.OpResponse) bool
}

func newRecheck(ctx context.Context, s *Source, probe func() (clientv3.Op, func(clientv3.OpResponse) bool)) *recheck {
	r := &recheck{source: s, probe: probe, answers: make(chan answer, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if probe != nil && s.Recheck > 0 {
		r.timer = time.NewTimer(retry.Spread(s.Recheck, s.Recheck/10))
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

// ask sends a probe, or hands a doubted answer in for the second time.
func (r *recheck) ask() {
	if r.doubted != nil {
		r.answers <- *r.doubted
		return
	}
	op, confirmed := r.probe()
	r.asking = true
	go func() {
		resp, err := r.source.ask(r.ctx, r.source.patience(), op)
		r.answers <- answer{resp, err, confirmed}
	}()
}

// judge takes an answer in. One that contradicts the stream is judged again after
// a moment: by then, what the stream had under way has arrived.
func (r *recheck) judge(a answer) error {
	r.asking = false
	if a.err != nil {
		return a.err
	}
	next := r.source.Recheck
	switch {
	case a.confirmed(a.resp):
		r.doubted = nil
	case r.doubted != nil:
		return errStale
	default:
		r.doubted = &a
		next = min(next, r.source.Timeout)
	}
	r.timer.Reset(retry.Spread(next, next/10))
	return nil
}

// stop ends the recheck and waits for its goroutine.
func (r *recheck) stop() {
	r.cancel()
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.asking {
		<-r.answers
	}
}
