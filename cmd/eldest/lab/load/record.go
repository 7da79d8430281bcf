package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/observe"
)

// record is what the candidates were told, what they wrote and what etcd had, for the
// oracle. It is in a file, so that it takes no memory while the load goes on. Instants are
// readings of this process's one monotonic clock.
type record struct {
	*oracle.Recorder
	begun time.Time
	file  *os.File
	out   *bufio.Writer // under the recorder's lock
}

// patient is in how many looks in a row something odd must be seen in the queue before it
// counts: a registration or the news of a removal may be under way at each look.
const patient = 4

// newRecord begins a record of a load in which nothing may take longer than patience.
func newRecord(patience time.Duration) (*record, error) {
	file, err := os.CreateTemp("", "eldest-load-*.jsonl")
	if err != nil {
		return nil, err
	}
	// It goes with this process, however that ends; close removes what cannot go while open.
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

// tell files an event. What the file cannot take is missed by load, which ends with the
// file's first error.
func (r *record) tell(e oracle.Event) { _ = r.Add(e) }

// load reads the record, when all has been told.
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

// close removes the file.
func (r *record) close() {
	_ = errors.Join(r.file.Close(), os.Remove(r.file.Name())) // it is in nobody's way, or gone
}

// judgeRecord holds what the candidates were told against each other and against etcd.
func (r *run) judgeRecord() {
	h, err := r.record.load()
	if err != nil {
		r.book.violation("the harness: the record: %v", err)
		return
	}
	for _, v := range slices.Concat(oracle.I1(h), oracle.Tokens(h), oracle.Healing(h)) {
		r.book.violation("%v", v)
	}
	for _, v := range oracle.InTime(h) {
		r.book.late("%v", v)
	}
	r.judgeWrites("writes", h)
	var ended *oracle.Event
	for i, e := range h.Events {
		switch {
		case e.Kind == oracle.Ended:
			ended = &h.Events[i]
		case e.Kind == oracle.Won && ended != nil:
			r.book.took("without a leader, after: "+ended.Text, e.At-ended.At)
			ended = nil
		}
	}
}

// judgeWrites holds what writers were told against what etcd has had, and counts what was
// acknowledged and found.
func (r *run) judgeWrites(what string, h *oracle.History) {
	for _, v := range oracle.I3(h) {
		r.book.violation("%v", v)
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
	r.book.add(fmt.Sprintf("acknowledged %s found in etcd", what), found)
}

// list tells whose keys are in the queue. While a member is away one look may fail; then the next
// one will do.
func (r *run) list() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e := oracle.Event{Kind: oracle.Queue, At: r.record.now()}
	queue, err := observe.Queue(ctx, r.admin, nil, candidates)
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
