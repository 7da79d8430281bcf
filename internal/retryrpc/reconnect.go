package retryrpc

import (
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Reconnect makes a client that lost its connections connect again now, and start with the shortest
// pause again; at most once in reconnectEvery, whatever the number of callers. Without it gRPC
// doubles its pause up to two minutes, which is longer than most leases live. During the pause
// every request fails at once, and no connection is tried. Callers that repeat requests have pauses
// of their own, so they decide when to connect. Clients of other types, those of ReconnectsItself,
// and those with a connection that works are not affected. Safe for concurrent use.
//
// It must not run while the client's endpoints change: ResetConnectBackoff, of gRPC up to 1.85 at
// least, gets its map of connections under its lock and iterates over it without the lock, and the
// process crashes if a connection is added or removed meanwhile. Sync and AutoSyncInterval change
// endpoints when etcd has answered, so Reconnect runs only if the client had no connection, and the
// same endpoints, at two failures in a row. A program that calls SetEndpoints during an outage is
// not protected by this; its client should be one of ReconnectsItself. Decision 33 has the details.
func Reconnect(client any) {
	c, ok := client.(*clientv3.Client)
	if !ok || c == nil {
		return
	}
	l, due := look(c)
	if conn := c.ActiveConnection(); due && conn != nil && l.again(conn.GetState().String() != working, c.Endpoints()) {
		conn.ResetConnectBackoff()
		conn.Connect() // has no effect except to take the lock: a later change is ordered after the iteration
	}
}

// ReconnectsItself declares that the pauses of a client are short by its own dial options: Reconnect
// leaves it alone, and its endpoints may change at any time.
func ReconnectsItself(c *clientv3.Client) {
	l := looksAt(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.never = true
}

const (
	reconnectEvery = 500 * time.Millisecond
	working        = "READY" // gRPC's name for the state of a client with a connection
)

// looks has what was seen of each client, as a weak pointer to the client and a *looking. It is for
// the whole process, because independent packages share a client; it keeps no client alive.
var looks sync.Map

type looking struct {
	mu        sync.Mutex
	never     bool
	at        time.Time // of the last look
	broken    bool      // at the last look there was no connection
	endpoints []string  // at the last look
}

func looksAt(c *clientv3.Client) *looking {
	key := weak.Make(c)
	l, known := looks.LoadOrStore(key, new(looking))
	if !known {
		runtime.AddCleanup(c, func(key weak.Pointer[clientv3.Client]) { looks.Delete(key) }, key)
	}
	return l.(*looking)
}

// look reports whether it is time to look at the client again, to one caller at a time.
func look(c *clientv3.Client) (l *looking, due bool) {
	l = looksAt(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.never || !l.at.IsZero() && now.Sub(l.at) < reconnectEvery {
		return l, false
	}
	l.at = now
	return l, true
}

// again reports whether this look and the one before saw no connection and the same endpoints.
func (l *looking) again(broken bool, endpoints []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := broken && l.broken && slices.Equal(endpoints, l.endpoints)
	l.broken, l.endpoints = broken, endpoints
	return again
}
