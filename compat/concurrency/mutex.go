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
	// ErrSessionExpired is returned by Lock and TryLock when the session is lost, or its key is
	// deleted by others, during the call.
	ErrSessionExpired = errors.New("mutex: session is expired")
	// ErrLockReleased is returned by Unlock of a mutex that is not locked.
	ErrLockReleased = errors.New("mutex: lock has already been released")
)

// Mutex is a mutex among sessions. Sessions, not mutexes and not goroutines, exclude each other: a
// session can lock again what it has locked, with this Mutex or another one of the same prefix, and
// one Unlock unlocks for all. It is made by NewMutex. All methods are safe for concurrent use.
//
// While it is locked, a deletion of its key by others is not reported: watch Session.Done, and put
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

// unlocked is the key of a mutex that is not locked: a key that never exists.
const unlocked = "\x00"

// NewMutex returns the mutex of the keys under pfx + "/". It sends nothing.
func NewMutex(s *Session, pfx string) *Mutex {
	return &Mutex{session: s, name: pfx, rev: -1}
}

// Lock blocks until this session holds the mutex. If ctx ends before that, it returns ctx's error.
// If the session is lost or its key is deleted by others, it returns ErrSessionExpired at once. If
// etcd refuses, it returns etcd's error; if the session was lost before the call,
// rpctypes.ErrLeaseNotFound, not wrapped. After an error nothing is locked that was not locked
// before, and the key has been deleted; if etcd does not confirm that within a second, or 3 s
// during the registration, the key is deleted in the background. While etcd is unavailable Lock
// waits.
func (m *Mutex) Lock(ctx context.Context) error {
	return m.acquire(ctx, core.Lead)
}

// TryLock locks the mutex if no other session holds it or waits for it; otherwise it returns
// ErrLocked, without having been queued. It blocks until etcd has responded, and fails like Lock.
func (m *Mutex) TryLock(ctx context.Context) error {
	err := m.acquire(ctx, core.LeadNow)
	if errors.Is(err, eldest.ErrNotElected) {
		return ErrLocked
	}
	return err
}

// acquire makes the session's candidate lead, in the way of want.
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
func (m *Mutex) wins(c *candidacy, token eldest.Token, _ *pb.ResponseHeader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != token || c.held == 0 {
		c.hold(false)
	}
	m.token, m.key, m.rev, m.hdr = token, c.name.Key, int64(token), c.kv.last()
}

// release clears the fields of the lock. The caller holds mu.
func (m *Mutex) release() { m.token, m.key, m.rev = 0, unlocked, -1 }

// Unlock deletes the key, and the next session holds the mutex. It blocks until etcd has confirmed
// that, for at most the session's TTL, or until ctx ends; on error it can be called again. If the
// mutex is not locked, it returns ErrLockReleased.
func (m *Mutex) Unlock(ctx context.Context) error {
	m.mu.Lock()
	key, token := m.key, m.token
	m.mu.Unlock()
	if token == 0 {
		return ErrLockReleased
	}
	if _, err := m.session.resign(ctx, m.name, key, token, true); err != nil {
		return plain(ctx, m.session.client, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token == token {
		m.release()
	}
	return nil
}

// IsOwner returns the comparison that is true while this session holds the mutex, for transactions
// that must not commit otherwise. It is false when the mutex is not locked.
func (m *Mutex) IsOwner() clientv3.Cmp {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.key
	if key == "" {
		key = unlocked
	}
	return clientv3.Compare(clientv3.CreateRevision(key), "=", m.rev)
}

// Key returns the key with which the mutex is locked; empty before the first lock, and "\x00" after
// an unlock.
func (m *Mutex) Key() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.key
}

// Header returns the header of etcd's response with which the mutex was last locked; nil before
// that.
func (m *Mutex) Header() *pb.ResponseHeader {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hdr
}
