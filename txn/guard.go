package txn

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/keys"
)

// Guard applies operations only during one tenure: while Key has the create revision Token. It is a
// plain value without an expiry; when the tenure is over it refuses (G4). It cannot distinguish a
// leader's key from a waiter's: use the guard of a Leadership, or a token that has won. Safe for
// concurrent use.
type Guard struct {
	// Election is the election's name, Key the leader's key, Token its create
	// revision.
	Election, Key string
	Token         eldest.Token
	// Alive, if set, is called before anything is sent; if it returns an error the operation fails
	// with that error. It must not block.
	Alive func() error
}

// GuardError is returned when a guard refused: the tenure is over and nothing was applied. It wraps
// eldest.ErrDeposed.
type GuardError struct {
	Election, Key string
	// Wanted is the guard's token, Found the key's current one; 0 if the key does not exist.
	Wanted, Found eldest.Token
	// Revision is the etcd revision at which Found was read.
	Revision int64
}

// Error names the key and both tokens.
func (e *GuardError) Error() string {
	return fmt.Sprintf("eldest: guard election %q key %q: %v: wanted create revision %d, found %d at revision %d; nothing was applied",
		e.Election, e.Key, eldest.ErrDeposed, e.Wanted, e.Found, e.Revision)
}

// Unwrap returns eldest.ErrDeposed.
func (e *GuardError) Unwrap() error { return eldest.ErrDeposed }

// Tenure returns the election and the token of the tenure that is over.
func (e *GuardError) Tenure() (election string, token eldest.Token) { return e.Election, e.Wanted }

// Compare returns the compare of the guard, for callers that build transactions by hand. If it is
// merged with other compares, the result does not say which of them was false.
func (g Guard) Compare() clientv3.Cmp { return inLife(g.Key, g.Token) }

// Txn returns a transaction like kv.Txn(ctx), guarded. Commit sends one request and has three kinds
// of results: a response (whose Succeeded is that of the caller's own compares); a *GuardError, if
// the tenure is over and nothing was applied; any other error, which wraps eldest.ErrOutcomeUnknown
// if the transaction may have been applied. Operations that write into the election's own range are
// refused before anything is sent, with eldest.ErrInvalid.
//
// The guard uses one of the operations that etcd allows in a transaction (128 by default).
func (g Guard) Txn(ctx context.Context, kv clientv3.KV) clientv3.Txn {
	return &guardedTxn{guard: g, ctx: ctx, kv: kv}
}

// guardedTxn collects a transaction and nests it on Commit. Like clientv3's own transactions it is
// for one goroutine and one Commit.
type guardedTxn struct {
	guard Guard
	ctx   context.Context
	kv    clientv3.KV
	cmps  []clientv3.Cmp
	then  []clientv3.Op
	els   []clientv3.Op
}

func (t *guardedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.cmps = append(t.cmps, cs...)
	return t
}

func (t *guardedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.then = append(t.then, ops...)
	return t
}

func (t *guardedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.els = append(t.els, ops...)
	return t
}

func (t *guardedTxn) Commit() (*clientv3.TxnResponse, error) {
	inner := clientv3.OpTxn(t.cmps, t.then, t.els)
	resp, header, err := t.guard.do(t.ctx, t.kv, inner)
	if err != nil {
		return nil, err
	}
	nested := (*clientv3.TxnResponse)(resp.GetResponseTxn())
	nested.Header = header
	return nested, nil
}

// do sends one guarded operation.
func (g Guard) do(ctx context.Context, kv clientv3.KV, op clientv3.Op) (*etcdserverpb.ResponseOp, *etcdserverpb.ResponseHeader, error) {
	if absent.Client(kv) {
		return nil, nil, g.failed(fmt.Errorf("%w: the client is nil", eldest.ErrInvalid))
	}
	if err := g.check(ctx, op); err != nil {
		return nil, nil, g.failed(err)
	}
	resp, err := kv.Txn(ctx).
		If(g.Compare()).
		Then(op).
		Else(clientv3.OpGet(g.Key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		if writes(op) {
			err = Outcome(err)
		}
		return nil, nil, g.failed(err)
	}
	if !resp.Succeeded {
		refused := &GuardError{Election: g.Election, Key: g.Key, Wanted: g.Token, Revision: resp.Header.Revision}
		if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			refused.Found = eldest.Token(kvs[0].CreateRevision)
		}
		return nil, nil, refused
	}
	return resp.Responses[0], resp.Header, nil
}

// check refuses operations that must not be sent.
func (g Guard) check(ctx context.Context, op clientv3.Op) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	case g.Token <= 0 || g.Key == "":
		return fmt.Errorf("%w: the guard names no tenure", eldest.ErrInvalid)
	}
	if g.Alive != nil {
		if err := g.Alive(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return g.outside(op)
}

// outside refuses writes into the election's own range: a put would create a candidate from data, a
// delete would end the tenure under its own guard.
func (g Guard) outside(op clientv3.Op) error {
	if op.IsTxn() {
		_, then, els := op.Txn()
		for _, o := range append(then[:len(then):len(then)], els...) {
			if err := g.outside(o); err != nil {
				return err
			}
		}
		return nil
	}
	begin, end := keys.Range(g.Election)
	if (op.IsPut() || op.IsDelete()) && overlaps(op, begin, end) {
		return fmt.Errorf("%w: the operation would write %q, into the election's own range", eldest.ErrInvalid, op.KeyBytes())
	}
	return nil
}

// overlaps reports whether an operation touches the range [begin, end).
func overlaps(op clientv3.Op, begin, end string) bool {
	first, last := string(op.KeyBytes()), string(op.RangeBytes())
	switch last {
	case "": // one key
		return first >= begin && (first < end || end == "\x00")
	case "\x00": // from first to the end of all keys
		return first < end || end == "\x00"
	default:
		return last > begin && (first < end || end == "\x00")
	}
}

// writes reports whether an operation may change anything.
func writes(op clientv3.Op) bool {
	if !op.IsTxn() {
		return !op.IsGet()
	}
	_, then, els := op.Txn()
	for _, o := range then {
		if writes(o) {
			return true
		}
	}
	for _, o := range els {
		if writes(o) {
			return true
		}
	}
	return false
}

func (g Guard) failed(err error) error {
	return &eldest.OpError{Op: "guarded operation", Election: g.Election, Key: g.Key, Err: err}
}
