package loop

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
	"github.com/eldest-io/eldest/txn"
)

// Config is what a session needs.
type Config struct {
	// Timeout bounds each request.
	Timeout time.Duration
	// Backoff gives the pauses after failures.
	Backoff retry.Backoff
}

// CandidateConfig says where a candidate is queued.
type CandidateConfig struct {
	KV    clientv3.KV
	Queue txn.Queue
	Entry txn.Entry
}

// Session is one lease and its candidates.
type Session struct {
	cfg    Config
	id     int64
	stream *stream.Stream
	// ctx ends with the session, sending when nothing may be sent any more.
	ctx      context.Context //nolint:containedctx // the session's life
	end      context.CancelCauseFunc
	sending  context.Context //nolint:containedctx // as above
	stop     context.CancelFunc
	requests sync.WaitGroup

	mu         sync.Mutex
	candidates map[*Candidate]struct{}
}

// NewSession makes a session of a lease.
func NewSession(cfg Config, lease int64, s *stream.Stream) *Session {
	l := &Session{cfg: cfg, id: lease, stream: s, candidates: make(map[*Candidate]struct{})}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.sending, l.stop = context.WithCancel(context.Background())
	return l
}

// Candidate makes a candidate of the session. It sends nothing.
func (s *Session) Candidate(cfg CandidateConfig) *Candidate {
	c := &Candidate{session: s, cfg: cfg, key: cfg.Entry.Key()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.candidates[c] = struct{}{}
	return c
}

// End ends the session, and blocks until nothing is under way.
func (s *Session) End(cause error) {
	s.mu.Lock()
	s.end(cause)
	for c := range s.candidates {
		c.step(core.Event{Kind: core.SessionEnded, Err: cause})
	}
	s.mu.Unlock()
	s.stop()
	s.requests.Wait()
}
