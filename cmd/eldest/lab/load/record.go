package load

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
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

const (
	// candidates is the election of the candidates.
	candidates = "load"
	// written is the prefix of the leaders' writes: the token follows, so that keys are in the order of
	// the tenures, and a number.
	written = "/load/written/"
	// patient is in how many lists of the queue in a row something must be wrong before it counts:
	// during each, a registration or the notification of a deletion may be in flight.
	patient = 4
)

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
	for _, v := range slices.Concat(oracle.I1(h), oracle.Order(h), oracle.Tokens(h), oracle.Healing(h)) {
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
		name, err := oracle.ReadValue(c.Value)
		if err != nil {
			b.violation("%s was not written by a participant: %v", c.Key, err)
		}
		there[name] = true
	}
	found := int64(0)
	for _, e := range h.Events {
		if e.Kind == oracle.Acked && there[e.Write] {
			found++
		}
	}
	b.add("acknowledged "+what+" found in etcd", found)
}
