package outage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// Manner is what a store does between tenures.
type Manner uint8

const (
	// Stop refuses reads and writes.
	Stop Manner = iota
	// ReadOnly answers reads with the last known value, and refuses writes.
	ReadOnly
)

// Store is one value, kept in etcd and served from memory. Made by New; all methods are
// safe for concurrent use.
type Store struct {
	key    string
	manner Manner
	write  sync.Mutex // held by one write at a time

	mu     sync.Mutex
	tenure *election.Leadership // nil between tenures, and before etcd was read
	fail   context.CancelCauseFunc
	text   string
	asOf   time.Time // when text was certainly the newest; zero: never
}

// New makes a store of the value under a key, which must be outside every election's
// range. It sends nothing.
func New(key string, manner Manner) *Store { return &Store{key: key, manner: manner} }

// Reading is a value that was read.
type Reading struct {
	Text string
	// Fresh is true if Text was the newest value at a moment during the call.
	Fresh bool
	// AsOf is when Text last certainly was the newest value.
	AsOf time.Time
}

// Lead is the lead function: it reads the value that the last leader left, and serves until the
// tenure ends. It returns why, and never nil.
func (s *Store) Lead(ctx context.Context, l *election.Leadership) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	at := time.Now()
	// Guarded like a write: what was read was read inside the tenure.
	got, err := l.KV().Get(ctx, s.key)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.text = ""
	if len(got.Kvs) > 0 {
		s.text = string(got.Kvs[0].Value)
	}
	s.tenure, s.fail, s.asOf = l, fail, at
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.tenure = nil
	s.mu.Unlock()
	return context.Cause(ctx)
}

// Read returns the value, from memory. It never blocks for etcd. Between tenures it
// returns an error that wraps eldest.ErrNotLeading, unless the manner is ReadOnly and there
// has been a tenure.
func (s *Store) Read() (Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, text := time.Now(), s.text
	// Memory first and the clock after it: nobody else can have written before this Holds.
	if s.tenure != nil && s.tenure.Holds(0) {
		s.asOf = now
		return Reading{Text: text, Fresh: true, AsOf: now}, nil
	}
	if s.manner == ReadOnly && !s.asOf.IsZero() {
		return Reading{Text: text, AsOf: s.asOf}, nil
	}
	return Reading{}, fmt.Errorf("read %q: %w", s.key, eldest.ErrNotLeading)
}

// Write replaces the value, in etcd and then in memory. It blocks until etcd has responded, or ctx
// or the tenure ends. Errors: eldest.ErrNotLeading, eldest.ErrDeposed, and
// eldest.ErrOutcomeUnknown, which ends the tenure; the next tenure reads the outcome.
func (s *Store) Write(ctx context.Context, text string) error {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	tenure, fail := s.tenure, s.fail
	s.mu.Unlock()
	if tenure == nil {
		return fmt.Errorf("write %q: %w", s.key, eldest.ErrNotLeading)
	}
	_, err := tenure.KV().Put(ctx, s.key, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		if s.tenure == tenure {
			s.tenure = nil // no reading is fresh any more
		}
		fail(err)
	case err == nil && s.tenure == tenure:
		s.text, s.asOf = text, time.Now()
	}
	return err
}
