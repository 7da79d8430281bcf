package participant

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/lease"
)

// Bounds of a leader's requests: a lost request must not prevent the next one.
const (
	requestTimeout = 700 * time.Millisecond
	resignTimeout  = time.Second
	// patience, in addition to two TTLs, is the timeout of a write that may arrive very late.
	patience = time.Second
)

// The pauses between two guarded writes, and between two reads by any participant.
const (
	leastWritePause, mostWritePause = 40 * time.Millisecond, 100 * time.Millisecond
	leastReadPause, mostReadPause   = 150 * time.Millisecond, 350 * time.Millisecond
)

// lead works until the tenure is over or suspended, and reports that at the instant at which it is
// notified. It returns whether the tenure is suspended, and may be resumed.
func (p *participant) lead(s contender.Session, t contender.Tenure) (suspended bool) {
	var work sync.WaitGroup
	var decided atomic.Bool // how the tenure ends
	work.Go(func() { p.sample(t) })
	work.Go(func() {
		if p.Calm > 0 {
			p.calmly(t)
		} else {
			p.work(t)
		}
	})
	work.Go(func() {
		select {
		case <-t.Context().Done():
			return
		case <-p.life.Done():
		case <-p.leave:
		}
		if decided.CompareAndSwap(false, true) {
			p.resigns.Store(true)
			p.phases.intend(leaving)
			p.resign(t)
		}
	})
	<-t.Context().Done()
	cause := context.Cause(t.Context())
	e := oracle.Event{Kind: oracle.Ended, Token: t.Token(), Lost: !s.Usable(), Text: fmt.Sprint(cause)}
	if suspended = errors.Is(cause, eldest.ErrSuspended) && decided.CompareAndSwap(false, true); suspended {
		e.Kind, e.Lost = oracle.Suspended, false
	}
	p.tell(e)
	work.Wait()
	return suspended
}

// resign ends the tenure. A resignation that fails is retried, as the session may continue to live.
func (p *participant) resign(t contender.Tenure) {
	p.tell(oracle.Event{Kind: oracle.Resigning, Token: t.Token()})
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
		err := t.Resign(ctx)
		cancel()
		if err == nil {
			return
		}
	}
}

// work makes guarded writes, and offers its token to the store outside etcd, until the tenure is
// over, and makes one of each afterwards: the request in flight when the leader was stopped.
func (p *participant) work(t contender.Tenure) {
	for n := 0; ; n++ {
		over := t.Context().Err() != nil
		p.write(t, requestTimeout, over)
		_, _ = fmt.Fprintf(p.lines, `{"offer":%d}`+"\n", t.Token()) // if this fails, writing the next event ends the process
		if over {
			return
		}
		switch n % 4 {
		case 1:
			// A write that is not given up while it is held in the network: it arrives when another
			// candidate leads, and only the guard can stop it.
			p.patient.Go(func() { p.write(t, patience+2*p.TTL, false) })
		case 3:
			p.read(context.Background(), t.Token(), func(ctx context.Context) ([]*mvccpb.KeyValue, error) {
				resp, err := t.Do(ctx, clientv3.OpGet(p.Data))
				if err != nil {
					return nil, err
				}
				return resp.Responses[0].GetResponseRange().Kvs, nil
			})
		}
		p.pause(t.Context(), leastWritePause, mostWritePause)
	}
}

// write makes one guarded write, and waits for its outcome for timeout at most.
func (p *participant) write(t contender.Tenure, timeout time.Duration, over bool) {
	name := fmt.Sprintf("%s-%d", p.Who, p.writes.Add(1))
	e := oracle.Event{Kind: oracle.Sent, Token: t.Token(), Write: name}
	p.tell(e)
	op := clientv3.OpPut(p.Data, oracle.WriteValue(t.Token(), name))
	do := t.Do
	if over {
		do = func(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) { return p.late(ctx, t, op) }
		if p.Without == Guard { // it waits until another candidate leads
			timeout = 4 * p.TTL
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	resp, err := do(ctx, op)
	switch {
	case err == nil:
		e.Kind, e.Commit = oracle.Acked, resp.Header.GetRevision()
	case errors.Is(err, contender.ErrRefused):
		e.Kind, e.Text = oracle.Refused, err.Error()
	default:
		e.Kind, e.Text = oracle.Unclear, err.Error()
	}
	p.tell(e)
}

// look reads what the leaders write, without a tenure.
func (p *participant) look() {
	for p.pause(p.life, leastReadPause, mostReadPause) {
		p.read(p.life, 0, func(ctx context.Context) ([]*mvccpb.KeyValue, error) {
			resp, err := p.client.Get(ctx, p.Data)
			if err != nil {
				return nil, err
			}
			return resp.Kvs, nil
		})
	}
}

// read reports what is read; token is that of the tenure that guards the read, if any. Reads that
// fail are not reported.
func (p *participant) read(ctx context.Context, token int64, get func(context.Context) ([]*mvccpb.KeyValue, error)) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	e := oracle.Event{Kind: oracle.Read, At: lease.Boot().Now(), Token: token}
	kvs, err := get(ctx)
	e.Until = lease.Boot().Now()
	if err != nil {
		return
	}
	if len(kvs) > 0 {
		name, err := oracle.ReadValue(string(kvs[0].Value))
		if err != nil {
			name = string(kvs[0].Value) // of no write: the oracle does not find it either
		}
		e.Write, e.Rev = name, kvs[0].ModRevision
	}
	p.tell(e)
}

const (
	// samplePause is the time between two samples.
	samplePause = time.Millisecond
	// sampleTold is how long samples need not be reported while nothing changes.
	sampleTold = 25 * time.Millisecond
	// silence is a time between two samples that the scheduler does not usually cause: both samples
	// are reported.
	silence = 10 * time.Millisecond
	// sampleAfter is how many samples are reported after the end of a tenure.
	sampleAfter = 3
)

// sample checks every millisecond whether the tenure's holder is certain to lead, until it is not,
// and a few times after that.
func (p *participant) sample(t contender.Tenure) {
	sampleTold, silence, sampleAfter := sampleTold, silence, sampleAfter
	if p.Calm > 0 {
		sampleTold, silence, sampleAfter = calmTold, calmSilence, 1
	}
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	var last oracle.Event // the sample before; it was reported unless it is pending
	told, pending := time.Duration(0), false
	for after := 0; after < sampleAfter; <-tick.C {
		// Only the check may come between the two readings of the clock.
		at := lease.Boot().Now()
		sure := t.Holds()
		until := lease.Boot().Now()

		e := oracle.Event{Kind: oracle.Sure, At: at, Until: until, Token: t.Token()}
		if !sure {
			e.Kind = oracle.NotSure
			after++
		}
		notable := !sure || until-last.At > silence // also the first
		if pending && notable {
			p.tell(last)
		}
		if pending = !notable && at-told <= sampleTold; !pending {
			p.tell(e)
			told = at
		}
		last = e
	}
}
