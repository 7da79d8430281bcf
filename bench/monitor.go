package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// monitor watches an election with a watch of its own, the same for all contenders.
type monitor struct {
	turn   *turn
	events clientv3.WatchChan
	keys   map[string]bool // of the candidates that are queued
	stop   context.CancelFunc
}

// monitor watches an election that has no candidates yet, until the turn is over or stop is called.
func (t *turn) monitor(election string) *monitor {
	live, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	// The client's Watch blocks until the server has answered.
	defer context.AfterFunc(t.ctx, cancel)()
	t.after(func(context.Context) { cancel() })
	m := &monitor{turn: t, keys: map[string]bool{}, stop: cancel}
	m.events = t.observer.Watch(clientv3.WithRequireLeader(live), election+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	m.next()
	return m
}

// await blocks until n candidates are queued.
func (m *monitor) await(n int) {
	for len(m.keys) != n {
		m.next()
	}
}

func (m *monitor) next() {
	select {
	case resp, ok := <-m.events:
		m.note(resp, ok)
	case <-m.turn.ctx.Done():
		check(fmt.Errorf("waiting for candidates to be queued (%d are): %w", len(m.keys), context.Cause(m.turn.ctx)))
	}
}

func (m *monitor) note(resp clientv3.WatchResponse, ok bool) {
	if !ok {
		check(errors.New("the monitor's watch has ended"))
	}
	check(resp.Err())
	for _, e := range resp.Events {
		if e.Type == clientv3.EventTypeDelete {
			delete(m.keys, string(e.Kv.Key))
		} else {
			m.keys[string(e.Kv.Key)] = true
		}
	}
}

const (
	// quietTime is how long no message may be sent or received before all work counts as done.
	quietTime = 200 * time.Millisecond
	// quietTimeout bounds the wait for that. A thousand clients that check their watches every few
	// seconds do so at about the same time; several thousand leave no pause of that length.
	quietTimeout = 15 * time.Second
)

// quiet blocks until no message was sent or received on the hosts for quietTime, and no answer is
// missing; calm is false if that did not happen within quietTimeout.
func (t *turn) quiet(hosts ...host) (calm bool) {
	var last wire
	for begun, since := time.Now(), time.Now(); time.Since(begun) < quietTimeout; t.sleep(quietTime / 20) {
		w := must(wires(t.ctx, hosts...))
		switch {
		case w != last || w[called] > w[answered]:
			last, since = w, time.Now()
		case time.Since(since) >= quietTime:
			return true
		}
	}
	return false
}
