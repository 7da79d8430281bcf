package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/observe"
)

// record has what the candidates were notified of, what they wrote and what etcd had, for the
// oracle. It is in a file, so that it takes no memory during the load. Instants are readings of
// this process's one monotonic clock.
type record struct {
	*oracle.Recorder
	begun time.Time
	file  *os.File
	out   *bufio.Writer // under the recorder's lock
}

// patient is in how many lists of the queue in a row something must be wrong before it counts:
// during each, a registration or the notification of a deletion may be in flight.
const patient = 4

// newRecord begins a record of a load in which nothing may take longer than patience.
func newRecord(patience time.Duration) (*record, error) {
	file, err := os.CreateTemp("", "eldest-load-*.jsonl")
	if err != nil {
		return nil, err
	}
	// It is deleted when this process ends; close removes it if it cannot be removed while open.
	_ = os.Remove(file.Name())
	r := &record{begun: time.Now(), file: file, out: bufio.NewWriter(file)}
	r.Recorder = oracle.NewRecorder(r.out, r.now)
	err = r.About(oracle.About{
		Prefix: candidates + "/", Data: strings.TrimSuffix(written, "/"), Recovery: patience, Looks: patient,
	})
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *record) now() time.Duration { return time.Since(r.begun) }

// tell adds an event. Its error is ignored: load returns the file's first error.
func (r *record) tell(e oracle.Event) { _ = r.Add(e) }

// load reads the record, when all events are in it.
func (r *record) load() (*oracle.History, error) {
	if err := r.out.Flush(); err != nil {
		return nil, err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	h, err := oracle.Load(r.file)
	if err != nil {
		return nil, err
	}
	h.Changes = slices.Compact(h.Changes) // one that could not be removed has been read again
	return h, nil
}

func (r *record) close() {
	_ = errors.Join(r.file.Close(), os.Remove(r.file.Name())) // it is unused, or has been removed
}

// judge compares the reports of the candidates with each other and with etcd.
func (b *book) judge(r *record) {
	h, err := r.load()
	if err != nil {
		b.violation("the harness: the record: %v", err)
		return
	}
	for _, v := range slices.Concat(oracle.I1(h), oracle.Tokens(h), oracle.Healing(h)) {
		b.violation("%v", v)
	}
	for _, v := range oracle.InTime(h) {
		b.late("%v", v)
	}
	b.judgeWrites("writes", h)
	var ended *oracle.Event
	for i, e := range h.Events {
		switch {
		case e.Kind == oracle.Ended:
			ended = &h.Events[i]
		case e.Kind == oracle.Won && ended != nil:
			b.took("without a leader, after: "+ended.Text, e.At-ended.At)
			ended = nil
		}
	}
}

// judgeWrites compares the answers that writers received with what etcd had, and counts the
// acknowledged writes that were found.
func (b *book) judgeWrites(what string, h *oracle.History) {
	for _, v := range oracle.I3(h) {
		b.violation("%v", v)
	}
	there := make(map[string]bool, len(h.Changes))
	for _, c := range h.Changes {
		there[c.Key] = true
	}
	found := int64(0)
	for _, e := range h.Events {
		if e.Kind == oracle.Acked && there[e.Write] {
			found++
		}
	}
	b.add(fmt.Sprintf("acknowledged %s found in etcd", what), found)
}

// list records the keys in the queue. While a member is down one list may fail; then the next one
// is enough.
func (r *run) list() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e := oracle.Event{Kind: oracle.Queue, At: r.record.now()}
	queue, err := observe.Queue(ctx, r.All, nil, candidates)
	if err != nil {
		r.book.failed("the inspector, reading the queue", err)
		return
	}
	for _, entry := range queue {
		e.Keys = append(e.Keys, entry.Key)
	}
	e.Until = r.record.now()
	r.record.tell(e)
}

// written is the prefix of the leaders' writes: the token follows, so that keys are in the order of
// the tenures, and a number.
const written = "/load/written/"

// write makes a leader write once, with its guard.
func (p *participant) write(l *election.Leadership) {
	ctx, cancel := context.WithTimeout(context.Background(), p.scale.patience())
	defer cancel()
	key := fmt.Sprintf("%s%020d/%d", written, l.Token(), p.sequence)
	p.sequence++
	e := oracle.Event{Kind: oracle.Sent, Token: int64(l.Token()), Write: key}
	p.tell(e)
	_, err := l.Txn(ctx).Then(clientv3.OpPut(key, fmt.Sprint(l.Token()))).Commit()
	outcome := "refused"
	switch e.Kind = oracle.Refused; {
	case err == nil:
		e.Kind, outcome = oracle.Acked, "acknowledged"
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		e.Kind, outcome = oracle.Unclear, "of unknown outcome"
	}
	p.tell(e)
	p.book.count("guarded writes " + outcome)
	p.book.failed("guarded write", err)
	if ctx.Err() != nil {
		p.book.late("stuck: a guarded write took %v", p.scale.patience())
	}
}

// audit reads everything that was written under a prefix, passes it to tell, and removes it, so
// that etcd does not grow with the run. If etcd does not answer, because a member has just been
// killed, it tries again, until ctx ends. It reports whether etcd has been read.
func (r *run) audit(ctx context.Context, prefix string, tell func(oracle.Change)) bool {
	var resp *clientv3.GetResponse
	again := func(what string, ask func(context.Context) error) error {
		return inject.Until(ctx, what, func(context.Context) (bool, error) {
			once, cancel := context.WithTimeout(ctx, 5*time.Second) // the answer is large
			defer cancel()
			err := ask(once)
			return err == nil, err
		})
	}
	err := again("etcd answers", func(ctx context.Context) (err error) {
		resp, err = r.All.Get(ctx, prefix, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		r.book.late("the harness: what was written under %s cannot be read: %v", prefix, err)
		return false
	}
	for kvs := range slices.Chunk(resp.Kvs, 100) { // a transaction has at most 128 operations
		ops := make([]clientv3.Op, 0, len(kvs))
		for _, kv := range kvs {
			token, err := strconv.ParseInt(string(kv.Value), 10, 64)
			if err != nil {
				r.book.violation("%s was not written by a participant: %q", kv.Key, kv.Value)
			}
			tell(oracle.Change{Rev: kv.ModRevision, Key: string(kv.Key), Create: kv.CreateRevision, Value: oracle.WriteValue(token, string(kv.Key))})
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
		err = errors.Join(err, again("etcd deletes", func(ctx context.Context) error {
			_, err := r.All.Txn(ctx).Then(ops...).Commit()
			return err
		}))
	}
	if err != nil {
		r.book.late("the harness: what was written under %s cannot be removed: %v", prefix, err)
	}
	return true
}

// auditWritten records what the leaders have written since the last time.
func (r *run) auditWritten(ctx context.Context) {
	r.audit(ctx, written, func(c oracle.Change) { _ = r.record.Change(c) }) // see record.tell
}
