package retryrpc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Reconnect makes a client that lost its connections connect again now, and start with the shortest
// pause again; at most once in reconnectEvery, whatever the number of callers. Without it gRPC
// doubles its pause up to two minutes, which is longer than most leases live. During the pause
// every request fails at once, and no connection is tried. Callers that repeat requests have pauses
// of their own, so they decide when to connect. Clients of other types, and connections that work,
// are not affected. Safe for concurrent use.
//
// It must not run while the client's endpoints change (AutoSyncInterval, Sync, SetEndpoints):
// ResetConnectBackoff, of gRPC 1.85, gets its map of connections under its lock and iterates over
// it without the lock. If a connection is added or removed meanwhile, the process crashes. There is
// no other way to cut the pause short, and this package cannot detect a change of endpoints, so
// package lease warns its users.
func Reconnect(client any) {
	if c, ok := client.(*clientv3.Client); ok && c != nil && due(c) {
		if conn := c.ActiveConnection(); conn != nil {
			conn.ResetConnectBackoff()
		}
	}
}

const reconnectEvery = 500 * time.Millisecond

// reconnected has the time at which each client was last made to connect, as a weak pointer to the
// client and an *atomic.Int64. It is for the whole process, because independent packages share a
// client; it keeps no client alive.
var reconnected sync.Map

func due(c *clientv3.Client) bool {
	key := weak.Make(c)
	last, known := reconnected.LoadOrStore(key, new(atomic.Int64))
	if !known {
		runtime.AddCleanup(c, func(key weak.Pointer[clientv3.Client]) { reconnected.Delete(key) }, key)
	}
	at, now := last.(*atomic.Int64), time.Now().UnixNano()
	before := at.Load()
	return now-before >= int64(reconnectEvery) && at.CompareAndSwap(before, now)
}
