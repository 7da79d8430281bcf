package past

import (
	"sync"
	"time"

	"github.com/eldest-io/eldest"
)

// Lease is the past of one lease. All sessions of the lease share it, and it outlives them. Made by
// Of. All methods are safe for concurrent use.
type Lease struct {
	id int64
	// The mutex of leases guards the following fields.
	sessions int
	left     time.Time // when the last session ended
	doomed   map[eldest.Token]struct{}
	owed     map[string]struct{}
	revoked  int // sessions that have requested the revocation, and have no definite answer
	// entering counts the registrations under way. Tokens that are spared meanwhile are kept in
	// gone and stay doomed: the answer to a registration may be older than the deletion.
	entering int
	gone     []eldest.Token
}

// leases are the leases that have sessions, and those of which a request may still arrive. holders
// is one map for all leases: most leases have one key, for which a map of its own would be large.
var leases = struct {
	sync.Mutex
	known   map[int64]*Lease
	holders map[life]any
	pruned  time.Time
}{known: make(map[int64]*Lease), holders: make(map[life]any)}

// life is one life of a key that is bound to a lease.
type life struct {
	lease int64
	token eldest.Token
}

// memory is how long a lease without sessions is remembered: longer than a kernel retransmits data
// that is not acknowledged (Linux: about 15 minutes).
const memory = time.Hour

// Of returns the past of a lease, for one session, which must call Done at its end.
func Of(id int64) *Lease {
	leases.Lock()
	defer leases.Unlock()
	l := of(id)
	l.sessions++
	return l
}

// of returns the past of a lease, and makes it if there is none. The caller holds leases.
func of(id int64) *Lease {
	l := leases.known[id]
	if l == nil {
		prune()
		l = &Lease{id: id, left: time.Now()}
		leases.known[id] = l
	}
	return l
}

// prune deletes what is too old, once a minute at most. The caller holds leases.
func prune() {
	if time.Since(leases.pruned).Abs() < time.Minute {
		return
	}
	leases.pruned = time.Now()
	for id, l := range leases.known {
		if l.sessions == 0 && time.Since(l.left) > memory {
			delete(leases.known, id)
		}
	}
}

// settled deletes the lease if it has no session and no request may arrive. The caller holds
// leases.
func (l *Lease) settled() {
	if l.sessions == 0 && l.revoked == 0 && len(l.owed) == 0 && len(l.doomed) == 0 && leases.known[l.id] == l {
		delete(leases.known, l.id)
	}
}

// Done notes the end of a session.
func (l *Lease) Done() {
	leases.Lock()
	defer leases.Unlock()
	l.left = time.Now()
	l.sessions--
	l.settled()
}

// Hold makes a candidate the holder of the key with this token, unless another one is, and reports
// whether it is the holder. Through two namespaces, or in two sessions of one lease, two candidates
// may have the same key.
func (l *Lease) Hold(token eldest.Token, by any) bool {
	leases.Lock()
	defer leases.Unlock()
	key := life{l.id, token}
	if leases.holders[key] == nil {
		leases.holders[key] = by
	}
	return leases.holders[key] == by
}

// Held reports whether another candidate holds the key with this token.
func (l *Lease) Held(token eldest.Token, by any) bool {
	leases.Lock()
	defer leases.Unlock()
	holder := leases.holders[life{l.id, token}]
	return holder != nil && holder != by
}

// Release notes that the key with this token has no holder any more.
func (l *Lease) Release(token eldest.Token) {
	leases.Lock()
	defer leases.Unlock()
	delete(leases.holders, life{l.id, token})
}

// Doom notes that the key with this token is about to be deleted. It may also be called after Done.
func (l *Lease) Doom(token eldest.Token) {
	leases.Lock()
	defer leases.Unlock()
	if l.doomed == nil { // most leases need none
		l.doomed = make(map[eldest.Token]struct{})
	}
	l.doomed[token] = struct{}{}
	if leases.known[l.id] == nil {
		l.left = time.Now()
		leases.known[l.id] = l
	}
}

// Doomed reports whether the key with this token was to be deleted, and may still exist.
func (l *Lease) Doomed(token eldest.Token) bool {
	leases.Lock()
	defer leases.Unlock()
	_, doomed := l.doomed[token]
	return doomed
}

// Spare notes that the key with this token is deleted, or that etcd has definitely refused to
// delete it and it stays.
func (l *Lease) Spare(token eldest.Token) {
	leases.Lock()
	defer leases.Unlock()
	if l.entering > 0 {
		l.gone = append(l.gone, token)
		return
	}
	delete(l.doomed, token)
}

// Enter notes that a registration is about to be sent; Entered must be called.
func (l *Lease) Enter() {
	leases.Lock()
	defer leases.Unlock()
	l.entering++
}

// Entered notes that the answer to a registration was handled, or will not be.
func (l *Lease) Entered() {
	leases.Lock()
	defer leases.Unlock()
	if l.entering--; l.entering > 0 {
		return
	}
	for _, token := range l.gone {
		delete(l.doomed, token)
	}
	l.gone = nil
	l.settled()
}

// Owe notes that a registration of this key may arrive late.
func (l *Lease) Owe(key string) {
	leases.Lock()
	defer leases.Unlock()
	if l.owed == nil {
		l.owed = make(map[string]struct{})
	}
	l.owed[key] = struct{}{}
}

// Owed reports whether a registration of this key may arrive late.
func (l *Lease) Owed(key string) bool {
	leases.Lock()
	defer leases.Unlock()
	_, owed := l.owed[key]
	return owed
}

// Revoking notes that a session is about to revoke the lease. It must be called before the request
// is sent.
func Revoking(id int64) { revocation(id, 1) }

// Refused notes that the session of one Revoking has sent no request, or that etcd has definitely
// refused it: the lease still exists, unless another session revokes it.
func Refused(id int64) { revocation(id, -1) }

func revocation(id int64, more int) {
	leases.Lock()
	defer leases.Unlock()
	l := of(id)
	l.left, l.revoked = time.Now(), max(0, l.revoked+more) // it may have been forgotten
	l.settled()
}

// Revoked reports whether this process has requested the revocation of a lease and has no definite
// answer, so that the request may still arrive.
func Revoked(id int64) bool {
	leases.Lock()
	defer leases.Unlock()
	l := leases.known[id]
	return l != nil && l.revoked > 0
}

// Forget deletes what is recorded of a lease that was just granted, or that certainly does not
// exist.
func Forget(id int64) {
	leases.Lock()
	defer leases.Unlock()
	delete(leases.known, id)
}
