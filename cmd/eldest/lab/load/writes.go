package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// outcomes of a guarded write, as its caller was told.
type told uint8

const (
	acknowledged told = iota + 1
	refused           // nothing was applied
	unknown           // it may have been, or may yet be
)

// ledger is the guarded writes that etcd has not been asked about yet: by key, what the
// caller was told. Whoever asks takes them out, so it does not grow with the run.
type ledger struct {
	mu     sync.Mutex
	writes map[string]told
}

func newLedger() *ledger { return &ledger{writes: map[string]told{}} }

func (l *ledger) note(key string, err error) told {
	t := refused
	switch {
	case err == nil:
		t = acknowledged
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		t = unknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[key] = t
	return t
}

// take returns all that has been noted, and forgets it.
func (l *ledger) take() map[string]told {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.writes
	l.writes = map[string]told{}
	return all
}

// written is where leaders write: the token, so that keys are in the order of the
// tenures, and a number.
const written = "/load/written/"

// write has a leader write once, behind its guard.
func (p *participant) write(l *election.Leadership) {
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	key := fmt.Sprintf("%s%020d/%d", written, l.Token(), p.sequence)
	p.sequence++
	_, err := l.Txn(ctx).Then(clientv3.OpPut(key, fmt.Sprint(l.Token()))).Commit()
	switch p.ledger.note(key, err) {
	case acknowledged:
		p.book.count("guarded writes acknowledged")
	case refused:
		p.book.count("guarded writes refused")
	case unknown:
		p.book.count("guarded writes of unknown outcome")
	}
	p.book.failed("guarded write", err)
	if ctx.Err() != nil {
		p.book.late("stuck: a guarded write took %v", p.scale.patience())
	}
}

// audit asks etcd for all that was written under a prefix, holds it against what the
// writers were told, and removes the writes that it has looked at. It asks again where
// etcd did not answer, because a member has just been killed, until ctx ends. It returns
// how many acknowledged writes it has found.
func (r *run) audit(ctx context.Context, prefix string, from *ledger) (found int) {
	told := from.take()
	err := again(ctx, func(once context.Context) error {
		resp, err := r.admin.Get(once, prefix, clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
		if err != nil {
			return err
		}
		order := make([]string, 0, len(resp.Kvs))
		for _, kv := range resp.Kvs {
			order = append(order, string(kv.Key))
		}
		var wrong []string
		found, wrong = hold(told, order)
		for _, w := range wrong {
			r.book.violation("%s", w)
		}
		return nil
	})
	for keys := range slices.Chunk(slices.Collect(maps.Keys(told)), 100) { // of 128 operations
		ops := make([]clientv3.Op, 0, len(keys))
		for _, key := range keys {
			ops = append(ops, clientv3.OpDelete(key))
		}
		err = errors.Join(err, again(ctx, func(once context.Context) error {
			_, err := r.admin.Txn(once).Then(ops...).Commit()
			return err
		}))
	}
	if err != nil {
		r.book.late("the harness: what was written under %s cannot be read or removed: %v", prefix, err)
	}
	return found
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

// hold judges writes by what is there, in the order of mod revisions: what was
// acknowledged is there, what was refused is not (G4), and tokens of guarded writes do
// not go back (I3 of the simulation).
func hold(told map[string]told, order []string) (found int, wrong []string) {
	there := make(map[string]bool, len(order))
	last := ""
	for _, key := range order {
		there[key] = true
		if rest, ok := strings.CutPrefix(key, written); ok {
			token, _, _ := strings.Cut(rest, "/")
			if token < last {
				wrong = append(wrong, fmt.Sprintf("G4: a write of token %s was applied after one of %s", token, last))
			}
			last = token
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		switch {
		case told[key] == acknowledged && !there[key]:
			wrong = append(wrong, fmt.Sprintf("lost: the write %s was acknowledged, and is not there", key))
		case told[key] == refused && there[key]:
			wrong = append(wrong, fmt.Sprintf("G4: the write %s was refused, and is there", key))
		case told[key] == acknowledged:
			found++
		}
	}
	return found, wrong
}
