package claims

import (
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
)

// Lease is what this process has done to the keys of one lease, and to the lease itself. It
// is shared by all sessions of the lease, and outlives them: what a session has sent may
// arrive after its end, in the time of the next one. Made by Of.
type Lease struct {
	id int64

	mu sync.Mutex
	// holders are the claims of the candidates, by the tokens of their keys.
	holders map[eldest.Token]*Claim
	// doomed are the tokens that are over: a request that deletes the key was sent, or will
	// be. They are not held again.
	doomed map[eldest.Token]bool
	// entering counts the claims whose key is not known yet. What is confirmed to be gone
	// meanwhile, gone, stays doomed: the answer that they wait for may be older.
	entering int
	gone     []eldest.Token
	// owed are the keys under which a registration of unknown outcome may yet arrive.
	owed map[string]bool
	// revoked says that a request to revoke the lease was sent and not answered.
	revoked bool
}

// leases are those that have sessions, and those of which something is unconfirmed.
var leases = struct {
	sync.Mutex
	known  map[int64]*known
	pruned time.Time
}{known: make(map[int64]*known)}

// known is an entry of leases, whose mutex guards it.
type known struct {
	lease    *Lease
	sessions int
	left     time.Time // when the last session left
}

// memory is how long a lease without sessions is remembered: longer than a kernel sends
// data anew that nobody acknowledges (Linux: about 15 minutes).
const memory = time.Hour

// Of returns what is known of a lease, for one session, which calls Done at its end.
func Of(id int64) *Lease {
	leases.Lock()
	defer leases.Unlock()
	k := entry(id)
	k.sessions++
	return k.lease
}

// entry returns the entry of a lease, made if there is none. The caller holds leases.
func entry(id int64) *known {
	k := leases.known[id]
	if k == nil {
		prune()
		k = &known{lease: &Lease{
			id: id, holders: make(map[eldest.Token]*Claim), doomed: make(map[eldest.Token]bool), owed: make(map[string]bool),
		}, left: time.Now()}
		leases.known[id] = k
	}
	return k
}

// prune forgets what is too long ago, once a minute at most. The caller holds leases.
func prune() {
	if time.Since(leases.pruned).Abs() < time.Minute {
		return
	}
	leases.pruned = time.Now()
	for id, k := range leases.known {
		if k.sessions == 0 && time.Since(k.left) > memory {
			delete(leases.known, id)
		}
	}
}

// Done notes the end of a session.
func (l *Lease) Done() {
	leases.Lock()
	defer leases.Unlock()
	k := leases.known[l.id]
	if k == nil || k.lease != l {
		return // forgotten
	}
	k.left = time.Now()
	if k.sessions--; k.sessions == 0 && l.settled() {
		delete(leases.known, l.id)
	}
}

// settled reports whether nothing is unconfirmed.
func (l *Lease) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.revoked && len(l.owed) == 0 && len(l.doomed) == len(l.gone)
}

// Doom notes that the life of a key with this token is about to be removed, also after Done.
func (l *Lease) Doom(token eldest.Token) {
	leases.Lock()
	defer leases.Unlock()
	if leases.known[l.id] == nil {
		leases.known[l.id] = &known{lease: l, left: time.Now()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doomed[token] = true
}

// Doomed reports whether a life of a key was to be removed, and may be there still.
func (l *Lease) Doomed(token eldest.Token) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doomed[token]
}

// Spare notes that the life with this token is gone, or that etcd has refused for certain
// to remove it and it goes on.
func (l *Lease) Spare(token eldest.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over(token)
}

// held reports whether another claim, of a session that lives, holds a token. The caller
// holds mu.
func (l *Lease) held(token eldest.Token, by *Claim) bool {
	holder := l.holders[token]
	return holder != nil && holder != by && holder.of.session.Err() == nil
}

// over notes that a life is over. The caller holds mu.
func (l *Lease) over(token eldest.Token) {
	delete(l.holders, token)
	switch {
	case !l.doomed[token]:
	case l.entering > 0:
		if !slices.Contains(l.gone, token) { // settled counts them
			l.gone = append(l.gone, token)
		}
	default:
		delete(l.doomed, token)
	}
}

// entered notes that one claim's key is known, or not wanted any more. The caller holds mu.
func (l *Lease) entered() {
	if l.entering--; l.entering > 0 {
		return
	}
	for _, token := range l.gone {
		delete(l.doomed, token)
	}
	l.gone = nil
}

// Revoking notes that the lease is about to be revoked. It comes before the request.
func Revoking(id int64) { revocation(id, true) }

// Refused notes that no request to revoke the lease was sent, or etcd has refused for
// certain: the lease lives on.
func Refused(id int64) { revocation(id, false) }

func revocation(id int64, sent bool) {
	leases.Lock()
	defer leases.Unlock()
	k := entry(id)
	k.left = time.Now()
	k.lease.mu.Lock()
	k.lease.revoked = sent
	k.lease.mu.Unlock()
	if k.sessions == 0 && k.lease.settled() {
		delete(leases.known, id)
	}
}

// Revoked reports whether this process has asked etcd to revoke a lease and has no certain
// answer, so that the request may yet arrive.
func Revoked(id int64) bool {
	leases.Lock()
	defer leases.Unlock()
	k := leases.known[id]
	if k == nil {
		return false
	}
	k.lease.mu.Lock()
	defer k.lease.mu.Unlock()
	return k.lease.revoked
}

// Forget drops what is known of a lease: it was just granted, or is certainly gone.
func Forget(id int64) {
	leases.Lock()
	defer leases.Unlock()
	delete(leases.known, id)
}
