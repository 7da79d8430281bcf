package concurrency

import (
	"context"
	"errors"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
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
	session *Session
	name    string

	mu    sync.Mutex   // taken after that of the session's candidates
	token eldest.Token // 0: not locked
	key   string
	rev   int64
	hdr   *pb.ResponseHeader
}

// unlocked is the key of a mutex that is not locked: one that nobody has.
const unlocked = "\x00"

// NewMutex returns the mutex of the keys under pfx + "/". It sends nothing.
func NewMutex(s *Session, pfx string) *Mutex {
	return &Mutex{session: s, name: pfx, rev: -1}
}

// Lock blocks until this session holds the mutex. When ctx ends before, it returns ctx's
// error; it returns ErrSessionExpired at once when the session is lost or somebody takes
// its key away, and what etcd refused; of a session that was lost before,
// rpctypes.ErrLeaseNotFound, bare. After an error nothing is locked that was not
// before, and the key is gone; where etcd does not say so within a second, or 3 s during the
// registration, it is removed in the background. While etcd is away it waits.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.acquire(ctx, core.Lead)
}

// TryLock locks the mutex if no other session holds it or waits for it, else it returns
// ErrLocked, without having stood in the line. It blocks for etcd's answer and fails like
// Lock.
func (m *Mutex) TryLock(ctx context.Context) error {
	err := m.acquire(ctx, core.LeadNow)
	if errors.Is(err, eldest.ErrNotElected) {
		return ErrLocked
	}
	return err
}

// acquire has the session's candidate lead, as want says.
func (m *Mutex) acquire(ctx context.Context, want core.Want) error {
	err := m.session.win(ctx, m.name, want, nil, m)
	if errors.Is(err, errGone) {
		err = ErrSessionExpired
	}
	if errors.Is(err, ErrSessionExpired) || errors.Is(err, eldest.ErrNotElected) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.release()
	}
	return err
}

// stands implements handle.
func (m *Mutex) stands(*candidacy, eldest.Token) {}

// wins implements handle.
func (m *Mutex) wins(c *candidacy, token eldest.Token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != token || c.held == 0 {
		c.hold(false)
	}
	m.token, m.key, m.rev, m.hdr = token, c.name.Key, int64(token), c.kv.last()
}

// release forgets what was locked. The caller holds mu.
func (m *Mutex) release() { m.token, m.key, m.rev = 0, unlocked, -1 }

// Unlock takes the key away, and the next session holds the mutex. It blocks until etcd
// has confirmed that, for at most the session's TTL, or until ctx ends; on error it can be
// called again. What is not locked: ErrLockReleased.
func (m *Mutex) Unlock(ctx context.Context) error {
	m.mu.Lock()
	key, token := m.key, m.token
	m.mu.Unlock()
	if token == 0 {
		return ErrLockReleased
	}
	c, done := m.session.candidacy(m.name, key)
	defer done()
	if _, err := c.resign(ctx, token, true); err != nil {
		return plain(ctx, m.session.client, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token == token {
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
