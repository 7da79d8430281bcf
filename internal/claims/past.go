package claims

import (
	"sync"
	"time"

	"github.com/eldest-io/eldest"
)

// past is what this process has asked etcd to remove and what etcd has not confirmed, by
// lease. It outlives sessions: see the package comment. An entry that says nothing is
// dropped.
var past = struct {
	sync.Mutex
	leases map[int64]*unconfirmed
}{leases: make(map[int64]*unconfirmed)}

// unconfirmed is what may yet happen to one lease and its keys. The mutex of past guards
// it.
type unconfirmed struct {
	lease   int64
	doomed  map[eldest.Token]bool
	revoked bool
	since   time.Time // the newest request
}

// memory is how long the requests of sessions that have ended are remembered: longer than
// a kernel sends data anew that nobody acknowledges (Linux: about 15 minutes).
const memory = time.Hour

// pastOf returns what is known of a lease. The caller holds past.
func pastOf(lease int64) *unconfirmed {
	if u := past.leases[lease]; u != nil {
		return u
	}
	return &unconfirmed{lease: lease, doomed: make(map[eldest.Token]bool)}
}

// kept has past remember u if it says anything. The caller holds past.
func (u *unconfirmed) kept() {
	if len(u.doomed) == 0 && !u.revoked {
		if past.leases[u.lease] == u {
			delete(past.leases, u.lease)
		}
		return
	}
	for lease, old := range past.leases {
		if time.Since(old.since) > memory {
			delete(past.leases, lease) // sessions that live have theirs still
		}
	}
	past.leases[u.lease] = u
}

// doom notes that a request is about to delete the life with this token.
func (u *unconfirmed) doom(token eldest.Token) {
	past.Lock()
	defer past.Unlock()
	u.doomed[token], u.since = true, time.Now()
	u.kept()
}

func (u *unconfirmed) dooms(token eldest.Token) bool {
	past.Lock()
	defer past.Unlock()
	return u.doomed[token]
}

// spare notes that the life with this token is over.
func (u *unconfirmed) spare(token eldest.Token) {
	past.Lock()
	defer past.Unlock()
	delete(u.doomed, token)
	u.kept()
}

// Revoking notes that a request is about to revoke a lease.
func Revoking(lease int64) {
	past.Lock()
	defer past.Unlock()
	u := pastOf(lease)
	u.revoked, u.since = true, time.Now()
	u.kept()
}

// Revoked reports whether this process has asked etcd to revoke a lease and has no
// certain answer, so that the request may yet arrive.
func Revoked(lease int64) bool {
	past.Lock()
	defer past.Unlock()
	return pastOf(lease).revoked
}

// Refused notes that etcd has refused to revoke a lease: the lease lives on.
func Refused(lease int64) {
	past.Lock()
	defer past.Unlock()
	u := pastOf(lease)
	u.revoked = false
	u.kept()
}

// Forget drops what is known of a lease: it was just granted, or is certainly gone.
func Forget(lease int64) {
	past.Lock()
	defer past.Unlock()
	delete(past.leases, lease)
}
