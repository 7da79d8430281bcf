package concurrency

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// The errors of mutexes.
var (
	// ErrLocked is returned by TryLock when another session holds the mutex, or waits for it.
	ErrLocked = errors.New("mutex: Locked by another session")
	// ErrSessionExpired is returned by Lock and TryLock when the session is lost, or its
	// key was taken away, during the call.
	ErrSessionExpired = errors.New("mutex: session is expired")
	// ErrLockReleased is returned by Unlock of what is not locked.
	ErrLockReleased = errors.New("mutex: lock has already been released")
)

// Mutex is a mutex among sessions. Sessions, not mutexes and not goroutines, exclude each
// other: what one session has locked, it can lock again, with this Mutex or another one of
// the same prefix, and one Unlock unlocks for all. Made by NewMutex. All methods are safe
// for concurrent use.
//
// While it is locked nobody tells that the key was taken away: watch Session.Done, and put
// IsOwner into each transaction.
type Mutex struct {
	line line

	mu   sync.Mutex
	stay *stay // nil: not locked
	key  string
	rev  int64
	hdr  *pb.ResponseHeader
}

// unlocked is the key of a mutex that is not locked: one that nobody has.
const unlocked = "\x00"

// NewMutex returns the mutex of the keys under pfx + "/". It sends nothing.
func NewMutex(s *Session, pfx string) *Mutex {
	return &Mutex{line: line{s, pfx}, rev: -1}
}

// Lock blocks until this session holds the mutex. When ctx ends before, it returns ctx's
// error; it returns ErrSessionExpired at once when the session is lost or somebody takes
// its key away, and what etcd refused; of a session that was lost before,
// rpctypes.ErrLeaseNotFound, bare. After an error nothing is locked that was not
// before, and the key is gone; where etcd does not say so within a second, it is removed
// in the background. While etcd is away it waits.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.acquire(ctx, queue.Enter, (*stay).await)
}

// TryLock locks the mutex if no other session holds it or waits for it, else it returns
// ErrLocked, without having stood in the line. It blocks for etcd's answer and fails like
// Lock.
func (m *Mutex) TryLock(ctx context.Context) error {
	err := m.acquire(ctx, queue.EnterAlone, (*stay).leads)
	if errors.Is(err, eldest.ErrForeignKey) {
		// Keys that are no candidates are in the range, and etcd cannot tell them from
		// candidates in one request: we have to stand for a moment.
		err = m.acquire(ctx, queue.Enter, (*stay).leads)
	}
	if errors.Is(err, eldest.ErrNotElected) {
		return ErrLocked
	}
	return err
}

// leads returns an error that wraps eldest.ErrNotElected if somebody older stands.
func (st *stay) leads(ctx context.Context) error {
	waiting, end := st.slot.session.during(ctx)
	defer end(nil)
	if st.place.Unknown() {
		if err := st.look(waiting, 0); err != nil {
			return st.why(waiting, err)
		}
	}
	if !st.place.First() {
		return eldest.ErrNotElected
	}
	return st.slot.session.lost()
}

// acquire enters the line, and holds the mutex if wait says so.
func (m *Mutex) acquire(ctx context.Context, how entering, wait func(*stay, context.Context) error) error {
	slot := m.line.session.slot(m.line.key())
	defer slot.put()
	st, err := m.line.enter(ctx, slot, "", how)
	if err == nil {
		if err = wait(st, ctx); err != nil {
			st.quit()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if err = m.failed(ctx, err); errors.Is(err, ErrSessionExpired) || errors.Is(err, eldest.ErrNotElected) {
			m.release()
		}
		return err
	}
	m.release()
	m.stay, m.key, m.rev, m.hdr = st, slot.key, int64(st.token), st.latest
	return nil
}

// release forgets what was locked: the same life of the key, which is then counted for
// whoever locks it now, or one that is over. The caller holds mu.
func (m *Mutex) release() {
	if m.stay != nil {
		m.stay.slot.leave(m.stay.token)
		m.stay = nil
	}
	m.key, m.rev = unlocked, -1
}

func (m *Mutex) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, eldest.ErrDeposed), errors.Is(err, eldest.ErrSessionLost):
		return ErrSessionExpired
	case errors.Is(err, eldest.ErrNotElected), errors.Is(err, eldest.ErrForeignKey):
		return err
	}
	return plain(ctx, m.line.session.client, err)
}

// Unlock takes the key away, and the next session holds the mutex. It blocks until etcd
// has confirmed that, for at most the session's TTL, or until ctx ends; on error it can be
// called again. What is not locked: ErrLockReleased.
func (m *Mutex) Unlock(ctx context.Context) error {
	m.mu.Lock()
	st := m.stay
	m.mu.Unlock()
	if st == nil {
		return ErrLockReleased
	}
	s := m.line.session
	slot := s.slot(st.slot.key)
	defer slot.put()
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.opts.ttl)*time.Second)
	defer cancel()
	if err := slot.resign(limited, &recorder{KV: s.client}, st.token); err != nil {
		return plain(ctx, s.client, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if st.same(m.stay) {
		m.release()
	}
	return nil
}

// IsOwner returns the comparison that is true while this session holds the mutex, for
// transactions that must not happen otherwise. It is false when nothing is locked.
func (m *Mutex) IsOwner() clientv3.Cmp {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.key
	if key == "" {
		key = unlocked
	}
	return clientv3.Compare(clientv3.CreateRevision(key), "=", m.rev)
}

// Key returns the key with which the mutex is locked; empty before the first time, and
// "\x00" when it was unlocked.
func (m *Mutex) Key() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.key
}

// Header returns the header of etcd's answer by which the mutex was last locked; nil
// before.
func (m *Mutex) Header() *pb.ResponseHeader {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hdr
}
