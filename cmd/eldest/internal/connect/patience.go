package connect

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
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/keys"
)

// Notice tells on stderr that a command waits for etcd, and that the waiting
// is over. Silence would look like a hang.
type Notice struct {
	To   *cobra.Command
	Conn *Flags
	// Say writes a line to stderr.
	Say func(string)

	mu sync.Mutex
	// refused is when the first attempt began of those that etcd has answered and refused in
	// a row; zero if the last one was not such.
	refused time.Time
	told    time.Time // when the last line was written; zero if none is to be taken back
}

const (
	// Passing is how long an etcd that answers may refuse before that is told: most of
	// what it refuses only for now is over at the next attempt, and what it refuses for good
	// ends the command.
	Passing = 2 * time.Second
	// repeatNotice is how often the reminder comes.
	repeatNotice = 30 * time.Second
)

// ErrHeld is of a request that was not sent, because the program of "eldest run" may run. Of such
// a request etcd has refused nothing.
var ErrHeld = errors.New("held back: the program may still run")

// Answered is told the outcome of each attempt, and when it began.
func (w *Notice) Answered(began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if !w.told.IsZero() {
			w.Say("etcd answers")
		}
		w.refused, w.told = time.Time{}, time.Time{}
		return
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrHeld) || w.To.Context().Err() != nil {
		return // the command is ending, or nothing was asked
	}
	text := "waiting for etcd at %s (%s); SIGINT ends the waiting"
	if Silent(err) {
		w.refused = time.Time{}
	} else {
		text = "etcd at %s answers, but refuses for now (%s); SIGINT ends the waiting"
		if w.refused.IsZero() {
			w.refused = began
		}
		if time.Since(w.refused) < Passing {
			return
		}
	}
	if time.Since(w.told) > repeatNotice {
		w.told = time.Now()
		w.Say(fmt.Sprintf(text, w.Conn.addresses(), w.Conn.Why(err)))
	}
}

// Listen puts the notice into a client, which keeps its type: the library does more for one
// that it knows. Sessions and candidates of the election ask again and again without a word:
// for a lease, for a place in the queue, and for who is older. say must not block then.
func (w *Notice) Listen(client *clientv3.Client, election string) {
	client.Lease = grantWatch{client.Lease, w}
	candidates, _ := keys.Range(election)
	reads := &Notice{To: w.To, Conn: w.Conn, Say: w.Say}
	client.KV = queueWatch{KV: client.KV, candidates: candidates, writes: w, reads: reads}
}

// grantWatch tells why a lease is not granted yet. Once there is a lease, the session's own
// hooks tell of renewals.
type grantWatch struct {
	clientv3.Lease
	wait *Notice
}

func (g grantWatch) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	began := time.Now()
	resp, err := g.Lease.Grant(ctx, ttl)
	g.wait.Answered(began, err)
	return resp, err
}

// queueWatch tells why a candidate does not stand yet, or comes no further: it enters the
// queue by a transaction. Reads have a notice of their own, for etcd may do the one and not
// the other. What concerns other keys is not the candidate's.
type queueWatch struct {
	clientv3.KV
	candidates    string // the prefix of their keys
	writes, reads *Notice
}

func (kv queueWatch) concerns(ops ...clientv3.Op) bool {
	return slices.ContainsFunc(ops, func(op clientv3.Op) bool { return strings.HasPrefix(string(op.KeyBytes()), kv.candidates) })
}

func (kv queueWatch) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	began := time.Now()
	resp, err := kv.KV.Do(ctx, op)
	// Of silence the session tells, whose renewals go on.
	if kv.concerns(op) && (err == nil || !Silent(err)) {
		kv.reads.Answered(began, err)
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
		t.kv.writes.Answered(began, err)
	}
	return resp, err
}

// pause is the time between two attempts to log in. Each makes etcd check a
// password, which is slow on purpose.
const pause = 500 * time.Millisecond

// DialPatiently is dial, again and again while etcd is away, for commands that
// are meant to wait.
func (f *Flags) DialPatiently(ctx context.Context, wait *Notice, more ...grpc.DialOption) (*clientv3.Client, error) {
	for {
		began := time.Now()
		client, err := f.Dial(ctx, more...)
		if err == nil {
			return client, nil
		}
		// A wrong password does not get better by waiting.
		if ctx.Err() != nil || !Silent(err) {
			return nil, err
		}
		wait.Answered(began, err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
