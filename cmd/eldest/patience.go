package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// waitNotice tells on stderr that a command waits for etcd, and that the waiting
// is over. Silence would look like a hang.
type waitNotice struct {
	to   *cobra.Command
	conn *connFlags
	// say writes the line; nil writes it to the command's stderr.
	say func(string)

	mu sync.Mutex
	// refused is when the first attempt began of those that etcd has answered and refused in
	// a row; zero if the last one was not such.
	refused time.Time
	told    time.Time // when the last line was written; zero if none is to be taken back
}

const (
	// passing is how long an etcd that answers may refuse before that is told: most of
	// what it refuses only for now is over at the next attempt, and what it refuses for good
	// ends the command.
	passing = 2 * time.Second
	// repeatNotice is how often the reminder comes.
	repeatNotice = 30 * time.Second
)

// answered is told the outcome of each attempt, and when it began.
func (w *waitNotice) answered(began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if !w.told.IsZero() {
			w.tell("etcd answers")
		}
		w.refused, w.told = time.Time{}, time.Time{}
		return
	}
	if errors.Is(err, context.Canceled) || w.to.Context().Err() != nil {
		return // the command is ending
	}
	text := "waiting for etcd at %s (%s); SIGINT ends the waiting"
	if silent(err) {
		w.refused = time.Time{}
	} else {
		text = "etcd at %s answers, but refuses for now (%s); SIGINT ends the waiting"
		if w.refused.IsZero() {
			w.refused = began
		}
		if time.Since(w.refused) < passing {
			return
		}
	}
	if time.Since(w.told) > repeatNotice {
		w.told = time.Now()
		w.tell(fmt.Sprintf(text, w.conn.addresses(), w.conn.why(err)))
	}
}

// tell writes a line. The caller holds mu.
func (w *waitNotice) tell(line string) {
	say := w.say
	if say == nil {
		say = toStderr(w.to)
	}
	say(line)
}

// listen puts the notice into a client, which keeps its type: the library does more for one
// that it knows. Sessions and candidates of the election ask again and again without a word:
// for a lease, for a place in the queue, and for who is older. say must not block then.
func (w *waitNotice) listen(client *clientv3.Client, election string) {
	client.Lease = grantWatch{client.Lease, w}
	candidates, _ := keys.Range(election)
	reads := &waitNotice{to: w.to, conn: w.conn, say: w.say}
	client.KV = queueWatch{KV: client.KV, candidates: candidates, writes: w, reads: reads}
}

// grantWatch tells why a lease is not granted yet. Once there is a lease, the session's own
// hooks tell of renewals.
type grantWatch struct {
	clientv3.Lease
	wait *waitNotice
}

func (g grantWatch) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	began := time.Now()
	resp, err := g.Lease.Grant(ctx, ttl)
	g.wait.answered(began, err)
	return resp, err
}

// queueWatch tells why a candidate does not stand yet, or comes no further: it enters the
// queue by a transaction. Reads have a notice of their own, for etcd may do the one and not
// the other. What concerns other keys is not the candidate's.
type queueWatch struct {
	clientv3.KV
	candidates    string // the prefix of their keys
	writes, reads *waitNotice
}

func (kv queueWatch) concerns(ops ...clientv3.Op) bool {
	return slices.ContainsFunc(ops, func(op clientv3.Op) bool { return strings.HasPrefix(string(op.KeyBytes()), kv.candidates) })
}

func (kv queueWatch) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	began := time.Now()
	resp, err := kv.KV.Do(ctx, op)
	// Of silence the session tells, whose renewals go on.
	if kv.concerns(op) && (err == nil || !silent(err)) {
		kv.reads.answered(began, err)
	}
	return resp, err
}

func (kv queueWatch) Txn(ctx context.Context) clientv3.Txn {
	return watchedTxn{Txn: kv.KV.Txn(ctx), kv: kv}
}

type watchedTxn struct {
	clientv3.Txn
	kv        queueWatch
	concerned bool
}

func (t watchedTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t watchedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.concerned = t.Txn.Then(ops...), t.concerned || t.kv.concerns(ops...)
	return t
}

// Else of a guarded write reads the key of the leader, whose write it is not.
func (t watchedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t watchedTxn) Commit() (*clientv3.TxnResponse, error) {
	began := time.Now()
	resp, err := t.Txn.Commit()
	if t.concerned {
		t.kv.writes.answered(began, err)
	}
	return resp, err
}

// pause is the time between two attempts to log in. Each makes etcd check a
// password, which is slow on purpose.
const pause = 500 * time.Millisecond

// dialPatiently is dial, again and again while etcd is away, for commands that
// are meant to wait.
func (f *connFlags) dialPatiently(ctx context.Context, wait *waitNotice) (*clientv3.Client, error) {
	for {
		began := time.Now()
		client, err := f.dial(ctx)
		if err == nil {
			return client, nil
		}
		// A wrong password does not get better by waiting.
		if ctx.Err() != nil || !silent(err) {
			return nil, err
		}
		wait.answered(began, err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
