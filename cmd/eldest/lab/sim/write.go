package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// write makes guarded writes until the tenure is over, and one more, which must
// be refused: the queued write of a leader that was paused. Each is followed by one to the
// store outside etcd.
func (a *actor) write(t contender.Tenure) {
	for n := 1; ; n++ {
		over := !a.sleep(t, n)
		a.writeOnce(t)
		a.writeOutside(t)
		if over {
			return
		}
		if a.writes%readEach == 1 { // the first time at once: what a leader finds
			a.stage.read(context.WithoutCancel(a.life), a.name, a.host.Client)
		}
	}
}

// sleep waits for the next write and reports whether the tenure still goes on.
func (a *actor) sleep(t contender.Tenure, n int) bool {
	d := a.stage.tempo.pace
	switch {
	case n == 1:
		d = 0 // at once: a win is worth most while others are still unsure
	case a.stage.calm.Load():
		d = max(d, 3*time.Second) // only to save time
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}

func (a *actor) writeOnce(t contender.Tenure) {
	a.writes++ // over all tenures: a token may come back where an election is at fault
	name := fmt.Sprintf("%s-%d", a.name, a.writes)
	// Not a.life: a write on the wire when the process ends stays unclear, and
	// is dropped by the host when the process is dead.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), time.Second)
	defer cancel()
	if !a.stage.log.Add(oracle.Event{Who: a.name, Kind: oracle.Sent, Token: t.Token(), Write: name}) {
		return
	}
	resp, err := t.Do(ctx, clientv3.OpPut(dataKey, oracle.WriteValue(t.Token(), name)))
	e := oracle.Event{Kind: oracle.Acked, Token: t.Token(), Write: name}
	switch {
	case err == nil:
		e.Commit = resp.Header.Revision
	case errors.Is(err, contender.ErrRefused):
		e.Kind, e.Text = oracle.Refused, err.Error()
	default:
		e.Kind, e.Text = oracle.Unclear, err.Error()
	}
	a.tell(e)
}
