package actor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Bounds of what a leader asks for: a request that is lost must not keep it from the next.
const (
	requestTimeout = 700 * time.Millisecond
	resignTimeout  = time.Second
	// patience, beside two TTLs, is that of a write which is to arrive however late.
	patience = time.Second
)

// The pauses between two guarded writes, and between two reads of anybody.
const (
	leastWritePause, mostWritePause = 40 * time.Millisecond, 100 * time.Millisecond
	leastReadPause, mostReadPause   = 150 * time.Millisecond, 350 * time.Millisecond
)

// lead works until the tenure is over, and tells of its end at the instant at which it is
// told itself.
func (a *actor) lead(s contender.Session, t contender.Tenure, giveUp <-chan struct{}) {
	var work sync.WaitGroup
	work.Go(func() { a.sample(t) })
	work.Go(func() { a.work(t) })
	work.Go(func() {
		select {
		case <-t.Context().Done():
			return
		case <-a.life.Done():
		case <-giveUp:
		}
		a.quit(t)
	})
	<-t.Context().Done()
	a.tell(oracle.Event{Kind: oracle.Ended, Token: t.Token(), Lost: !s.Usable(), Text: fmt.Sprint(context.Cause(t.Context()))})
	a.set(func() { a.giveUp = nil })
	a.speak.say(Line{Notice: &Notice{Standing: Idle}})
	work.Wait()
}

// quit gives the tenure up. A resignation that fails is tried again, as the session may go
// on living.
func (a *actor) quit(t contender.Tenure) {
	a.tell(oracle.Event{Kind: oracle.Resigning, Token: t.Token()})
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), resignTimeout)
		err := t.Resign(ctx)
		cancel()
		if err == nil {
			return
		}
	}
}

// work makes writes with the guard, and writes to the store, until the tenure is over, and
// one of each afterwards: the request that was under way when the leader was stopped.
func (a *actor) work(t contender.Tenure) {
	store := a.store()
	defer store.Close()
	for n := 0; ; n++ {
		over := false
		select {
		case <-t.Context().Done():
			over = true
		default:
		}
		a.write(t, requestTimeout, over)
		_, _ = store.Write(a.cfg.Who, t.Token()) // the store has told of it
		if over {
			return
		}
		if n%4 == 3 {
			a.read(t)
		}
		if n%4 == 1 {
			// One that is not given up while it is held somewhere: it arrives when
			// somebody else leads, and has nothing but the guard to stop it.
			a.patient.Go(func() { a.write(t, patience+2*a.cfg.TTL, false) })
		}
		a.pause(t.Context().Done(), leastWritePause, mostWritePause)
	}
}

// write makes one guarded write, and waits for its outcome for so long.
func (a *actor) write(t contender.Tenure, timeout time.Duration, over bool) {
	name := fmt.Sprintf("%s-%d", a.cfg.Who, a.writes.Add(1))
	e := oracle.Event{Kind: oracle.Sent, Token: t.Token(), Write: name}
	a.tell(e)
	ctx, cancel := context.WithTimeout(context.Background(), max(timeout, a.lateness(over)))
	defer cancel()
	op := clientv3.OpPut(a.cfg.Data, oracle.WriteValue(t.Token(), name))
	var resp *clientv3.TxnResponse
	var err error
	if over {
		resp, err = late(ctx, a.client, t, op)
	} else {
		resp, err = t.Do(ctx, op)
	}
	switch {
	case err == nil:
		e.Kind, e.Commit = oracle.Acked, resp.Header.GetRevision()
	case errors.Is(err, contender.ErrRefused):
		e.Kind, e.Text = oracle.Refused, err.Error()
	default:
		e.Kind, e.Text = oracle.Unclear, err.Error()
	}
	a.tell(e)
}

// lateness is how long a late write may take: a defective one waits for its moment.
func (a *actor) lateness(over bool) time.Duration {
	if over && a.cfg.Defect == Unguarded {
		return 4 * a.cfg.TTL
	}
	return 0
}

// read reads what the leaders write, guarded by a tenure.
func (a *actor) read(t contender.Tenure) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	at := a.clock.real.Now()
	resp, err := t.Do(ctx, clientv3.OpGet(a.cfg.Data))
	until := a.clock.real.Now()
	if err != nil {
		return
	}
	a.saw(resp.Responses[0].GetResponseRange().Kvs, at, until, t.Token())
}

// look reads what the leaders write, without being one.
func (a *actor) look() {
	for a.life.Err() == nil {
		a.pause(a.life.Done(), leastReadPause, mostReadPause)
		ctx, cancel := context.WithTimeout(a.life, requestTimeout)
		at := a.clock.real.Now()
		resp, err := a.client.Get(ctx, a.cfg.Data)
		until := a.clock.real.Now()
		cancel()
		if err == nil {
			a.saw(resp.Kvs, at, until, 0)
		}
	}
}
