package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/tests/sim/history"
)

// The pause between two guarded writes of a leader, while there are faults and
// after. The latter only saves time.
const (
	pace     = 300 * time.Millisecond
	calmPace = 3 * time.Second
)

// write makes guarded writes until the tenure is over, and one more, which must
// be refused: the queued write of a leader that was paused.
func (a *actor) write(t Tenure) {
	for n := 1; ; n++ {
		over := !a.sleep(t, n)
		a.writeOnce(t)
		if over {
			return
		}
	}
}

// sleep waits for the next write and reports whether the tenure still goes on.
func (a *actor) sleep(t Tenure, n int) bool {
	d := pace
	switch {
	case n == 1:
		d = 0 // at once: a win is worth most while others are still unsure
	case a.stage.calm.Load():
		d = calmPace
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (a *actor) writeOnce(t Tenure) {
	a.writes++ // over all tenures: a token may come back where an election is at fault
	name := fmt.Sprintf("%s-%d", a.name, a.writes)
	// Not a.life: a write on the wire when the process ends stays unclear, and
	// is dropped by the host when the process is dead.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), time.Second)
	defer cancel()
	if !a.stage.log.Add(history.Event{Who: a.name, Kind: history.Sent, Token: t.Token(), Write: name}) {
		return
	}
	err := t.Write(ctx, dataKey, history.WriteValue(t.Token(), name))
	e := history.Event{Kind: history.Acked, Token: t.Token(), Write: name}
	switch {
	case err == nil:
	case errors.Is(err, ErrRefused):
		e.Kind, e.Text = history.Refused, err.Error()
	default:
		e.Kind, e.Text = history.Unclear, err.Error()
	}
	a.tell(e)
}
