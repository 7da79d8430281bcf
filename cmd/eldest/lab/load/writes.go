package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
)

// written is where leaders write: the token, so that keys are in the order of the
// tenures, and a number.
const written = "/load/written/"

// write has a leader write once, behind its guard.
func (p *participant) write(l *election.Leadership) {
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	key := fmt.Sprintf("%s%020d/%d", written, l.Token(), p.sequence)
	p.sequence++
	e := oracle.Event{Kind: oracle.Sent, Token: int64(l.Token()), Write: key}
	p.tell(e)
	_, err := l.Txn(ctx).Then(clientv3.OpPut(key, fmt.Sprint(l.Token()))).Commit()
	switch {
	case err == nil:
		e.Kind = oracle.Acked
		p.book.count("guarded writes acknowledged")
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		e.Kind = oracle.Unclear
		p.book.count("guarded writes of unknown outcome")
	default:
		e.Kind = oracle.Refused
		p.book.count("guarded writes refused")
	}
	p.tell(e)
	p.book.failed("guarded write", err)
	if ctx.Err() != nil {
		p.book.late("stuck: a guarded write took %v", p.scale.patience())
	}
}

// audit asks etcd for all that was written under a prefix, tells it, and removes it, so
// that etcd does not grow with the run. It asks again where etcd did not answer, because a
// member has just been killed, until ctx ends. It reports whether etcd has been read.
func (r *run) audit(ctx context.Context, prefix string, tell func(oracle.Change)) bool {
	var resp *clientv3.GetResponse
	err := again(ctx, func(once context.Context) (err error) {
		resp, err = r.admin.Get(once, prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		r.book.late("the harness: what was written under %s cannot be read: %v", prefix, err)
		return false
	}
	for kvs := range slices.Chunk(resp.Kvs, 100) { // of 128 operations
		ops := make([]clientv3.Op, 0, len(kvs))
		for _, kv := range kvs {
			token, err := strconv.ParseInt(string(kv.Value), 10, 64)
			if err != nil {
				r.book.violation("%s was written by nobody: %q", kv.Key, kv.Value)
			}
			tell(oracle.Change{Rev: kv.ModRevision, Key: string(kv.Key), Create: kv.CreateRevision, Value: oracle.WriteValue(token, string(kv.Key))})
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
		err = errors.Join(err, again(ctx, func(once context.Context) error {
			_, err := r.admin.Txn(once).Then(ops...).Commit()
			return err
		}))
	}
	if err != nil {
		r.book.late("the harness: what was written under %s cannot be removed: %v", prefix, err)
	}
	return true
}

// auditWritten tells what the leaders have written since the last time.
func (r *run) auditWritten(ctx context.Context) {
	r.audit(ctx, written, func(c oracle.Change) { _ = r.record.Change(c) }) // see record.tell
}

// again asks until there is an answer, or ctx has ended.
func again(ctx context.Context, ask func(once context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ask(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
